"""Logits of a split whose frozen table is in id order: hidden states go in; what Keras's own layer computes comes out.

The columns of frozen rows are that layer's own product, the same operations on the same shapes, and so the same to the
bit. Where a token trains beside its frozen row, the column is that of the row it has by now, once it is another one;
columns of ids beyond the table follow. No frozen row has a gradient.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from splitembed.layers.frozen_columns import FrozenColumns, in_xla
from splitembed.split.id_order import Order

_BACKEND = keras.backend.backend()
_MOST_PLACES = 2**31 - 1  # that int32 counts
_VERY_FEW = 1 / 300  # of all columns: more are scattered faster than added
_FEW = 1 / 8  # of all columns: more are put in their places faster by choosing each value of the logits


def logits_in_order(states: Any, trainable: Any, frozen: FrozenColumns, order: Order) -> Any:
    """Multiplies hidden states with every token's row.

    Args:
        states: `(..., dim)` in the product's dtype.
        trainable: `(num_trainable, dim)`, likewise.
        frozen: the product with the frozen table.
        order: what trains beside and after it.

    Returns:
        `(..., num_tokens)` in id order. The gradient of a row that several tokens share is summed over them.
    """
    width, few = frozen.tables.num_frozen, order.num_chosen
    total = width + order.num_new

    def run(states: Any, trainable: Any) -> Any:
        flat = ops.reshape(states, (-1, frozen.tables.dim))
        rows = trainable if order.in_row_order else ops.take(trainable, order.rows, axis=0)
        logits = frozen.multiply(states)
        if len(order.rows):
            products = ops.matmul(flat, ops.transpose(rows))
            logits = ops.reshape(logits, (-1, width))
        if few:
            before = frozen.dtypes.cast(frozen.tables.read(order.chosen))
            is_other = ops.any(rows[:few] != before, axis=-1)
            whole = frozen.all_at_once or not order.is_finite
            logits = _put(logits, order.chosen, products[:, :few], is_other, whole)
        if order.num_new:
            logits = ops.concatenate([logits, products[:, few:]], axis=1)

        def backward(*arguments: Any, upstream: Any = None) -> tuple[Any, Any]:
            upstream = ops.reshape(arguments[-1] if upstream is None else upstream, (-1, total))
            of_frozen = upstream[:, :width] if order.num_new else upstream
            to_states = frozen.multiply_back(of_frozen, not order.is_finite)
            if not len(order.rows):
                return ops.reshape(to_states, ops.shape(states)), ops.zeros_like(trainable)
            parts, changes = [upstream[:, width:]], rows
            if few:
                parts.insert(0, ops.take(of_frozen, order.chosen, axis=1))
            if few and order.is_finite:
                changes = ops.concatenate([rows[:few] - before, rows[few:]], axis=0)
            of_rows = ops.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]
            to_states = to_states + ops.matmul(of_rows, changes)
            to_rows = ops.matmul(ops.transpose(of_rows), flat)
            if not order.in_row_order:
                to_rows = ops.segment_sum(to_rows, order.rows, trainable.shape[0])
            return ops.reshape(to_states, ops.shape(states)), to_rows

        return ops.reshape(logits, (*ops.shape(states)[:-1], total)), backward

    return ops.custom_gradient(run)(states, trainable)


def _put(logits: Any, chosen: Any, columns: Any, is_other: Any, whole: bool) -> Any:
    """Puts columns `(num_states, num_chosen)` whose rows are others by now in their places in logits of nobody else."""
    if whole or len(chosen) > _FEW * logits.shape[1]:
        return _choose(logits, chosen, columns, is_other)
    if _BACKEND == "tensorflow":
        return _put_on_tensorflow(logits, chosen, columns, is_other)
    columns = ops.where(is_other, columns, ops.take(logits, chosen, axis=1))
    if _BACKEND == "jax":
        return logits.at[:, chosen].set(columns, unique_indices=True)
    return logits.index_copy(1, ops.convert_to_tensor(chosen, "int64"), columns)


def _put_on_tensorflow(logits: Any, chosen: Any, columns: Any, is_other: Any) -> Any:
    """A scatter copies the logits first. Very few columns are added faster to the logits where they lie, once what was
    there is taken away, which leaves zeros. Operations in place would be faster still, but keep TensorFlow from fusing
    others, so that other layers would round in another way."""
    import tensorflow as tf

    if in_xla() or logits.dtype != tf.float32:  # in 16 bits a GPU may have no scatter
        return _choose(logits, chosen, columns, is_other)

    ids, values = tf.boolean_mask(chosen, is_other), tf.boolean_mask(columns, is_other, axis=1)
    numbers = tf.range(tf.shape(logits)[0])

    def scatter() -> Any:
        places = tf.stack(tf.meshgrid(numbers, ids, indexing="ij"), axis=-1)
        return tf.tensor_scatter_nd_update(logits, places, values)

    if len(chosen) > _VERY_FEW * logits.shape[1]:
        return scatter()
    before = tf.gather(logits, ids, axis=1)

    def add() -> Any:
        places = tf.reshape(numbers[:, None] * logits.shape[1] + ids, [-1, 1])
        flat = tf.reshape(logits, [-1])
        for each in (-before, values):
            flat = tf.raw_ops.ScatterNdNonAliasingAdd(input=flat, indices=places, updates=tf.reshape(each, [-1]))
        return tf.reshape(flat, [-1, logits.shape[1]])

    can_add = (tf.size(logits, tf.int64) <= _MOST_PLACES) & tf.reduce_all(tf.math.is_finite(before))
    return tf.cond(can_add, add, scatter)


def _choose(logits: Any, chosen: Any, columns: Any, is_other: Any) -> Any:
    """As `_put`, by a choice for each value of the logits."""
    is_chosen, place = np.zeros(logits.shape[1], bool), np.zeros(logits.shape[1], np.int32)
    is_chosen[chosen], place[chosen] = True, np.arange(len(chosen))
    is_other = ops.logical_and(is_chosen, ops.take(is_other, place, axis=0))
    return ops.where(is_other, ops.take(columns, place, axis=1), logits)
