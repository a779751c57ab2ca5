"""A SplitEmbedding at work on Keras's JAX and PyTorch backends: the static form alone, on tables that are weights."""

from typing import Any

import keras
import numpy as np
from keras import ops
from keras.src.backend.common.symbolic_scope import in_symbolic_scope  # no public way tells of it
from numpy.typing import NDArray

from splitembed.errors import MissingTableError
from splitembed.lookup.dropout import Drop
from splitembed.lookup.static import WeightTables, check_now, combine_fixed, look_up_fixed
from splitembed.split.table import SplitTable
from splitembed.tables.storage import encode_rows

SeedGenerator = keras.random.SeedGenerator


def hold_tables(layer: Any, split: SplitTable | None, tables: WeightTables | None) -> WeightTables:
    """Makes the weights while the layer is built, and fills them as soon as there is a split."""
    if tables is None:
        tables = WeightTables(layer, layer.input_dim, layer.num_frozen, layer.frozen_dtype)
    if split is not None:
        tables.fill(split)
    return tables


def initial_rows(rows: NDArray[Any]) -> Any:
    """The trainable rows as the weight starts from them."""
    return ops.convert_to_tensor(rows)


def stored_rows(variable: Any) -> NDArray[Any]:
    """The values of a float variable; bfloat16 as uint16."""
    rows = np.asarray(ops.convert_to_numpy(variable.value))
    if variable.dtype != "bfloat16":
        return rows
    return rows.view(np.uint16) if rows.dtype.itemsize == 2 else encode_rows(rows, "bfloat16")[0]


def embed(layer: Any, ids: Any, weights: Any, tables: WeightTables, drop: Drop | None = None) -> Any:
    """Looks ids up, and combines their rows if the layer has a combiner.

    Args:
        layer: a built `SplitEmbedding`.
        ids: a tensor or an array. Ids that are known now are checked now; in a compiled program wrong ones give NaN.
        weights: None, or for a combiner numbers of the ids' shape.
        tables: as `hold_tables` made them.
        drop: says which occurrences of trainable rows are replaced by zeros.

    Returns:
        Rows in the layer's compute dtype.
    """
    if not hasattr(ids, "dtype"):
        ids = np.asarray(ids)
    check_now(ids, tables.num_tokens)
    ids = ops.convert_to_tensor(ids.astype(np.int32) if isinstance(ids, np.ndarray) else ids)
    dropped = None if drop is None else drop(ids.shape)
    rows = look_up_fixed(ids, tables, layer.trainable_rows.value, dropped)
    if layer.combiner is not None:
        rows = combine_fixed(rows, ids, weights, layer.combiner, layer.mask_zero)
    return ops.cast(rows if layer.trainable else ops.stop_gradient(rows), layer.compute_dtype)


def without_tables(layer: Any, ids: Any, message: str) -> Any:
    """A call before the tables are loaded: Keras makes one with symbols, to build a model; with numbers there is none.

    Raises:
        MissingTableError: where it would run.
    """
    if not in_symbolic_scope():
        raise MissingTableError(message)
    shape = [int(length is None) or length for length in layer.compute_output_shape(tuple(ids.shape))]
    return ops.zeros(shape, layer.compute_dtype)


def is_ragged(ids: Any) -> bool:
    """Whether ids are ragged, which they cannot be on these backends."""
    return bool(getattr(ids, "ragged", False))
