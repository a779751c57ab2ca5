"""Functions that keep, drop or clip rows of a gradient before an optimizer applies it.

A gradient is `(num_rows, ...)`, dense or `tf.IndexedSlices`, and keeps its form. Slices that repeat a row are summed
first, so that the sum is clipped and not its terms.
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
    """Return the gradient with zeros in all rows but the given ones.

    >>> import tensorflow as tf
    >>> slices = tf.IndexedSlices(tf.constant([[1.0], [2.0], [4.0]]), tf.constant([3, 0, 3]), tf.constant([5, 1]))
    >>> kept = keep_gradient_rows(slices, rows=[1, 3])
    >>> kept.indices.numpy().tolist(), kept.values.numpy().tolist()
    ([3], [[5.0]])
    >>> keep_gradient_rows([[1.0], [2.0], [4.0]], rows=[True, False, True]).numpy().tolist()
    [[1.0], [0.0], [4.0]]

    Dropped rows are replaced, not multiplied by zero, so that an infinity or NaN in them has no effect. Kept rows are
    unchanged, NaN included. Weight decay, regularizers, and momentum from steps before a row was dropped do not come
    through the gradient, and still move it.

    The cost grows with the number of slices. Inside XLA, where shapes cannot depend on values, it grows with the whole
    table, and slices are returned for each of its rows; with several replicas of a `tf.distribute` strategy, slices of
    dropped rows are returned as zeros.

    Args:
        gradient: `(num_rows, ...)`, a tensor, or on TensorFlow `tf.IndexedSlices`.
        rows: the rows to keep: ids, or a boolean mask `(num_rows,)`.

    Returns:
        The same kind of gradient; slices name each row once.

    Raises:
        TokenIdError: a row outside the table.
        SplitError: a mask of another length, or slices without `dense_shape`.
    """
    gradient = _summed(gradient)
    keeps = _mask_of(rows, _num_rows(gradient))
    if not is_sliced(gradient):
        return ops.where(_along_rows(keeps, gradient), gradient, ops.zeros_like(gradient))
    return _kept_slices(gradient, keeps)


def clip_gradient_rows(gradient: Any, clipnorm: float) -> Any:
    """Return the gradient with rows scaled down to the L2 norm `clipnorm` where they exceed it.

    >>> clip_gradient_rows([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]], clipnorm=1.0).numpy().round(3).tolist()
    [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]

    The norm of a row is taken over all axes but the first of its summed gradient; rows below `clipnorm` keep their
    bits. Keras's `clipnorm` takes one norm over a whole table instead, so that one large row shortens all of them.
    A row with an infinity or NaN becomes NaN as a whole. The cost is that of `keep_gradient_rows`. Each replica clips
    its gradient separately, as in Keras.

    Args:
        gradient: `(num_rows, ...)`, a tensor, or on TensorFlow `tf.IndexedSlices`.
        clipnorm: the largest norm of a row, above 0.

    Returns:
        The same kind of gradient; slices name each row once.

    Raises:
        SplitError: `clipnorm` is not a positive number, or the gradient has one axis only.
    """
    check_clipnorm(clipnorm)
    gradient = _summed(gradient)
    return _on_values(gradient, lambda values: _clipped(values, clipnorm))


def check_clipnorm(clipnorm: Any) -> None:
    """Raise for an invalid norm."""
    if isinstance(clipnorm, bool) or not isinstance(clipnorm, int | float) or not 0 < clipnorm < math.inf:
        raise SplitError(f"`clipnorm` must be a positive number. Received: {clipnorm!r}.")


def is_sliced(gradient: Any) -> bool:
    """Return whether a gradient is `tf.IndexedSlices`."""
    return hasattr(gradient, "indices") and hasattr(gradient, "dense_shape")


def _clipped(values: Any, clipnorm: float) -> Any:
    """Clip rows, whose norms are taken of scaled values so that no square overflows."""
    if len(values.shape) < 2:
        raise SplitError(f"A gradient must be `(num_rows, ...)` to be clipped by row. Received: shape {values.shape}.")
    dtype = keras.backend.standardize_dtype(values.dtype)
    wide = ops.cast(values, "float64" if dtype == "float64" else "float32")
    axes = tuple(range(1, len(values.shape)))
    # `initial`, as there may be no row
    largest = ops.max(ops.abs(wide), axis=axes, keepdims=True, initial=0.0)
    # XLA divides by its reciprocal, which is flushed to zero for the largest float32 numbers
    factor = ops.cast(ops.where(largest > 1, 2.0**-32, 1.0), wide.dtype)
    scaled = wide * factor / ops.where(largest > 0, largest * factor, ops.ones_like(largest))
    # in units of the largest
    norm = ops.sqrt(ops.sum(ops.square(scaled), axis=axes, keepdims=True))
    is_long = norm * largest > clipnorm
    shortened = ops.cast(scaled * (clipnorm / ops.where(norm > 0, norm, ops.ones_like(norm))), dtype)
    clipped = ops.where(is_long, shortened, values)
    is_finite = ops.all(ops.isfinite(values), axis=axes, keepdims=True)
    return ops.where(is_finite, clipped, ops.full_like(values, np.nan))


def _on_values(gradient: Any, change: Callable[[Any], Any]) -> Any:
    if not is_sliced(gradient):
        return change(gradient)
    return _distinct(change(gradient.values), gradient.indices, gradient)


def _summed(gradient: Any) -> Any:
    """Return a tensor, or slices with each row once; inside XLA, slices of every row of the table."""
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
    # unlike tf.unique, it always raises inside XLA
    rows, position, _ = tf.unique_with_counts(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, position, tf.size(rows))
    return _distinct(values, rows, gradient)


def _kept_slices(slices: Any, keeps: Any) -> Any:
    import tensorflow as tf

    from splitembed.lookup.context import in_xla

    kept = tf.gather(keeps, slices.indices)
    replicas = tf.distribute.get_replica_context()
    # TensorFlow crashes if no replica has a slice
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
            "A gradient must have a known number of rows: shape `(num_rows, ...)`, or slices with `dense_shape`."
        )
    return int(shape[0])


def _mask_of(rows: Any, num_rows: int) -> Any:
    """Return a bool tensor `(num_rows,)`."""
    if ops.is_tensor(rows) and keras.backend.standardize_dtype(rows.dtype) == "bool":
        if tuple(rows.shape) != (num_rows,):
            raise SplitError(f"A mask of rows must be of shape {(num_rows,)}. Received: shape {tuple(rows.shape)}.")
        return rows
    mask = np.zeros(num_rows, bool)
    mask[resolve_ids(ops.convert_to_numpy(rows) if ops.is_tensor(rows) else rows, num_rows)] = True
    return ops.convert_to_tensor(mask)


def _along_rows(mask: Any, values: Any) -> Any:
    return ops.reshape(mask, (-1,) + (1,) * (len(values.shape) - 1))
