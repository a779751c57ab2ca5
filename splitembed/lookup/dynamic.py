"""The dynamic form of the lookup, on TensorFlow: frozen rows are gathered for all ids, and trainable ones written over.

The gradient reaches trainable rows alone.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from splitembed.errors import SplitEmbedError
from splitembed.lookup.backend import Drop, Gradient
from splitembed.lookup.constant import Constants
from splitembed.lookup.context import exports_fixed_shapes, in_xla
from splitembed.lookup.gradients import differentiable, end_request, row_gradient, with_gradient
from splitembed.lookup.id_checks_tensorflow import check_ids


class Trained(NamedTuple):
    """The occurrences of trainable rows among flat ids.

    `position`, int64, and `row`, int32, both `(num_read,)`: the position of each occurrence, and its row in the
    trainable table. `dropped`, int64 `(num_dropped,)`: the positions that get zeros; None without dropout.
    """

    position: tf.Tensor
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
    """Return one row for each id.

    Args:
        ids: integers, or whole floats that are exact for every id; any shape.
        constants: the remap and the frozen rows.
        trainable: `tf.Variable` `(num_trainable, dim)` float32.
        gradient: the form in which the gradient reaches `trainable`: "dense", right for every optimizer; "sparse",
            one slice for each distinct row of this call, for `LazyAdam`; "auto", sparse where `LazyAdam` requests it.
        drop: draws which occurrences of trainable rows are replaced by zeros, and get no gradient.
        in_place: whether to write trainable rows into the memory of the gathered ones, which is the fastest; if not,
            the gathered rows are copied once. TensorFlow fuses less in a graph that has an operation in place, wherever
            in it, so that with one the other layers of a model may round differently.

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
    """Return the rows of flat ids in the two tables, coded as in `remap`.

    Returns:
        int32 `(num_ids,)`, and the checks of the ids that must have run before a row is used; the rows need not wait.

    Raises:
        SplitEmbedError: XLA or an exporter to fixed shapes traces the call.
    """
    _refuse_fixed_shapes(ids)
    # the request of an optimizer belongs to the forward pass before this one
    end_request()
    ids, checks = check_ids(ids, constants.num_tokens)
    # an id out of range reads nothing, even before its check has run; tf.gather_nd is also faster here than tf.gather
    return tf.gather_nd(constants.read_remap(), ids[:, None], bad_indices_policy="IGNORE"), checks


def _refuse_fixed_shapes(ids: tf.Tensor) -> None:
    if exports_fixed_shapes(ids):
        raise SplitEmbedError(
            'ONNX and LiteRT have no dynamic lookup: leave `lookup` at "auto", which is static there.'
        )
    if in_xla():
        raise SplitEmbedError(
            "The dynamic lookup depends on how many trainable rows a batch has, which XLA would compile into code that "
            'returns other tokens\' rows. Leave `lookup` at "auto", which is static there, or compile the model with '
            "jit_compile=False."
        )


def _read_rows(
    rows: tf.Tensor,
    checks: list[tf.Operation],
    constants: Constants,
    trainable: Any,
    gradient: Gradient,
    drop: Drop | None,
    in_place: bool,
) -> tf.Tensor:
    """Return `(num_ids, dim)` from both tables; only `trainable` gets a gradient."""
    with tf.control_dependencies(checks):
        trained = find_trained(rows, drop)

    def read(source: tf.Tensor) -> Any:
        def backward(upstream: tf.Tensor) -> Any:
            return row_gradient(tf.gather(upstream, trained.position), trained.row, trainable, gradient)

        learned = gather_trained(source, trained.row)
        return _both_tables(rows, trained, learned, constants, _write_in_place if in_place else _write), backward

    return with_gradient(read, differentiable(trainable))


def find_trained(rows: tf.Tensor, drop: Drop | None = None) -> Trained:
    """Return where the rows are trainable ones, and which rows of the trainable table these are."""
    position, dropped = tf.squeeze(tf.where(rows < 0), 1), None
    if drop is not None:
        is_dropped = tf.cast(drop([tf.size(position)]), tf.int32)
        position, dropped = tf.dynamic_partition(position, is_dropped, 2)
    return Trained(position, tf.bitwise.invert(tf.gather(rows, position)), dropped)


def gather_trained(source: tf.Tensor, trained: tf.Tensor) -> tf.Tensor:
    """Gather trainable rows from what `gradients.differentiable` returned."""
    if source.dtype != tf.resource:
        return tf.gather(source, trained)
    return tf.raw_ops.ResourceGather(resource=source, indices=trained, dtype=tf.float32)


def _both_tables(
    rows: tf.Tensor, trained: Trained, learned: tf.Tensor, constants: Constants, write: Callable[..., tf.Tensor]
) -> tf.Tensor:
    """Gather a frozen row for every id, then write the trainable rows, or zeros if dropped, over theirs."""
    dim = constants.dim
    if constants.num_frozen == 0:
        if trained.dropped is None:
            return learned
        return tf.scatter_nd(trained.position[:, None], learned, [tf.size(rows, tf.int64), dim])
    values = constants.read(tf.maximum(rows, 0))
    if trained.dropped is not None:
        values = write(values, trained.dropped, tf.zeros([tf.size(trained.dropped), dim]))
    return write(values, trained.position, learned)


def _write_in_place(values: tf.Tensor, positions: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Write rows into the memory of gathered ones, which nothing else reads."""
    return tf.raw_ops.InplaceUpdate(x=values, i=tf.cast(positions, tf.int32), v=rows)


def _write(values: tf.Tensor, positions: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    return tf.tensor_scatter_nd_update(values, positions[:, None], rows)
