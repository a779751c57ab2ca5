"""Row control of a gradient before the optimizer has it: rows are kept or dropped, and clipped one by one.

A gradient `(num_rows, ...)` goes in, dense or `tf.IndexedSlices`, and comes out in the same form. Slices that repeat a
row are summed first: what a row gets is its sum, never one of the terms.
"""

import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from splitembed.errors import SplitError
from splitembed.vocabulary import resolve_ids


def keep_gradient_rows(gradient: Any, rows: Any) -> Any:
    """Returns the gradient of some rows alone; that of the others is zero.

    >>> import tensorflow as tf
    >>> slices = tf.IndexedSlices(tf.constant([[1.0], [2.0], [4.0]]), tf.constant([3, 0, 3]), tf.constant([5, 1]))
    >>> kept = keep_gradient_rows(slices, rows=[1, 3])
    >>> kept.indices.numpy().tolist(), kept.values.numpy().tolist()
    ([3], [[5.0]])
    >>> keep_gradient_rows([[1.0], [2.0], [4.0]], rows=[True, False, True]).numpy().tolist()
    [[1.0], [0.0], [4.0]]

    Dropped rows are chosen, not multiplied by zero: an infinity or NaN in them is gone. Kept rows are as they were, NaN
    included. Weight decay, regularizers, and an optimizer's momentum from steps before the row was dropped do not come
    through the gradient, and still move a dropped row.

    The cost follows the slices. Inside XLA, which has no shapes that depend on values, it follows the whole table, and
    slices come out as one for each row of it; where a `tf.distribute` strategy has several replicas, slices of dropped
    rows come out as zeros.

    Args:
        gradient: `(num_rows, ...)`, a tensor, or on TensorFlow `tf.IndexedSlices`.
        rows: what to keep: row ids, or a boolean mask `(num_rows,)`.

    Returns:
        The same kind of gradient; slices name each row once.

    Raises:
        TokenIdError: a row outside the table.
        SplitError: a mask of another length, or slices that do not say of how many rows.
    """
    gradient = _summed(gradient)
    keeps = _mask_of(rows, _num_rows(gradient))
    if not is_sliced(gradient):
        return ops.where(_along_rows(keeps, gradient), gradient, ops.zeros_like(gradient))
    return _kept_slices(gradient, keeps)


def clip_gradient_rows(gradient: Any, clipnorm: float) -> Any:
    """Returns the gradient with rows that are longer than `clipnorm` shortened to it.

    >>> clip_gradient_rows([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]], clipnorm=1.0).numpy().round(3).tolist()
    [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]

    A row's length is the L2 norm of its summed gradient over all axes but the first; shorter rows stay as they are, to
    the bit. Keras's own `clipnorm` takes one norm over a whole table instead, so that one wild row shortens every row.
    A row that holds an infinity or NaN comes out as NaN, all of it, and is never made to look sound. The cost is that
    of `keep_gradient_rows`. With several replicas each clips its own gradient, as Keras's clipping does.

    Args:
        gradient: `(num_rows, ...)`, a tensor, or on TensorFlow `tf.IndexedSlices`.
        clipnorm: the greatest length that a row may have, above 0.

    Returns:
        The same kind of gradient; slices name each row once.

    Raises:
        SplitError: `clipnorm` is not a positive number, or the gradient has no axis beside its rows.
    """
    check_clipnorm(clipnorm)
    gradient = _summed(gradient)
    return _on_values(gradient, lambda values: _clipped(values, clipnorm))


def check_clipnorm(clipnorm: Any) -> None:
    """Raises for what is no length to clip to."""
    if isinstance(clipnorm, bool) or not isinstance(clipnorm, int | float) or not 0 < clipnorm < math.inf:
        raise SplitError(f"`clipnorm` must be a positive number. Received: {clipnorm!r}.")


def is_sliced(gradient: Any) -> bool:
    """Whether a gradient is `tf.IndexedSlices`."""
    return hasattr(gradient, "indices") and hasattr(gradient, "dense_shape")


