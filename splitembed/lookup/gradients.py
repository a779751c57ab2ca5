"""The gradient of the trainable rows: what it is taken of, and the form in which it reaches an optimizer."""

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any
from uuid import uuid4

import tensorflow as tf

from splitembed import keras_compat
from splitembed.lookup.backend import Gradient


class DistinctSlices(tf.IndexedSlices):
    """Row slices in which no row repeats. A tape that adds slices of two calls returns plain `tf.IndexedSlices`."""


# tells which variables get row slices; each thread, and so each replica of a strategy, has its own value
_request: ContextVar[Callable[[Any], bool] | None] = ContextVar("request for row slices", default=None)


def request_slices(owns: Callable[[Any], bool]) -> None:
    """Request row slices as the gradient of the rows of an optimizer, until `end_request` or the next forward pass.

    A later request replaces this one. Without a request the gradient is dense, which is right for every optimizer.

    Args:
        owns: whether a variable belongs to the optimizer; the gradient of others stays dense.
    """
    _request.set(owns)


def end_request() -> None:
    """End the request for row slices, if there is one."""
    _request.set(None)


def _is_requested(trainable: Any) -> bool:
    owns = _request.get()
    return owns is not None and owns(trainable)


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
        float32 `(num_trainable, dim)`, or `DistinctSlices`.
    """
    num_trainable, dim = trainable.shape
    if gradient == "dense" or (gradient == "auto" and not _is_requested(trainable)):
        return tf.math.unsorted_segment_sum(upstream, trained, num_trainable)
    distinct, place, _ = tf.unique_with_counts(trained)
    summed = tf.math.unsorted_segment_sum(upstream, place, tf.size(distinct))
    return DistinctSlices(summed, distinct, tf.constant([num_trainable, dim]))


def dense_gradient(trainable: Any) -> tf.Tensor:
    """Return the trainable rows as a tensor whose gradient is dense: repeated rows are summed before an optimizer."""
    # the gradient of a reshape is dense
    return tf.reshape(tf.convert_to_tensor(trainable), trainable.shape)


def with_gradient(function: Callable[..., Any], *inputs: Any) -> tf.Tensor:
    """Return the tensor that a function makes of the inputs, with the gradient that it defines.

    This is `tf.custom_gradient(function)(*inputs)`, for a function of one output that reads no variable. In a graph,
    that decorator leaves each gradient function in a registry of the process, and with it the graph and the tables that
    it reads. Here the graph keeps the function, in a collection, and the registry refers to the graph weakly.

    Args:
        function: returns a tensor, and a function of the tensor's gradient that returns those of the inputs.
        inputs: tensors or arrays.
    """
    if tf.executing_eagerly():
        return tf.custom_gradient(function)(*inputs)
    tensors = [tf.convert_to_tensor(each) for each in inputs]
    made, gradient = function(*tensors)

    def backward(upstream: Any) -> list[Any]:
        return list(tf.nest.flatten(gradient(upstream)))

    graph, name = tf.compat.v1.get_default_graph(), f"SplitEmbedGradient-{uuid4().hex}"
    graph.add_to_collection(name, backward)
    reference = weakref.ref(graph)

    @tf.RegisterGradient(name)
    def of_operation(operation: Any, upstream: Any, *unused: Any) -> list[Any]:
        graph = reference()
        if graph is None:
            raise LookupError("The graph of this gradient is gone. Trace the function again.")
        return [None, *graph.get_collection(name)[0](upstream)]

    with graph.gradient_override_map({"IdentityN": name}):
        result: tf.Tensor = tf.identity_n([made, *tensors])[0]
    # a tape knows no overrides
    keras_compat.record_gradient(result, tensors, backward)
    return result
