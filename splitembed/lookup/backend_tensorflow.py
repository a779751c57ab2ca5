"""A SplitEmbedding at work on Keras's TensorFlow backend: chooses the lookup's form while it is traced, and runs it."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from splitembed.errors import MissingTableError, SplitError
from splitembed.lookup.bags import Bags, combine
from splitembed.lookup.constant import as_tensor
from splitembed.lookup.context import exports_fixed_shapes
from splitembed.lookup.dropout import Drop
from splitembed.lookup.dynamic import Constants, dense_gradient, in_xla, look_up, route
from splitembed.lookup.id_checks import check_ids
from splitembed.lookup.static import combine_fixed, look_up_fixed
from splitembed.split.table import SplitTable


class SeedGenerator(keras.random.SeedGenerator):
    """Keras's own, which gives all replicas of a `tf.distribute` strategy one seed; here each draws by another one."""

    def next(self, ordered: bool = True) -> Any:
        """Returns `(2,)` integers, others at each call and in each replica."""
        seed = super().next(ordered)
        context = tf.distribute.get_replica_context()
        if context is None or context.num_replicas_in_sync == 1:
            return seed
        number, count = (tf.cast(each, seed.dtype) for each in (context.replica_id_in_sync_group, seed[1]))
        return tf.stack([seed[0], count * context.num_replicas_in_sync + number])


def hold_tables(layer: Any, split: SplitTable | None, tables: Constants | None) -> Constants | None:
    """Handles on the split's own memory; nothing while the layer has no split."""
    return None if split is None else Constants(split)


def initial_rows(rows: NDArray[Any]) -> Any:
    """The trainable rows as the weight starts from them, on the split's memory until the first update."""
    with tf.init_scope():
        return as_tensor(rows)


def stored_rows(variable: Any) -> NDArray[Any]:
    """The values of a float variable, on its own memory wherever that is a CPU's; bfloat16 as uint16.

    An update of the variable gives it other memory, so that what was read stays as it was.
    """
    rows = variable.value.read_value()
    if rows.dtype == tf.bfloat16:
        rows = tf.bitcast(rows, tf.uint16)
    with tf.device("CPU:0"):
        return np.asarray(memoryview(tf.identity(rows)))


def embed(layer: Any, ids: Any, weights: Any, tables: Constants, drop: Drop | None = None) -> Any:
    """Looks ids up, and combines their rows if the layer has a combiner.

    Args:
        layer: a built `SplitEmbedding`.
        ids: dense or ragged.
        weights: None, or for a combiner numbers laid out as the ids.
        tables: as `hold_tables` made them.
        drop: says which occurrences of trainable rows are replaced by zeros.

    Returns:
        Rows in the layer's compute dtype.
    """
    if isinstance(ids, tf.SparseTensor):
        raise SplitError("Sparse ids have no row for what they leave out: call tf.sparse.to_dense first.")
    has_fixed_shapes = layer.lookup == "static" or (layer.lookup == "auto" and (in_xla() or exports_fixed_shapes()))
    if layer.combiner is not None:
        return (_combine_fixed if has_fixed_shapes else _combine)(layer, ids, weights, tables, drop)
    if isinstance(ids, tf.RaggedTensor):
        return ids.with_flat_values(embed(layer, ids.flat_values, None, tables, drop))
    rows = (_look_up_fixed if has_fixed_shapes else _look_up)(layer, ids, tables, drop)
    return tf.cast(rows if layer.trainable else tf.stop_gradient(rows), layer.compute_dtype)


def _look_up(layer: Any, ids: Any, tables: Constants, drop: Drop | None) -> tf.Tensor:
    return look_up(ids, tables, layer.trainable_rows.value, layer.gradient, drop, not layer.copies_rows)


def _look_up_fixed(layer: Any, ids: Any, tables: Constants, drop: Drop | None) -> tf.Tensor:
    if not in_xla() and not exports_fixed_shapes():  # elsewhere nothing can raise, and wrong ids get rows of NaN
        ids, checks = check_ids(ids, tables.num_tokens)
        with tf.control_dependencies(checks):
            ids = tf.identity(ids)
    dropped = None if drop is None else drop(tf.shape(ids))
    return look_up_fixed(ids, tables, dense_gradient(layer.trainable_rows.value), dropped)


def _combine(layer: Any, ids: Any, weights: Any, tables: Constants, drop: Drop | None) -> tf.Tensor:
    bags = Bags.of(ids, weights)
    rows, checks = route(bags.ids, tables)
    with tf.control_dependencies(checks):
        rows = tf.identity(rows)
    if layer.mask_zero:
        rows, bags = bags.without_padding(rows)
    combined = combine(rows, bags, layer.combiner, tables, layer.trainable_rows.value, layer.gradient, drop)
    return tf.cast(tf.reshape(combined, [*bags.shape, layer.output_dim]), layer.compute_dtype)


def _combine_fixed(layer: Any, ids: Any, weights: Any, tables: Constants, drop: Drop | None) -> tf.Tensor:
    if isinstance(ids, tf.RaggedTensor):
        raise SplitError(
            "Ragged bags have no fixed shape, which XLA, TFLite, ONNX and lookup='static' need. Pad them with 0 by "
            "ids.to_tensor(), with mask_zero=True or weights of 0."
        )
    rows = _look_up_fixed(layer, ids, tables, drop)
    return tf.cast(combine_fixed(rows, ids, weights, layer.combiner, layer.mask_zero), layer.compute_dtype)


def without_tables(layer: Any, ids: Any, message: str) -> Any:
    """A call before the tables are loaded: Keras traces it to learn shapes, which is allowed; running it is not.

    Raises:
        MissingTableError: at once where it would run now or be compiled by XLA, which leaves assertions out.
    """
    if tf.executing_eagerly() or in_xla():
        raise MissingTableError(message)
    with tf.control_dependencies([tf.debugging.Assert(False, [message])]):
        shape = [int(length is None) or length for length in layer.compute_output_shape(ids.shape)]
        return tf.ensure_shape(tf.zeros(shape, layer.compute_dtype), layer.compute_output_shape(ids.shape))


def is_ragged(ids: Any) -> bool:
    """Whether ids are ragged: a tensor, or the symbol of one."""
    return isinstance(ids, tf.RaggedTensor) or bool(
        isinstance(ids, keras.KerasTensor) and getattr(ids, "ragged", False)
    )
