"""Token ids in, embedding rows out: route each id to its table, gather, and put the trainable rows in place.

The gradient reaches trainable rows alone, and sums what repeats before any optimizer can square it.
"""

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Literal, NamedTuple

import tensorflow as tf
from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

from splitembed.constant import make_constant
from splitembed.dropout import Drop
from splitembed.errors import SplitEmbedError
from splitembed.ids import check_ids
from splitembed.split import SplitTable
from splitembed.tables import decode_rows
from splitembed.tracing import exports_fixed_shapes

Gradient = Literal["auto", "dense", "sparse"]


class Constants(tf.Module):
    """Handles on what a lookup reads and no training changes, each on the split's own memory.

    `remap` is int32 `(num_tokens,)`; `frozen` is `(num_frozen, dim)` as stored; `scale`, with int8 rows, is float32
    `(num_frozen,)`, else None.
    """

    def __init__(self, split: SplitTable) -> None:
        super().__init__()
        self.num_tokens, self.num_frozen = split.num_tokens, split.num_frozen
        self.remap = make_constant(split.remap, "remap")
        self.frozen = make_constant(split.frozen, "frozen")
        self.scale = None if split.scale is None else make_constant(split.scale, "scale")
        self.widened: tf.Variable | None = None  # for exporters, while they are at work

    def read_remap(self) -> tf.Tensor:
        """int32 `(num_tokens,)`, where it lies."""
        return self.remap.read_value()

    def read(self, rows: tf.Tensor) -> tf.Tensor:
        """Gathers frozen rows, `rows.shape + (dim,)`, into memory of their own, widened to float32."""
        values = tf.gather(self._stored().read_value(), rows)
        if values.dtype == tf.uint16:
            values = tf.bitcast(values, tf.bfloat16)
        values = tf.cast(values, tf.float32)
        return values if self.scale is None else values * tf.expand_dims(tf.gather(self.scale.read_value(), rows), -1)

    def _stored(self) -> tf.Variable:
        """The frozen rows; as float32 where they are 16 bits wide and exported: no format can gather all of those."""
        if self.frozen.dtype not in (tf.float16, tf.uint16) or not exports_fixed_shapes():
            self.widened = None
            return self.frozen
        if self.widened is None:
            with tf.init_scope():
                self.widened = make_constant(decode_rows(self.frozen.numpy()), "frozen")
        return self.widened


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


class Trained(NamedTuple):
    """The occurrences of trainable rows.

    `place`, int64, and `row`, int32, `(num_read,)`: where among the ids to put which row. `dropped`, int64
    `(num_dropped,)`: where zeros take its place; None where nothing is dropped.
    """

    place: tf.Tensor
    row: tf.Tensor
    dropped: tf.Tensor | None = None


def look_up(
    ids: tf.Tensor, constants: Constants, trainable: Any, gradient: Gradient = "auto", drop: Drop | None = None
) -> tf.Tensor:
    """Reads one row for each id.

    Args:
        ids: integers, or whole floats that are exact for every id; any shape.
        constants: the remap and the frozen rows.
        trainable: `tf.Variable` `(num_trainable, dim)` float32.
        gradient: the form in which the gradient reaches `trainable`: "dense", right for every optimizer; "sparse",
            one slice for each distinct row of this call, for `LazyAdam`; "auto", sparse where `LazyAdam` asks for it.
        drop: says which occurrences of trainable rows are replaced by zeros, and get no gradient.

    Returns:
        `ids.shape + (dim,)` float32.

    Raises:
        TokenIdError: an id out of range (in a graph, `tf.errors.InvalidArgumentError` with the same message).
    """
    rows, checks = route(tf.reshape(ids, [-1]), constants)
    values = _read_rows(rows, checks, constants, trainable, gradient, drop)
    if ids.shape.is_fully_defined():
        return tf.reshape(values, [*ids.shape, trainable.shape[1]])
    return tf.reshape(values, tf.concat([tf.shape(ids), [trainable.shape[1]]], 0))


def route(ids: tf.Tensor, constants: Constants) -> tuple[tf.Tensor, list[tf.Operation]]:
    """Turns flat ids into rows of the two tables, coded as in `remap`.

    Returns:
        int32 `(num_ids,)`, and the checks of the ids that must have run before a row leaves: the rows need not wait.
    """
    refuse_xla()
    end_sparse_gradients()  # a new forward pass: an older wish is stale
    ids, checks = check_ids(ids, constants.num_tokens)
    # an id out of range reads nothing, whatever its check finds later; tf.gather_nd is also the faster one here
    return tf.gather_nd(constants.read_remap(), ids[:, None], bad_indices_policy="IGNORE"), checks