def _clipped(values: Any, clipnorm: float) -> Any:
    """Norms of scaled rows, so that no square leaves the range of the dtype."""
    if len(values.shape) < 2:
        raise SplitError(f"A gradient must be `(num_rows, ...)` to be clipped by row. Received: shape {values.shape}.")
    dtype = keras.backend.standardize_dtype(values.dtype)
    wide = ops.cast(values, "float64" if dtype == "float64" else "float32")
    axes = tuple(range(1, len(values.shape)))
    largest = ops.max(ops.abs(wide), axis=axes, keepdims=True, initial=0.0)  # there may be no row
    # XLA divides by its reciprocal, which is flushed to zero for the largest float32 numbers
    factor = ops.cast(ops.where(largest > 1, 2.0**-32, 1.0), wide.dtype)
    scaled = wide * factor / ops.where(largest > 0, largest * factor, ops.ones_like(largest))
    norm = ops.sqrt(ops.sum(ops.square(scaled), axis=axes, keepdims=True))  # in units of the largest
    is_long = norm * largest > clipnorm
    shortened = ops.cast(scaled * (clipnorm / ops.where(norm > 0, norm, ops.ones_like(norm))), dtype)
    clipped = ops.where(is_long, shortened, values)
    is_sound = ops.all(ops.isfinite(values), axis=axes, keepdims=True)
    return ops.where(is_sound, clipped, ops.full_like(values, np.nan))


def _on_values(gradient: Any, change: Callable[[Any], Any]) -> Any:
    if not is_sliced(gradient):
        return change(gradient)
    return _distinct(change(gradient.values), gradient.indices, gradient)


def _summed(gradient: Any) -> Any:
    """A tensor as it is; slices with each row once, inside XLA one for every row of the table."""
    if not is_sliced(gradient):
        return ops.convert_to_tensor(gradient)
    import tensorflow as tf

    from splitembed.lookup.context import in_xla
    from splitembed.lookup.gradients import DistinctSlices

    if in_xla():
        num_rows, dense = _num_rows(gradient), tf.convert_to_tensor(gradient)
        return _distinct(dense, tf.range(num_rows, dtype=gradient.indices.dtype), gradient)
    if isinstance(gradient, DistinctSlices):
        return gradient
    rows, place, _ = tf.unique_with_counts(gradient.indices)  # unlike tf.unique, XLA refuses it loudly
    values = tf.math.unsorted_segment_sum(gradient.values, place, tf.size(rows))
    return _distinct(values, rows, gradient)


def _kept_slices(slices: Any, keeps: Any) -> Any:
    import tensorflow as tf

    from splitembed.lookup.context import in_xla

    kept = tf.gather(keeps, slices.indices)
    replicas = tf.distribute.get_replica_context()
    # all replicas together must have a slice: TensorFlow crashes otherwise
    if in_xla() or (replicas is not None and replicas.num_replicas_in_sync > 1):
        values = tf.where(_along_rows(kept, slices.values), slices.values, tf.zeros_like(slices.values))
        return _distinct(values, slices.indices, slices)
    return _distinct(tf.boolean_mask(slices.values, kept), tf.boolean_mask(slices.indices, kept), slices)


def _distinct(values: Any, indices: Any, like: Any) -> Any:
    """Slices of the same table that name each row once, which tells our optimizers not to sum them again."""
    from splitembed.lookup.gradients import DistinctSlices

    return DistinctSlices(values, indices, like.dense_shape)


def _num_rows(gradient: Any) -> int:
    shape = gradient.shape
    rank = shape.rank if hasattr(shape, "rank") else len(shape)
    if not rank or shape[0] is None:
        raise SplitError(
            "A gradient must say of how many rows it is: `(num_rows, ...)`, and for slices their `dense_shape`."
        )
    return int(shape[0])


def _mask_of(rows: Any, num_rows: int) -> Any:
    """Bool `(num_rows,)`, a tensor."""
    if ops.is_tensor(rows) and keras.backend.standardize_dtype(rows.dtype) == "bool":
        if tuple(rows.shape) != (num_rows,):
            raise SplitError(f"A mask of rows must be of shape {(num_rows,)}. Received: shape {tuple(rows.shape)}.")
        return rows
    mask = np.zeros(num_rows, bool)
    mask[resolve_ids(ops.convert_to_numpy(rows) if ops.is_tensor(rows) else rows, num_rows)] = True
    return ops.convert_to_tensor(mask)


def _along_rows(mask: Any, values: Any) -> Any:
    return ops.reshape(mask, (-1,) + (1,) * (len(values.shape) - 1))
