"""LazyAdam, LazyAdagrad and LazySGD, which update only the rows that a batch touched.

The gradient of a row is summed once before it is squared or clipped, whether it arrives as slices or dense.
"""

from typing import Any

import keras
from keras import ops

from splitembed import keras_compat
from splitembed.errors import SplitError
from splitembed.layers.saving import VARIABLE

_IS_TENSORFLOW = keras.backend.backend() == "tensorflow"
if _IS_TENSORFLOW:
    import tensorflow as tf

    from splitembed.lookup.gradients import DistinctSlices, end_request, request_slices


class _Slots:
    """The slots of an optimizer by variable and name.

    They stand in an object that TensorFlow does not track: checkpoints have them by the lists of the Keras optimizer.
    """

    def __init__(self) -> None:
        self._by_variable: dict[int, dict[str, Any]] = {}
        self._order: list[int] = []

    def note(self, variable: Any, name: str, slot: Any) -> None:
        """Note a slot of a variable, the first one of that name."""
        self._by_variable.setdefault(id(variable), {}).setdefault(name, slot)

    def set_order(self, variables: Any) -> None:
        """Note the order in which the optimizer was built with its variables."""
        self._order = [id(variable) for variable in variables]

    def of(self, index: int, names: tuple[str, ...]) -> list[Any]:
        """Return the slots with these names of the variable at an index."""
        slots = self._by_variable.get(self._order[index], {})
        return [slots[name] for name in names]


class _RowSparse(keras.optimizers.Optimizer):
    """A mixin before a Keras optimizer that makes it lazy, for a class with `_slot_names` and `_row_step`.

    Row-sparse are the rows of a `SplitEmbedding`, and any variable whose gradient arrives as `tf.IndexedSlices`. Every
    other variable gets the Keras optimizer itself.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not _IS_TENSORFLOW:
            raise SplitError(
                f"{type(self).__name__} needs Keras's TensorFlow backend. Found: {keras.backend.backend()}, where "
                f"gradients are dense. Use Adam, Adagrad or SGD of keras.optimizers."
            )
        super().__init__(*args, **kwargs)
        self._slots = _Slots()

    def build(self, variables: Any) -> None:
        """Make the slots, and note which variables are the rows of a `SplitEmbedding`, by their name."""
        if self.built:
            return
        super().build(variables)
        self._slots.set_order(variables)
        self._row_sparse = tuple(variable.name == VARIABLE for variable in variables)

    def add_variable_from_reference(self, reference_variable: Any, name: Any = None, initializer: Any = "zeros") -> Any:
        """Add a slot of a variable as Keras does, and note it by its name."""
        slot = super().add_variable_from_reference(reference_variable, name=name, initializer=initializer)
        self._slots.note(reference_variable, name, slot)
        return slot

    def scale_loss(self, loss: Any) -> Any:
        """Scale the loss as Keras does, and request the gradient of `SplitEmbedding` layers as row slices.

        Keras calls this under `fit`. In a loop of your own call it once the optimizer is built, after the forward pass.
        The request holds for the variables of this optimizer, until `apply` or the next forward pass: until then pass
        their gradients to this optimizer alone. Without it the gradient is dense: right, but slower.
        """
        request_slices(self._owns)
        return super().scale_loss(loss)

    def _owns(self, variable: Any) -> bool:
        """Return whether the optimizer was built with the variable."""
        return self.built and keras_compat.index_in_optimizer(self, variable) is not None

    def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
        """Sum repeated row slices, so that each row is clipped and squared once, and update the variables."""
        end_request()
        as_dense = self.loss_scale_factor is not None or self.gradient_accumulation_steps
        grads = [_dense(grad) if as_dense else _summed(grad) for grad in grads]
        if not _has_one_replica():
            grads = [_never_empty(grad) for grad in grads]
        return super().apply(grads, trainable_variables)

    def _clip_gradients(self, grads: Any) -> Any:
        """Clip slices by their values: without repeats, these have the norm of the whole gradient."""
        clipped = super()._clip_gradients([getattr(grad, "values", grad) for grad in grads])
        return [_like(grad, values) for grad, values in zip(grads, clipped, strict=True)]

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update the touched rows of a row-sparse variable, and any other variable as Keras does."""
        index = keras_compat.index_in_optimizer(self, variable)
        if index is None or not (isinstance(gradient, tf.IndexedSlices) or self._row_sparse[index]):
            super().update_step(gradient, variable, learning_rate)
            return
        slots = self._slots.of(index, self._slot_names())
        if isinstance(gradient, tf.IndexedSlices):
            # the slices of several replicas may repeat a row
            slices = gradient if _has_one_replica() else _summed(gradient)
            self._update_rows(slices, variable, learning_rate, slots)
        else:
            self._update_touched(gradient, variable, learning_rate, slots)

    def _update_rows(self, slices: "tf.IndexedSlices", variable: Any, learning_rate: Any, slots: list[Any]) -> None:
        """Update the rows that slices name."""
        touched = tf.where(tf.reduce_any(slices.values != 0, axis=range(1, slices.values.shape.rank)))
        rows, gradient = tf.gather_nd(slices.indices, touched), tf.gather_nd(slices.values, touched)
        old = [tf.gather(slot.value, rows) for slot in slots]
        gradient = tf.cast(gradient, variable.dtype)
        step, new = self._row_step(gradient, old, tf.cast(learning_rate, gradient.dtype))
        for slot, values in zip(slots, new, strict=True):
            slot.value.scatter_update(tf.IndexedSlices(values, rows))
        variable.scatter_sub(tf.IndexedSlices(step, rows))

    def _update_touched(self, gradient: Any, variable: Any, learning_rate: Any, slots: list[Any]) -> None:
        """Update the rows whose dense gradient is not zero, as under XLA or with a regularizer."""
        old = [slot.value for slot in slots]
        step, new = self._touched_step(ops.cast(gradient, variable.dtype), old, learning_rate)
        for slot, values in zip(slots, new, strict=True):
            self.assign(slot, values)
        self.assign_sub(variable, step)

    def _touched_step(self, gradient: Any, old: list[Any], learning_rate: Any) -> tuple[Any, list[Any]]:
        """Return what to subtract from the rows, and their new slots; rows with a zero gradient stay as they are."""
        step, new = self._row_step(gradient, old, ops.cast(learning_rate, gradient.dtype))
        touched = ops.any(gradient != 0, axis=tuple(range(1, len(gradient.shape))), keepdims=True)
        kept = [ops.where(touched, after, before) for after, before in zip(new, old, strict=True)]
        return ops.where(touched, step, ops.zeros_like(step)), kept


