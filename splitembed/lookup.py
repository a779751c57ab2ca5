"""Token ids in, embedding rows out: route each id to its table, gather, and put the trainable rows in place.

The gradient reaches trainable rows alone, and sums what repeats before any optimizer can square it.
"""

import contextlib
import threading
from collections.abc import Callable
from typing import Any, Literal

import tensorflow as tf
from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

from splitembed.errors import SplitEmbedError, SplitError, TokenIdError
from splitembed.vocabulary import out_of_range

Gradient = Literal["auto", "dense", "sparse"]

_WIDER = {  # tf.gather takes int32 and int64 alone
    tf.int8: tf.int32,
    tf.uint8: tf.int32,
    tf.int16: tf.int32,
    tf.uint16: tf.int32,
    tf.uint32: tf.int64,
    tf.uint64: tf.int64,  # 2**63 and above turn negative, and are refused as such
}
_UNSIGNED = {tf.int32: tf.uint32, tf.int64: tf.uint64}
_LARGEST_EXACT = {tf.float64: 2**53, tf.float32: 2**24, tf.float16: 2**11, tf.bfloat16: 2**8}


class _SparseWanted(threading.local):
    """Whether the gradient being computed in this thread goes to an optimizer that sums row slices itself."""

    value = False


_sparse_wanted = _SparseWanted()


def want_sparse_gradients(loss: tf.Tensor) -> tf.Tensor:
    """Returns the loss; its gradient reaches `gradient="auto"` lookups as row slices.

    The wish is made when the backward pass begins, and ends with `end_sparse_gradients` or the next lookup.
    """

    @tf.custom_gradient
    def marked(value: tf.Tensor) -> Any:
        def backward(upstream: tf.Tensor) -> tf.Tensor:
            _sparse_wanted.value = True
            return upstream

        return tf.identity(value), backward

    return marked(loss)


def end_sparse_gradients() -> None:
    """Takes the wish of `want_sparse_gradients` back."""
    _sparse_wanted.value = False


def look_up(
    ids: tf.Tensor, remap: tf.Variable, frozen: tf.Variable, trainable: Any, gradient: Gradient = "auto"
) -> tf.Tensor:
    """Reads one row for each id.

    Args:
        ids: integers, or whole floats that are exact for every id; any shape.
        remap: handle on `(num_tokens,)` int32.
        frozen: handle on `(num_frozen, dim)`.
        trainable: `tf.Variable` `(num_trainable, dim)` float32.
        gradient: the form in which the gradient reaches `trainable`: "dense", right for every optimizer; "sparse",
            one slice for each distinct row of this call, for `LazyAdam`; "auto", sparse where `LazyAdam` asks for it.

    Returns:
        `ids.shape + (dim,)` float32.

    Raises:
        TokenIdError: an id out of range (in a graph, `tf.errors.InvalidArgumentError` with the same message).
    """
    _refuse_xla()
    end_sparse_gradients()  # a new forward pass: an older wish is stale
    flat = tf.reshape(check_ids(ids, remap.shape[0]), [-1])
    rows = tf.gather(remap.read_value(), flat)
    values = _read_rows(rows, frozen, trainable, gradient)
    return tf.reshape(values, tf.concat([tf.shape(ids), [frozen.shape[1]]], 0))


def _read_rows(rows: tf.Tensor, frozen: tf.Variable, trainable: Any, gradient: Gradient) -> tf.Tensor:
    """Reads `(num_ids, dim)` from both tables; the gradient goes to `trainable` alone."""
    place = tf.squeeze(tf.where(rows < 0), 1)
    trained = tf.bitwise.invert(tf.gather(rows, place))

    @tf.custom_gradient
    def read(source: tf.Tensor) -> Any:
        def backward(upstream: tf.Tensor) -> Any:
            return _row_gradient(tf.gather(upstream, place), trained, trainable.shape, gradient)

        return _both_tables(rows, place, _gather_trained(source, trained), frozen), backward

    return read(_differentiable(trainable))


def _differentiable(trainable: Any) -> tf.Tensor:
    """What the gradient is taken of: the variable's handle, which the tape knows it by, never its value.

    Reading the value would copy the whole variable at each step: TensorFlow does so once rows of it were gathered.
    """
    if not hasattr(trainable, "handle"):
        return trainable  # a tensor in the variable's place, as in Keras's stateless calls
    if tf.distribute.in_cross_replica_context():
        return tf.convert_to_tensor(trainable)  # no one handle; no gradient is taken there
    tf.gather(trainable, tf.zeros([0], tf.int32))  # has the tape watch the variable
    return trainable.handle


def _gather_trained(source: tf.Tensor, trained: tf.Tensor) -> tf.Tensor:
    if source.dtype != tf.resource:
        return tf.gather(source, trained)
    return tf.raw_ops.ResourceGather(resource=source, indices=trained, dtype=tf.float32)


