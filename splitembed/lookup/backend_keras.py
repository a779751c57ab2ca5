"""The operations of a SplitEmbedding on JAX and PyTorch: the static form of the lookup, on tables that are weights."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from splitembed import keras_compat
from splitembed.errors import MissingTableError
from splitembed.lookup.backend import Drop, Embedding
from splitembed.lookup.id_checks import check_known_ids
from splitembed.lookup.static import combine_fixed, look_up_fixed
from splitembed.split.id_order import Order, order_of, unused_rows_are_finite
from splitembed.split.table import SplitTable
from splitembed.tables.storage import encode_rows, storage_named


class WeightTables:
    """Tables as weights of a layer that no training changes and no weights file holds.

    A compiled program would have a mere array baked in.

    Args:
        layer: the layer, while it is being built. If it `is_transposed`, the frozen rows are held as columns,
            `(dim, num_frozen)`, for a table that is only multiplied.
    """

    def __init__(self, layer: Embedding) -> None:
        self.num_tokens, self.num_frozen, self.dim = layer.input_dim, layer.num_frozen, layer.output_dim
        self.transposed = layer.is_transposed
        self._split: SplitTable | None = None
        options = {"initializer": "zeros", "trainable": False, "autocast": False}
        shape = (self.dim, self.num_frozen) if self.transposed else (self.num_frozen, self.dim)
        self._remap = layer.add_weight(name="remap", shape=(self.num_tokens,), dtype="int32", **options)
        self._frozen = layer.add_weight(name="frozen", shape=shape, dtype=layer.frozen_dtype, **options)
        self._scale = None
        if storage_named(layer.frozen_dtype).has_scale:
            self._scale = layer.add_weight(name="scale", shape=(self.num_frozen,), dtype="float32", **options)

    def fill(self, split: SplitTable) -> None:
        """Copy the tables of a split into the weights."""
        # a split stores bfloat16 as uint16, and the weight does not
        rows = split.storage.decode(split.frozen, None) if split.storage.is_bit_pattern else split.frozen
        self._split = split
        self._remap.assign(split.remap)
        self._frozen.assign(rows.T if self.transposed else rows)
        if self._scale is not None:
            self._scale.assign(split.scale)

    @cached_property
    def order(self) -> Order | None:
        """What trains, where the frozen rows are in id order; known once the weights are filled."""
        return None if self._split is None else order_of(self._split)

    @cached_property
    def is_finite(self) -> bool:
        """Whether all frozen rows without a token are finite; known once the weights are filled."""
        return self._split is not None and unused_rows_are_finite(self._split)

    def read_remap(self) -> Any:
        """Return the remap, int32 `(num_tokens,)`."""
        return self._remap.value

    def read_stored(self) -> Any:
        """Return the frozen rows as stored, without a copy: `(num_frozen, dim)`, transposed `(dim, num_frozen)`."""
        return self._frozen.value

    def read(self, rows: Any) -> Any:
        """Gather frozen rows, `rows.shape + (dim,)`, widened to float32."""
        values = self.gather(rows)
        return ops.moveaxis(values, 0, -1) if self.transposed else values

    def gather(self, rows: Any) -> Any:
        """Gather frozen rows as `read` does, but of a transposed table as `(dim,) + rows.shape`."""
        axis = 1 if self.transposed else 0
        values = ops.cast(ops.take(self._frozen.value, rows, axis=axis), "float32")
        if self._scale is None:
            return values
        return values * ops.expand_dims(ops.take(self._scale.value, rows, axis=0), axis - 1)


class KerasBackend:
    """The `Backend` for JAX and PyTorch, whose interface documents each method."""

    def seed_generator(self, seed: int | None) -> Any:
        """Return a seed generator."""
        return keras.random.SeedGenerator(seed)

    def hold_tables(self, layer: Embedding, split: SplitTable | None, tables: WeightTables | None) -> WeightTables:
        """Make the weights while the layer is built, and fill them as soon as there is a split."""
        if tables is None:
            tables = WeightTables(layer)
        if split is not None:
            tables.fill(split)
        return tables

    def initial_rows(self, rows: NDArray[Any]) -> Any:
        """Return a copy of the rows."""
        return ops.convert_to_tensor(rows)

    def stored_rows(self, variable: Any) -> NDArray[Any]:
        """Return the values of a float variable; bfloat16 as uint16."""
        rows = np.asarray(ops.convert_to_numpy(variable.value))
        storage = storage_named(variable.dtype)
        if not storage.is_bit_pattern:
            return rows
        is_narrow = rows.dtype.itemsize == storage.num_bytes
        return rows.view(storage.stored_dtype) if is_narrow else encode_rows(rows, storage.name)[0]

    def embed(self, layer: Embedding, ids: Any, weights: Any, tables: WeightTables, drop: Drop | None = None) -> Any:
        """Look ids up; known ids are checked at once, and in a compiled program an invalid one gives NaN."""
        if not hasattr(ids, "dtype"):
            ids = np.asarray(ids)
        check_known_ids(ids, tables.num_tokens)
        ids = ops.convert_to_tensor(ids.astype(np.int32) if isinstance(ids, np.ndarray) else ids)
        dropped = None if drop is None else drop(ids.shape)
        rows = look_up_fixed(ids, tables, layer.trainable_rows.value, dropped)
        if layer.combiner is not None:
            rows = combine_fixed(rows, ids, weights, layer.combiner, layer.mask_zero)
        return ops.cast(rows if layer.trainable else ops.stop_gradient(rows), layer.compute_dtype)

    def without_tables(self, output_shape: tuple[int | None, ...], dtype: str, message: str) -> Any:
        """Return zeros where Keras calls the layer with symbols to build a model.

        Raises:
            MissingTableError: a call with values.
        """
        if not keras_compat.in_symbolic_scope():
            raise MissingTableError(message)
        return ops.zeros([1 if length is None else length for length in output_shape], dtype)

    def with_gradient(self, function: Callable[..., Any], *inputs: Any) -> Any:
        """Return the output of a function that defines its gradient."""
        return ops.custom_gradient(function)(*inputs)

    def is_ragged(self, ids: Any) -> bool:
        """Return whether ids are the symbol of a ragged tensor, which these backends cannot run."""
        return bool(getattr(ids, "ragged", False))
