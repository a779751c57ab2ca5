"""The operations of a SplitEmbedding on TensorFlow, where the form of the lookup is chosen while it is traced."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from splitembed.errors import MissingTableError, SplitError
from splitembed.lookup.backend import Drop, Embedding
from splitembed.lookup.bags import Bags, combine
from splitembed.lookup.constant import Constants, as_tensor
from splitembed.lookup.context import exports_fixed_shapes, in_xla
from splitembed.lookup.dynamic import look_up, route
from splitembed.lookup.gradients import dense_gradient, with_gradient
from splitembed.lookup.id_checks_tensorflow import check_ids
from splitembed.lookup.static import combine_fixed, look_up_fixed
from splitembed.split.table import SplitTable
from splitembed.tables.storage import storage_named


class ReplicaSeedGenerator(keras.random.SeedGenerator):
    """A seed generator that draws differently in each replica, where Keras gives all replicas one seed."""

    def next(self, ordered: bool = True) -> Any:
        """Return `(2,)` integers, different at each call and in each replica."""
        seed = super().next(ordered)
        context = tf.distribute.get_replica_context()
        if context is None or context.num_replicas_in_sync == 1:
            return seed
        number, count = (tf.cast(each, seed.dtype) for each in (context.replica_id_in_sync_group, seed[1]))
        return tf.stack([seed[0], count * context.num_replicas_in_sync + number])


class TensorFlowBackend:
    """The `Backend` for TensorFlow, whose interface documents each method."""

    def seed_generator(self, seed: int | None) -> Any:
        """Return a seed generator that knows replicas."""
        return ReplicaSeedGenerator(seed)

    def hold_tables(self, layer: Embedding, split: SplitTable | None, tables: Constants | None) -> Constants | None:
        """Return handles on the memory of the split; None while the layer has no split."""
        return None if split is None else Constants(split, layer.is_transposed)

    def initial_rows(self, rows: NDArray[Any]) -> Any:
        """Return the rows on the memory of the split, until the first update copies them."""
        with tf.init_scope():
            return as_tensor(rows)

    def stored_rows(self, variable: Any) -> NDArray[Any]:
        """Return the values of a float variable, on its memory wherever that is a CPU's; bfloat16 as uint16.

        An update of the variable gives it new memory, so that the returned values stay.
        """
        rows = variable.value.read_value()
        storage = storage_named(rows.dtype.name)
        if storage.is_bit_pattern:
            rows = tf.bitcast(rows, tf.as_dtype(storage.stored_dtype))
        with tf.device("CPU:0"):
            return np.asarray(memoryview(tf.identity(rows)))

    def embed(self, layer: Embedding, ids: Any, weights: Any, tables: Constants, drop: Drop | None = None) -> Any:
        """Look ids up, dense or ragged."""
        if isinstance(ids, tf.SparseTensor):
            raise SplitError("`ids` must be dense or ragged. Received: a SparseTensor. Call tf.sparse.to_dense first.")
        is_fixed = layer.lookup == "static" or (layer.lookup == "auto" and _needs_fixed_shapes(ids))
        if layer.combiner is not None:
            return (_combine_fixed if is_fixed else _combine)(layer, ids, weights, tables, drop)
        if isinstance(ids, tf.RaggedTensor):
            return ids.with_flat_values(self.embed(layer, ids.flat_values, None, tables, drop))
        rows = (_look_up_fixed if is_fixed else _look_up)(layer, ids, tables, drop)
        return tf.cast(rows if layer.trainable else tf.stop_gradient(rows), layer.compute_dtype)

    def without_tables(self, output_shape: tuple[int | None, ...], dtype: str, message: str) -> Any:
        """Return zeros in a graph, which Keras traces to learn shapes; they raise when they are run.

        Raises:
            MissingTableError: an eager call, or a graph for XLA, which leaves assertions out.
        """
        if tf.executing_eagerly() or in_xla():
            raise MissingTableError(message)
        with tf.control_dependencies([tf.debugging.Assert(False, [message])]):
            zeros = tf.zeros([1 if length is None else length for length in output_shape], dtype)
            return tf.ensure_shape(zeros, output_shape)

    def with_gradient(self, function: Callable[..., Any], *inputs: Any) -> tf.Tensor:
        """Return the output of a function that defines its gradient."""
        return with_gradient(function, *inputs)

    def is_ragged(self, ids: Any) -> bool:
        """Return whether ids are ragged: a tensor, or the symbol of one."""
        return isinstance(ids, tf.RaggedTensor) or bool(
            isinstance(ids, keras.KerasTensor) and getattr(ids, "ragged", False)
        )


def _needs_fixed_shapes(ids: Any) -> bool:
    return in_xla() or exports_fixed_shapes(ids)


def _look_up(layer: Embedding, ids: Any, tables: Constants, drop: Drop | None) -> tf.Tensor:
    return look_up(ids, tables, layer.trainable_rows.value, layer.gradient, drop, not layer.copies_rows)


def _look_up_fixed(layer: Embedding, ids: Any, tables: Constants, drop: Drop | None) -> tf.Tensor:
    # XLA and exports cannot raise, and give invalid ids rows of NaN
    if not _needs_fixed_shapes(ids):
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
            "Ragged bags have no fixed shape, which XLA, LiteRT, ONNX and lookup='static' need. Pad them with 0 by "
            "ids.to_tensor(), with mask_zero=True or weights of 0."
        )
    rows = _look_up_fixed(layer, ids, tables, drop)
    return tf.cast(combine_fixed(rows, ids, weights, layer.combiner, layer.mask_zero), layer.compute_dtype)
