"""Token ids in, embedding rows out: route each id to its table, gather, and put the trainable rows in place.

The gradient reaches trainable rows alone, and sums what repeats before any optimizer can square it.
"""

import sys
import threading
from collections.abc import Callable
from functools import cached_property
from types import FrameType
from typing import Any, Literal, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

from splitembed.errors import SplitEmbedError
from splitembed.lookup.constant import make_constant
from splitembed.lookup.context import exports_fixed_shapes
from splitembed.lookup.dropout import Drop
from splitembed.lookup.id_checks import check_ids
from splitembed.split.id_order import Order, order_of
from splitembed.split.table import SplitTable
from splitembed.tables import decode_rows

Gradient = Literal["auto", "dense", "sparse"]


class Constants(tf.Module):
    """Handles on what a lookup reads and no training changes, each on the split's own memory.

    `remap` is int32 `(num_tokens,)`; `frozen` is `(num_frozen, dim)` as stored; `scale`, with int8 rows, is float32
    `(num_frozen,)`, else None.

    Args:
        split: whose tables they are.
        turned: whether the frozen rows are to lie as columns, `(dim, num_frozen)`: for a table that is only multiplied.
    """

    def __init__(self, split: SplitTable, turned: bool = False) -> None:
        super().__init__()
        self.num_tokens, self.num_frozen, self.dim = split.num_tokens, split.num_frozen, split.dim
        self.turned, self._split = turned, split
        self.remap = make_constant(split.remap, "remap")
        self.frozen = make_constant(np.ascontiguousarray(split.frozen.T) if turned else split.frozen, "frozen")
        self.scale = None if split.scale is None else make_constant(split.scale, "scale")
        self.widened: tf.Variable | None = None  # for exporters, while they are at work

    @cached_property
    def order(self) -> Order | None:
        """What trains, where the frozen rows are in id order."""
        return order_of(self._split)

    def read_remap(self) -> tf.Tensor:
        """int32 `(num_tokens,)`, where it lies."""
        return self.remap.read_value()

    def read_stored(self) -> tf.Tensor:
        """The frozen rows where they lie, as they are stored: `(num_frozen, dim)`, or if turned `(dim, num_frozen)`."""
        rows = self.frozen.read_value()
        return tf.bitcast(rows, tf.bfloat16) if rows.dtype == tf.uint16 else rows

    def read(self, rows: tf.Tensor) -> tf.Tensor:
        """Gathers frozen rows, `rows.shape + (dim,)`, into memory of their own, widened to float32."""
        values = self.gather(rows)
        return keras.ops.moveaxis(values, 0, -1) if self.turned else values

    def gather(self, rows: tf.Tensor) -> tf.Tensor:
        """As `read`, but if turned `(dim,) + rows.shape`."""
        axis = 1 if self.turned else 0
        values = tf.gather(self._to_read().read_value(), rows, axis=axis)
        if values.dtype == tf.uint16:
            values = tf.bitcast(values, tf.bfloat16)
        values = tf.cast(values, tf.float32)
        return (
            values
            if self.scale is None
            else values * tf.expand_dims(tf.gather(self.scale.read_value(), rows), axis - 1)
        )

    def _to_read(self) -> tf.Variable:
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
    ids: tf.Tensor,
    constants: Constants,
    trainable: Any,
    gradient: Gradient = "auto",
    drop: Drop | None = None,
    in_place: bool = True,
) -> tf.Tensor:
    """Reads one row for each id.

    Args:
        ids: integers, or whole floats that are exact for every id; any shape.
        constants: the remap and the frozen rows.
        trainable: `tf.Variable` `(num_trainable, dim)` float32.
        gradient: the form in which the gradient reaches `trainable`: "dense", right for every optimizer; "sparse",
            one slice for each distinct row of this call, for `LazyAdam`; "auto", sparse where `LazyAdam` asks for it.
        drop: says which occurrences of trainable rows are replaced by zeros, and get no gradient.
        in_place: whether trainable rows are written over gathered ones where these lie, which is the fastest; if not,
            the gathered rows are copied once. TensorFlow fuses less in a graph that has an operation in place, wherever
            in it, so that with one a model's other layers may round in another way.

    Returns:
        `ids.shape + (dim,)` float32.

    Raises:
        TokenIdError: an id out of range (in a graph, `tf.errors.InvalidArgumentError` with the same message).
    """
    rows, checks = route(tf.reshape(ids, [-1]), constants)
    values = _read_rows(rows, checks, constants, trainable, gradient, drop, in_place)
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
    in_place: bool,
) -> tf.Tensor:
    """Reads `(num_ids, dim)` from both tables; the gradient goes to `trainable` alone."""
    with tf.control_dependencies(checks):
        trained = trained_places(rows, drop)

    @tf.custom_gradient
    def read(source: tf.Tensor) -> Any:
        def backward(upstream: tf.Tensor) -> Any:
            return row_gradient(tf.gather(upstream, trained.place), trained.row, trainable, gradient)

        learned = gather_trained(source, trained.row)
        return _both_tables(rows, trained, learned, constants, _write_in_place if in_place else _write), backward

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


def _both_tables(
    rows: tf.Tensor, trained: Trained, learned: tf.Tensor, constants: Constants, write: Callable[..., tf.Tensor]
) -> tf.Tensor:
    """Gathers from the constant for every id, then writes the trainable rows over their places, zeros if dropped."""
    dim = constants.dim
    if constants.num_frozen == 0:
        if trained.dropped is None:
            return learned
        return tf.scatter_nd(trained.place[:, None], learned, [tf.size(rows, tf.int64), dim])
    values = constants.read(tf.maximum(rows, 0))
    if trained.dropped is not None:
        values = write(values, trained.dropped, tf.zeros([tf.size(trained.dropped), dim]))
    return write(values, trained.place, learned)


def _write_in_place(values: tf.Tensor, places: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Into the memory of gathered rows, which are nobody else's."""
    return tf.raw_ops.InplaceUpdate(x=values, i=tf.cast(places, tf.int32), v=rows)


def _write(values: tf.Tensor, places: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    return tf.tensor_scatter_nd_update(values, places[:, None], rows)


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
