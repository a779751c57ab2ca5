"""The gradients that would reach rows of a model's table, measured in one pass over data that trains nothing.

A row's gradient is kept as a projection to a few numbers, so that memory does not depend on the dim.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from splitembed.errors import SplitError, shortened
from splitembed.layers.embedding import LayerCall, SplitEmbedding
from splitembed.lookup.bags import Bags

# numbers that are kept of each row's gradient: the norm of a wider one is within about 15 %
WIDTH = 32
# examples in a batch of arrays; a tf.data.Dataset has its own batches
BATCH_SIZE = 128


class RowGradients(NamedTuple):
    """The gradients that reached each token, all `(num_tokens,)`.

    Args:
        counts: int64, the occurrences of the token.
        summed: float64, the squared norm of the sum of its gradients.
        squares: float64, the sum of the squared norms of the gradients of its single occurrences.
    """

    counts: NDArray[np.int64]
    summed: NDArray[np.float64]
    squares: NDArray[np.float64]


class _Part(NamedTuple):
    """Distinct ids `(num_ids,)`, with the sum of their projected gradients, of the squared norms, and their counts."""

    ids: Any
    summed: Any
    squares: Any
    count: Any


def measure_gradients(
    model: Any, layer: SplitEmbedding, data: Any, is_measured: NDArray[np.bool_], seed: int
) -> RowGradients:
    """Run a model forward and backward once over data, as in inference, and leave it as it was.

    The loss of each batch is multiplied by the number of its examples, so that all examples count the same where the
    loss is a mean over the batch, as Keras's losses are by default.

    Args:
        model: a compiled model.
        layer: a split layer in it. All its calls add to a row's gradient, also those with `reverse=True`.
        data: batches or arrays, as for `choose_rows`.
        is_measured: `(num_tokens,)` which tokens to measure; the others stay zero.
        seed: of the projection. The gradients of at most 32 dimensions are kept exactly.

    Raises:
        SplitError: the model does not call the layer where its gradient can be taken; or a gradient is not finite.
    """
    projection = _projection(layer.output_dim, seed)
    total = np.zeros((layer.input_dim, projection.shape[1]), np.float32)
    counts, squares = np.zeros(layer.input_dim, np.int64), np.zeros(layer.input_dim)
    measured, scale = tf.constant(is_measured), _loss_scale(model, layer)

    def step(batch: Any) -> list[_Part]:
        calls, gradients = _call_gradients(model, layer, batch, scale)
        with tf.control_dependencies(gradients):
            return [
                (_of_logits if call.is_reverse else _of_rows)(layer, call, gradient / scale, projection, measured)
                for call, gradient in zip(calls, gradients, strict=True)
            ]

    run: Callable[[Any], list[_Part]] = step
    if not model.run_eagerly:
        run = tf.function(step, autograph=False, reduce_retracing=True)
    with _state_kept(model):
        for number, batch in enumerate(_batches(data), start=1):
            size = keras.tree.flatten(batch)[0].shape[0]
            for part in run(batch):
                ids, summed, squared, counted = (np.asarray(each) for each in part)
                if not np.isfinite(squared).all():
                    raise _not_finite(number)
                total[ids] += size * summed
                squares[ids] += size**2 * squared
                counts[ids] += counted
    return RowGradients(counts, np.einsum("ij,ij->i", total, total, dtype=np.float64), squares)


def _projection(dim: int, seed: int) -> NDArray[np.float32]:
    """Return `(dim, min(dim, 32))`, with orthogonal columns that keep a squared norm in the mean; exactly if square."""
    if dim <= WIDTH:
        return np.eye(dim, dtype=np.float32)
    columns, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, WIDTH)))
    return (columns * np.sqrt(dim / WIDTH)).astype(np.float32)


def _loss_scale(model: Any, layer: SplitEmbedding) -> Any:
    """Return the factor of the loss that keeps float16 gradients from vanishing."""
    scale = getattr(model.optimizer, "dynamic_scale", None)
    # training looks for the largest scale that works: an eighth of it does not overflow
    return 1.0 if scale is None or layer.compute_dtype != "float16" else float(scale) / 8


def _call_gradients(model: Any, layer: SplitEmbedding, batch: Any, scale: float) -> tuple[list[LayerCall], list[Any]]:
    """Return the calls of the layer for a batch, and the gradient of the scaled loss at each call's output."""
    calls: list[LayerCall] = []
    with tf.GradientTape(watch_accessed_variables=False) as tape:

        def watch(call: LayerCall) -> None:
            output = _values(call.output)
            tape.watch(output)
            calls.append(call._replace(output=output))

        x, y, weight = keras.utils.unpack_x_y_sample_weight(batch)
        with layer.observed(watch):
            predicted = model(x, training=False)
        loss = scale * model.compute_loss(x=x, y=y, y_pred=predicted, sample_weight=weight)
    if not calls or any(_is_hidden(call.output) for call in calls):
        raise SplitError(
            f"The model {model.name!r} does not call the layer {layer.name!r}, or calls it in a loop or in a function "
            "that it compiles, where no gradient can be taken. Call the layer before the loop, and on all ids at once."
        )
    outputs = [call.output for call in calls]
    gradients = tape.gradient(loss, outputs, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return calls, [tf.cast(each, tf.float32) for each in gradients]


def _is_hidden(output: Any) -> bool:
    """Return whether a tensor belongs to a graph inside the present one, such as the body of a loop."""
    if not tf.is_symbolic_tensor(output):
        return False
    return tf.executing_eagerly() or output.graph is not tf.compat.v1.get_default_graph()


def _of_rows(layer: Any, call: LayerCall, gradient: Any, projection: Any, is_measured: Any) -> _Part:
    """Return the gradients of the occurrences of the ids, summed for each id."""
    gradient = tf.reshape(gradient, [-1, layer.output_dim])
    if layer.combiner is None:
        ids = tf.cast(tf.reshape(_values(call.inputs), [-1]), tf.int64)
        position = tf.squeeze(tf.where(tf.gather(is_measured, ids)), 1)
        gradient = tf.matmul(tf.gather(gradient, position), projection)
    else:
        bags = Bags.of(call.inputs, call.weights)
        if layer.mask_zero:
            _, bags = bags.without_padding(bags.ids)
        ids = tf.cast(bags.ids, tf.int64)
        position = tf.squeeze(tf.where(tf.gather(is_measured, ids)), 1)
        bag = tf.gather(bags.bag, position)
        weights = 1.0 if bags.weights is None else tf.gather(bags.weights, position)
        factor = tf.math.divide_no_nan(weights, tf.gather(bags.divisors(layer.combiner), bag))
        gradient = tf.gather(tf.matmul(gradient, projection), bag) * factor[:, None]
    distinct, place, count = tf.unique_with_counts(tf.gather(ids, position), tf.int64)
    num_distinct = tf.size(distinct)
    return _Part(
        distinct,
        tf.math.unsorted_segment_sum(gradient, place, num_distinct),
        tf.math.unsorted_segment_sum(tf.reduce_sum(tf.square(gradient), axis=1), place, num_distinct),
        count,
    )


def _of_logits(layer: Any, call: LayerCall, gradient: Any, projection: Any, is_measured: Any) -> _Part:
    """Return the gradients that reach the rows from the logits, where each row is multiplied with each state."""
    ids = tf.squeeze(tf.where(is_measured), 1)
    gradient = tf.gather(tf.reshape(gradient, [-1, layer.input_dim]), ids, axis=1)
    states = tf.matmul(tf.cast(tf.reshape(call.inputs, [-1, layer.output_dim]), tf.float32), projection)
    norms = tf.reduce_sum(tf.square(states), axis=1)
    return _Part(
        ids,
        tf.matmul(gradient, states, transpose_a=True),
        tf.linalg.matvec(tf.square(gradient), norms, transpose_a=True),
        # a state of the logits is not an occurrence of a token
        tf.zeros_like(ids),
    )


def _values(tensor: Any) -> Any:
    return tensor.flat_values if isinstance(tensor, tf.RaggedTensor) else tensor


def _batches(data: Any) -> Iterator[Any]:
    """Yield the batches of a dataset, or of arrays."""
    if isinstance(data, tf.data.Dataset):
        if data.cardinality() == tf.data.INFINITE_CARDINALITY:
            raise SplitError("`data` is an infinite dataset. Pass a part of it, such as data.take(1000).")
        yield from data
        return
    lengths = [_length(each) for each in keras.tree.flatten(data)]
    if not isinstance(data, tuple) or len({*lengths}) != 1 or lengths[0] == 0:
        raise SplitError(
            "`data` must be a tf.data.Dataset of batches, or a tuple of arrays of the same length, (x, y) or (x, y, "
            f"sample_weight). Received: {type(data).__name__} with lengths {shortened(lengths)}."
        )
    for start in range(0, lengths[0], BATCH_SIZE):
        yield keras.tree.map_structure(lambda each: each[start : start + BATCH_SIZE], data)  # noqa: B023


def _length(array: Any) -> int:
    shape = getattr(array, "shape", None)
    return int(shape[0]) if shape else 0


@contextmanager
def _state_kept(model: Any) -> Iterator[None]:
    """Give all state of a model that a pass may change its old values back: metrics, seeds and other variables."""
    metrics = model.metrics
    variables = [*model.non_trainable_variables, *(each for metric in metrics for each in metric.variables)]
    values = [tf.identity(each.value) for each in variables]
    try:
        yield
    finally:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        for metric in model.metrics:
            if not any(metric is each for each in metrics):
                metric.reset_state()


def _not_finite(number: int) -> SplitError:
    return SplitError(
        f"The gradient of batch {number} has NaN or infinite numbers. Check the loss of that batch by "
        "model.test_on_batch, and its inputs, targets and sample weights."
    )