@keras.saving.register_keras_serializable(package="splitembed")
class LazyAdam(_RowSparse, keras.optimizers.Adam):
    """Adam that updates only the touched rows, at the cost of those rows.

    For a row-sparse variable (one named `trainable_embeddings`, as in a `SplitEmbedding`, and any variable whose
    gradient arrives as `tf.IndexedSlices`, such as that of `keras.layers.Embedding`) only the *touched* rows of the
    batch move: those whose summed gradient is not zero. With `g` the summed gradient of a touched row and `t` the step
    number over all batches, as in Adam:

        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        row -= learning_rate * sqrt(1 - beta_2**t) / (1 - beta_1**t) * m / (sqrt(v) + epsilon)

    It differs from Adam in the rows that a batch does not touch: Adam decays their moments and lets them coast on the
    momentum of earlier batches; here they stay as they are, moments included. When every row is touched at every
    step the two are equal. Every other variable gets Adam itself. Weight decay, EMA and constraints reach all rows, as
    in Keras.

    The gradient may arrive as slices or dense: the result is the same, and slices are faster. Under `fit` the optimizer
    requests them; under `mixed_float16` Keras wraps the optimizer, and the gradient stays dense. In a loop of your own
    `optimizer.scale_loss(loss)` requests them, once the optimizer is built:

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

    def _slot_names(self) -> tuple[str, ...]:
        """Return the names of the moments and, with amsgrad, of the largest second moment so far."""
        return ("momentum", "velocity", "velocity_hat") if self.amsgrad else ("momentum", "velocity")

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
    """Adagrad that updates only the touched rows, at their cost; equal to Adagrad on dense gradients.

    A row without a gradient stays as it is under Adagrad too. On row slices, Keras's Adagrad adds up the squares of
    repeated rows instead of the square of their sum; here each row is summed first.

    Args:
        learning_rate, initial_accumulator_value, epsilon, ...: as in `keras.optimizers.Adagrad`.

    Source: J. Duchi, E. Hazan and Y. Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic
    Optimization", 2011.
    """

    def __init__(self, learning_rate: Any = 0.001, *args: Any, name: str = "lazy_adagrad", **kwargs: Any) -> None:
        super().__init__(learning_rate, *args, name=name, **kwargs)

    def build(self, variables: Any) -> None:
        """Make the accumulators, which Keras 3.6 adds last, in the order of the variables and without a reference."""
        if self.built:
            return
        super().build(variables)
        for variable, slot in zip(variables, self.variables[-len(variables) :], strict=False):
            self._slots.note(variable, "accumulator", slot)

    def _slot_names(self) -> tuple[str, ...]:
        return ("accumulator",)

    def _row_step(self, gradient: Any, old: list[Any], learning_rate: Any) -> tuple[Any, list[Any]]:
        accumulated = old[0] + ops.square(gradient)
        return learning_rate * gradient / ops.sqrt(accumulated + self.epsilon), [accumulated]


@keras.saving.register_keras_serializable(package="splitembed")
class LazySGD(_RowSparse, keras.optimizers.SGD):
    """SGD that updates only the touched rows, at their cost.

    Without momentum it equals SGD. With momentum, rows that a batch does not touch stay as they are, velocity included,
    where SGD lets them coast.

    Args:
        learning_rate, momentum, nesterov, ...: as in `keras.optimizers.SGD`.
    """

    def __init__(self, learning_rate: Any = 0.01, *args: Any, name: str = "lazy_sgd", **kwargs: Any) -> None:
        super().__init__(learning_rate, *args, name=name, **kwargs)

    def _slot_names(self) -> tuple[str, ...]:
        return ("momentum",) if self.momentum else ()

    def _row_step(self, gradient: Any, old: list[Any], learning_rate: Any) -> tuple[Any, list[Any]]:
        step = gradient * learning_rate
        if not old:
            return step, []
        velocity = old[0] * self.momentum - step
        return (step - velocity * self.momentum if self.nesterov else -velocity), [velocity]


def _has_one_replica() -> bool:
    return bool(tf.distribute.get_strategy().num_replicas_in_sync == 1)


def _summed(gradient: Any) -> Any:
    """Return slices with each row once, and a dense gradient as it is."""
    if not isinstance(gradient, tf.IndexedSlices) or isinstance(gradient, DistinctSlices):
        return gradient
    rows, position = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, position, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)


def _never_empty(gradient: Any) -> Any:
    """Return slices of at least one row, zero if there was none: TensorFlow crashes if all replicas have none."""
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
    """Return clipped values in the form of the gradient."""
    if not isinstance(gradient, tf.IndexedSlices):
        return values
    return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