def _both_tables(rows: tf.Tensor, place: tf.Tensor, learned: tf.Tensor, frozen: tf.Variable) -> tf.Tensor:
    """Gathers from the constant for every id, then writes the trainable rows over their places."""
    if frozen.shape[0] == 0:
        return learned
    values = tf.gather(frozen.read_value(), tf.maximum(rows, 0))
    # in place, as the gathered rows are nobody else's: tf.tensor_scatter_nd_update would copy them all
    return tf.raw_ops.InplaceUpdate(x=values, i=tf.cast(place, tf.int32), v=learned)


def _row_gradient(upstream: tf.Tensor, trained: tf.Tensor, shape: Any, gradient: Gradient) -> Any:
    """The gradient of the trainable rows: what repeats in this call is summed, whichever form leaves."""
    num_trainable, dim = shape
    if gradient == "dense" or (gradient == "auto" and not _sparse_wanted.value):
        return tf.math.unsorted_segment_sum(upstream, trained, num_trainable)
    distinct, place, _ = tf.unique_with_counts(trained)
    summed = tf.math.unsorted_segment_sum(upstream, place, tf.size(distinct))
    return tf.IndexedSlices(summed, distinct, tf.constant([num_trainable, dim]))


def check_ids(ids: tf.Tensor, num_tokens: int) -> tf.Tensor:
    """Refuses ids out of range before any cast narrows them.

    Returns:
        The ids as int32 or int64.
    """
    if ids.dtype.is_floating:
        ids = _whole_ids(ids, num_tokens)
    elif not ids.dtype.is_integer:
        raise SplitError(f"`ids` must be integers. Received: a tensor of dtype {ids.dtype.name}.")
    wide = tf.cast(ids, _WIDER.get(ids.dtype, ids.dtype))
    largest = tf.reduce_max(tf.bitcast(wide, _UNSIGNED[wide.dtype]))  # a negative id is a huge unsigned one
    worst = largest if ids.dtype.is_unsigned else tf.bitcast(largest, wide.dtype)
    with _required(largest < num_tokens, worst, lambda worst: out_of_range(worst, num_tokens), TokenIdError):
        return tf.identity(wide)


def _whole_ids(ids: tf.Tensor, num_tokens: int) -> tf.Tensor:
    """Float ids, as `keras.Input(shape)` without a dtype hands them over, as int64; refused unless exact."""
    too_narrow = refusal_of_floats(ids.dtype, num_tokens)
    if too_narrow:  # in a graph when it runs, not when it is traced: Keras traces with float placeholders for integers
        with _required(tf.constant(False), tf.constant(0), lambda _: too_narrow, SplitError):
            return tf.zeros(tf.shape(ids), tf.int64)
    whole = tf.cast(ids, tf.int64)  # NaN and infinity become some integer, which is not equal to them
    other = tf.cast(tf.boolean_mask(ids, tf.cast(whole, ids.dtype) != ids)[:1], tf.float64)
    name = ids.dtype.name
    with _required(tf.size(other) == 0, other, lambda other: _not_whole(other, name, num_tokens), SplitError):
        return tf.identity(whole)


def _not_whole(token_id: Any, dtype: str, num_tokens: int) -> str:
    return f"Token ids must be whole numbers from 0 to {num_tokens - 1}. Received: {token_id}, of dtype {dtype}."


def refusal_of_floats(dtype: tf.DType, num_tokens: int) -> str:
    """Says why a dtype cannot hold every id exactly; an empty string where it can, as every integer dtype can."""
    if dtype.is_integer or num_tokens <= _LARGEST_EXACT.get(dtype, 0):
        return ""
    return (
        f"`ids` of dtype {dtype.name} cannot hold every id below {num_tokens} exactly. "
        f'Give the model integers: keras.Input(shape, dtype="int32").'
    )


def _required(holds: tf.Tensor, value: tf.Tensor, message: Callable[[Any], str], kind: type[SplitEmbedError]) -> Any:
    """Raises now if it does not hold; in a graph, the context in which to make what waits for it to hold."""
    is_float = value.dtype.is_floating
    if tf.executing_eagerly():
        if not holds:
            raise kind(message(format(value.numpy().item(), "g" if is_float else "d")))
        return contextlib.nullcontext()
    before, *after = message("\n").split("\n")
    text = tf.strings.as_string(value, shortest=is_float)
    parts = [before, *(part for each in after for part in (text, each))]
    return tf.control_dependencies([tf.debugging.Assert(holds, [tf.strings.join(parts)])])


def _refuse_xla() -> None:
    if not tf.executing_eagerly() and GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()):
        raise SplitEmbedError(
            "SplitEmbedding's lookup depends on how many distinct rows a batch has, which XLA would compile into code "
            "that returns other tokens' rows. Compile the model with jit_compile=False."
        )
