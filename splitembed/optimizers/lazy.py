"""Optimizers that move only the rows a batch touched: LazyAdam, LazyAdagrad, LazySGD.

A gradient goes in, as row slices or dense; each row is summed once before anything squares or clips it.
"""

from typing import Any

import keras
from keras import ops

from splitembed.errors import SplitError

if keras.backend.backend() != "tensorflow":  # before TensorFlow is imported, which need not be there
    raise SplitError(
        f"LazyAdam, LazyAdagrad and LazySGD need Keras's TensorFlow backend. Found: {keras.backend.backend()}, where "
        f"gradients are dense: take Adam, Adagrad or SGD of keras.optimizers."
    )

import tensorflow as tf

from splitembed.lookup.gradients import end_request, request_slices


class _RowSparse(keras.optimizers.Optimizer):
    """What makes a Keras optimizer lazy: mixed in before it, with `_slots` and `_row_step` of its own.

    Row-sparse are the rows of a `SplitEmbedding`, and any variable whose gradient arrives as `tf.IndexedSlices`. Every
    other variable gets the Keras optimizer itself.
    """

    def build(self, variables: Any) -> None:
        """Makes the slots, and notes which variables are row-sparse."""
        if self.built:
            return
        super().build(variables)
        self._row_sparse = [getattr(variable, "is_row_sparse", False) for variable in variables]

    def scale_loss(self, loss: Any) -> Any:
        """Scale the loss as Keras does, and request the gradient of `SplitEmbedding` layers as row slices.

        Keras calls this under `fit`. In a loop of your own call it once the optimizer is built, after the forward pass.
        The request holds for the variables of this optimizer, until `apply` or the next forward pass: until then pass
        their gradients to this optimizer alone. Without it the gradient is dense: right, but slower.
        """
        request_slices(self._owns)
        return super().scale_loss(loss)

    def _owns(self, variable: Any) -> bool:
        """Whether the optimizer was built with the variable; before it is built, it has none."""
        return self.built and self._var_key(variable) in self._trainable_variables_indices

    def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
        """Sums repeated row slices, so that clipping and squaring see each row once, and updates the variables."""
        end_request()
        whole = self.loss_scale_factor is not None or self.gradient_accumulation_steps
        grads = [_dense(grad) if whole else _summed(grad) for grad in grads]
        if self._distribution_strategy.num_replicas_in_sync > 1:
            grads = [_never_empty(grad) for grad in grads]
        return super().apply(grads, trainable_variables)

    def _clip_gradients(self, grads: Any) -> Any:
        """Clips slices by their values: with repeats summed, those have the norm of the whole gradient."""
        clipped = super()._clip_gradients([getattr(grad, "values", grad) for grad in grads])
        return [_like(grad, values) for grad, values in zip(grads, clipped, strict=True)]

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable: its touched rows if it is row-sparse, as Keras does otherwise."""
        index = self._get_variable_index(variable)
        if isinstance(gradient, tf.IndexedSlices):
            one_replica = self._distribution_strategy.num_replicas_in_sync == 1
            slices = gradient if one_replica else _summed(gradient)  # what replicas sent may repeat again
            self._update_rows(slices, variable, learning_rate, self._slots(index))
        elif self._row_sparse[index]:
            self._update_touched(gradient, variable, learning_rate, self._slots(index))
        else:
            super().update_step(gradient, variable, learning_rate)

    def _update_rows(self, slices: tf.IndexedSlices, variable: Any, learning_rate: Any, slots: list[Any]) -> None:
        """The lazy update on gathered rows."""
        touched = tf.where(tf.reduce_any(slices.values != 0, axis=range(1, slices.values.shape.rank)))
        rows, gradient = tf.gather_nd(slices.indices, touched), tf.gather_nd(slices.values, touched)
        old = [tf.gather(slot.value, rows) for slot in slots]
        gradient = tf.cast(gradient, variable.dtype)
        step, new = self._row_step(gradient, old, tf.cast(learning_rate, gradient.dtype))
        for slot, values in zip(slots, new, strict=True):
            slot.value.scatter_update(tf.IndexedSlices(values, rows))
        variable.scatter_sub(tf.IndexedSlices(step, rows))

    def _update_touched(self, gradient: Any, variable: Any, learning_rate: Any, slots: list[Any]) -> None:
        """The same update where the gradient is dense, as under XLA or with a regularizer."""
        old = [slot.value for slot in slots]
        step, new = self._touched_step(ops.cast(gradient, variable.dtype), old, learning_rate)
        for slot, values in zip(slots, new, strict=True):
            self.assign(slot, values)
        self.assign_sub(variable, step)

    def _touched_step(self, gradient: Any, old: list[Any], learning_rate: Any) -> tuple[Any, list[Any]]:
        """What to subtract from the rows, and their new slots; rows with a zero gradient stay as they are."""
        step, new = self._row_step(gradient, old, ops.cast(learning_rate, gradient.dtype))
        touched = ops.any(gradient != 0, axis=tuple(range(1, len(gradient.shape))), keepdims=True)
        kept = [ops.where(touched, after, before) for after, before in zip(new, old, strict=True)]
        return ops.where(touched, step, ops.zeros_like(step)), kept


@keras.saving.register_keras_serializable(package="splitembed")
class LazyAdam(_RowSparse, keras.optimizers.Adam):
    """Adam that costs what the touched rows cost.

    For a row-sparse variable (the rows of a `SplitEmbedding`, and any variable whose gradient arrives as
    `tf.IndexedSlices`, such as `keras.layers.Embedding`'s) only the *touched* rows of the batch move: those whose
    summed gradient is not zero. With `g` the summed gradient of a touched row and `t` the step number over all
    batches, as in Adam:

        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        row -= learning_rate * sqrt(1 - beta_2**t) / (1 - beta_1**t) * m / (sqrt(v) + epsilon)

    It differs from Adam in the rows that a batch does not touch: Adam decays their moments and lets them coast on the
    momentum of earlier batches; here they stand still, moments included. When every row is touched at every step the
    two are equal. Every other variable gets Adam itself. Weight decay, EMA and constraints reach all rows, as in Keras.

    The gradient may arrive as slices or dense, the result is the same; slices are what makes it fast. `fit` asks the
    layer for them by itself; under `mixed_float16` Keras wraps the optimizer, and the gradient stays dense. In a loop
    of your own `optimizer.scale_loss(loss)` asks, once the optimizer is built:

        with tf.GradientTape() as tape:
            loss = optimizer.scale_loss(compute_loss(model(x, training=True), y))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

    Args:
        learning_rate, beta_1, beta_2, epsilon, amsgrad, ...: as in `keras.optimizers.Adam`.

    Source: D. P. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", 2015, with row-sparse moments as in
    TensorFlow Addons' LazyAdam and PyTorch's SparseAdam.
    """

    def __init__(self, learning_rate: Any = 0.001, *args: Any, name: str = "lazy_adam", **kwargs: Any) -> None:
        super().__init__(learning_rate, *args, name=name, **kwargs)

    def _slots(self, index: int) -> list[Any]:
        """The variable's first and second moments and, with amsgrad, the largest second moment so far."""
        kinds = [self._momentums, self._velocities] + ([self._velocity_hats] if self.amsgrad else [])
        return [slots[index] for slots in kinds]

    def _row_step(self, gradient: Any, old: list[Any], learning_rate: Any) -> tuple[Any, list[Any]]:
        count = ops.cast(self.iterations + 1, gradient.dtype)
        beta_1, beta_2 = (ops.cast(beta, gradient.dtype) for beta in (self.beta_1, self.beta_2))
        rate = learning_rate * ops.sqrt(1 - beta_2**count) / (1 - beta_1**count)
        first = old[0] + (gradient - old[0]) * (1 - self.beta_1)
        second = old[1] + (ops.square(gradient) - old[1]) * (1 - self.beta_2)
        new = [first, second] + [ops.maximum(largest, second) for largest in old[2:]]
        return rate * first / (ops.sqrt(new[-1]) + self.epsilon), new


@keras.saving.register_keras_serializable(package="splitembed")
class LazyAdagrad(_RowSparse, keras.optimizers.Adagrad):
    """Adagrad that costs what the touched rows cost, and equals Adagrad on dense gradients.

    A row without a gradient stands still under Adagrad too. Keras's own, on row slices, adds up the squares of repeated
    rows instead of the square of their sum; here each row is summed first.

    Args:
        learning_rate, initial_accumulator_value, epsilon, ...: as in `keras.optimizers.Adagrad`.

    Source: J. Duchi, E. Hazan and Y. Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic
    Optimization", 2011.
    """

    def __init__(self, learning_rate: Any = 0.001, *args: Any, name: str = "lazy_adagrad", **kwargs: Any) -> None:
        super().__init__(learning_rate, *args, name=name, **kwargs)

    def _slots(self, index: int) -> list[Any]:
        return [self._accumulators[index]]

    def _row_step(self, gradient: Any, old: list[Any], learning_rate: Any) -> tuple[Any, list[Any]]:
        accumulated = old[0] + ops.square(gradient)
        return learning_rate * gradient / ops.sqrt(accumulated + self.epsilon), [accumulated]


@keras.saving.register_keras_serializable(package="splitembed")
class LazySGD(_RowSparse, keras.optimizers.SGD):
    """SGD that costs what the touched rows cost.

    Without momentum it equals SGD. With momentum, rows that a batch does not touch stand still, velocity included,
    where SGD lets them coast.

    Args:
        learning_rate, momentum, nesterov, ...: as in `keras.optimizers.SGD`.
    """

    def __init__(self, learning_rate: Any = 0.01, *args: Any, name: str = "lazy_sgd", **kwargs: Any) -> None:
        super().__init__(learning_rate, *args, name=name, **kwargs)

    def _slots(self, index: int) -> list[Any]:
        return [self.momentums[index]] if self.momentum else []

    def _row_step(self, gradient: Any, old: list[Any], learning_rate: Any) -> tuple[Any, list[Any]]:
        step = gradient * learning_rate
        if not old:
            return step, []
        velocity = old[0] * self.momentum - step
        return (step - velocity * self.momentum if self.nesterov else -velocity), [velocity]


def _summed(gradient: Any) -> Any:
    """Slices with each row once; anything else as it is."""
    if not isinstance(gradient, tf.IndexedSlices) or getattr(gradient, "rows_are_distinct", False):
        return gradient
    rows, place = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, place, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)


def _never_empty(gradient: Any) -> Any:
    """Slices of one row at least, a zero one if need be: TensorFlow crashes where all replicas together have none."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    missing = tf.cast(tf.size(gradient.indices) == 0, tf.int32)
    padding = [[0, missing]] + [[0, 0]] * (gradient.values.shape.rank - 1)
    return tf.IndexedSlices(
        tf.pad(gradient.values, padding), tf.pad(gradient.indices, padding[:1]), gradient.dense_shape
    )


def _dense(gradient: Any) -> Any:
    return tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient


def _like(gradient: Any, values: Any) -> Any:
    """The clipped values in the gradient's own form."""
    if not isinstance(gradient, tf.IndexedSlices):
        return values
    return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
