"""The gradient of the trainable rows: what it is taken of, and the form in which it reaches an optimizer."""

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import tensorflow as tf

from splitembed.lookup.backend import Gradient


class _Wish(threading.local):
    """The backward pass of this thread that an optimizer of row slices asked for, and the variables it owns."""

    backward_pass: FrameType | None = None
    owns: Callable[[Any], bool] = bool


_wish = _Wish()


def want_sparse_gradients(loss: tf.Tensor, owns: Callable[[Any], bool]) -> tf.Tensor:
    """Returns the loss; its own gradient reaches `gradient="auto"` lookups as row slices.

    Args:
        loss: what an optimizer that sums row slices itself is to minimise.
        owns: whether a variable is the optimizer's; another optimizer's keeps a dense gradient.

    Returns:
        The same loss. The wish holds for the backward pass that begins with it, and for no other.
    """

    @tf.custom_gradient
    def marked(value: tf.Tensor) -> Any:
        def backward(upstream: tf.Tensor) -> tf.Tensor:
            _wish.backward_pass, _wish.owns = _backward_pass(), owns
            return upstream

        return tf.identity(value), backward

    return marked(loss)


def end_sparse_gradients() -> None:
    """Takes the wish of `want_sparse_gradients` back."""
    _wish.backward_pass = None


def _sparse_is_wanted(trainable: Any) -> bool:
    current = _backward_pass()
    return current is not None and current is _wish.backward_pass and _wish.owns(trainable)


def _backward_pass() -> FrameType | None:
    """The call in which TensorFlow runs this backward pass: a tape's, or that of `tf.gradients`; None outside any."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name not in ("imperative_grad", "_GradientsHelper"):
        frame = frame.f_back
    return frame


def differentiable(trainable: Any) -> tf.Tensor:
    """Return what the gradient is taken of: the handle of the variable, which the tape knows it by, never its value.

    Reading the value would copy the whole variable at each step: TensorFlow does so once rows of it were gathered.
    """
    # a variable has no single handle there, and no gradient is taken
    if tf.distribute.in_cross_replica_context():
        return tf.convert_to_tensor(trainable)
    # a tensor in place of the variable, as in Keras's stateless calls
    if not hasattr(trainable, "handle"):
        return trainable
    # this read makes the tape watch the variable
    tf.gather(trainable, tf.zeros([0], tf.int32))
    return trainable.handle


def row_gradient(upstream: tf.Tensor, trained: tf.Tensor, trainable: Any, gradient: Gradient) -> Any:
    """Return the gradient of the trainable rows, in either form with the repeated rows of this call summed.

    Args:
        upstream: float32 `(num_read, dim)`, the gradient of each row as read.
        trained: int32 `(num_read,)`, which rows were read.
        trainable: `tf.Variable` `(num_trainable, dim)`.
        gradient: the form; "auto" is the requested one.

    Returns:
        float32 `(num_trainable, dim)`, or `tf.IndexedSlices` of distinct rows.
    """
    num_trainable, dim = trainable.shape
    if gradient == "dense" or (gradient == "auto" and not _sparse_is_wanted(trainable)):
        return tf.math.unsorted_segment_sum(upstream, trained, num_trainable)
    distinct, place, _ = tf.unique_with_counts(trained)
    summed = tf.math.unsorted_segment_sum(upstream, place, tf.size(distinct))
    slices = tf.IndexedSlices(summed, distinct, tf.constant([num_trainable, dim]))
    slices.rows_are_distinct = True  # until the tape adds another call's slices, which makes a new object
    return slices


def dense_gradient(trainable: Any) -> tf.Tensor:
    """Return the trainable rows as a tensor whose gradient is dense: repeated rows are summed before an optimizer."""

    @tf.custom_gradient
    def read(rows: tf.Tensor) -> Any:
        return tf.identity(rows), tf.convert_to_tensor

    return read(tf.convert_to_tensor(trainable))