def _read_rows(
    rows: tf.Tensor,
    checks: list[tf.Operation],
    constants: Constants,
    trainable: Any,
    gradient: Gradient,
    drop: Drop | None,
) -> tf.Tensor:
    """Reads `(num_ids, dim)` from both tables; the gradient goes to `trainable` alone."""
    with tf.control_dependencies(checks):
        trained = trained_places(rows, drop)

    @tf.custom_gradient
    def read(source: tf.Tensor) -> Any:
        def backward(upstream: tf.Tensor) -> Any:
            return row_gradient(tf.gather(upstream, trained.place), trained.row, trainable, gradient)

        return _both_tables(rows, trained, gather_trained(source, trained.row), constants), backward

    return read(differentiable(trainable))


def trained_places(rows: tf.Tensor, drop: Drop | None = None) -> Trained:
    """Where the rows are trainable ones, and which rows of the trainable table they are, less what is dropped."""
    place, dropped = tf.squeeze(tf.where(rows < 0), 1), None
    if drop is not None:
        is_dropped = tf.cast(drop([tf.size(place)]), tf.int32)
        place, dropped = tf.dynamic_partition(place, is_dropped, 2)
    return Trained(place, tf.bitwise.invert(tf.gather(rows, place)), dropped)


def differentiable(trainable: Any) -> tf.Tensor:
    """What the gradient is taken of: the variable's handle, which the tape knows it by, never its value.

    Reading the value would copy the whole variable at each step: TensorFlow does so once rows of it were gathered.
    """
    if tf.distribute.in_cross_replica_context():
        return tf.convert_to_tensor(trainable)  # no one handle; no gradient is taken there
    if not hasattr(trainable, "handle"):
        return trainable  # a tensor in the variable's place, as in Keras's stateless calls
    tf.gather(trainable, tf.zeros([0], tf.int32))  # has the tape watch the variable
    return trainable.handle


def gather_trained(source: tf.Tensor, trained: tf.Tensor) -> tf.Tensor:
    """Gathers trainable rows from what `differentiable` gave."""
    if source.dtype != tf.resource:
        return tf.gather(source, trained)
    return tf.raw_ops.ResourceGather(resource=source, indices=trained, dtype=tf.float32)


def _both_tables(rows: tf.Tensor, trained: Trained, learned: tf.Tensor, constants: Constants) -> tf.Tensor:
    """Gathers from the constant for every id, then writes the trainable rows over their places, zeros if dropped."""
    dim = constants.frozen.shape[1]
    if constants.num_frozen == 0:
        if trained.dropped is None:
            return learned
        return tf.scatter_nd(trained.place[:, None], learned, [tf.size(rows, tf.int64), dim])
    values = constants.read(tf.maximum(rows, 0))
    # in place, as the gathered rows are nobody else's: tf.tensor_scatter_nd_update would copy them all
    if trained.dropped is not None:
        zeros = tf.zeros([tf.size(trained.dropped), dim])
        values = tf.raw_ops.InplaceUpdate(x=values, i=tf.cast(trained.dropped, tf.int32), v=zeros)
    return tf.raw_ops.InplaceUpdate(x=values, i=tf.cast(trained.place, tf.int32), v=learned)


def row_gradient(upstream: tf.Tensor, trained: tf.Tensor, trainable: Any, gradient: Gradient) -> Any:
    """The gradient of the trainable rows: what repeats in this call is summed, whichever form leaves."""
    num_trainable, dim = trainable.shape
    if gradient == "dense" or (gradient == "auto" and not _sparse_is_wanted(trainable)):
        return tf.math.unsorted_segment_sum(upstream, trained, num_trainable)
    distinct, place, _ = tf.unique_with_counts(trained)
    summed = tf.math.unsorted_segment_sum(upstream, place, tf.size(distinct))
    slices = tf.IndexedSlices(summed, distinct, tf.constant([num_trainable, dim]))
    slices.rows_are_distinct = True  # until the tape adds another call's slices, which makes a new object
    return slices


def dense_gradient(trainable: Any) -> tf.Tensor:
    """The trainable rows as a tensor whose gradient is dense: repeated rows are summed before an optimizer has them."""

    @tf.custom_gradient
    def read(rows: tf.Tensor) -> Any:
        return tf.identity(rows), tf.convert_to_tensor

    return read(tf.convert_to_tensor(trainable))


def in_xla() -> bool:
    """Whether XLA will compile what is being traced."""
    return not tf.executing_eagerly() and GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())


def refuse_xla() -> None:
    """Raises inside an XLA context, and for exporters to formats without a dynamic lookup."""
    if exports_fixed_shapes():
        raise SplitEmbedError(
            'ONNX and TFLite have no dynamic lookup: leave `lookup` at "auto", which is static there.'
        )
    if in_xla():
        raise SplitEmbedError(
            "The dynamic lookup depends on how many trained rows a batch has, which XLA would compile into code that "
            'returns other tokens\' rows. Leave `lookup` at "auto", which is static there, or compile the model with '
            "jit_compile=False."
        )
