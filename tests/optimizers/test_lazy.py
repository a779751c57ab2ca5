"""LazyAdam, LazyAdagrad and LazySGD: against their formulas in NumPy, and Keras's optimizers on a dense variable."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from splitembed import LazyAdam, SplitEmbedding, SplitTable
from splitembed.optimizers import LazyAdagrad, LazySGD
from tests.helpers.dense_reference import (
    DIM,
    STEPS,
    TOLERANCE,
    TRAINABLE_IDS,
    Dense,
    assert_frozen,
    loss_of,
    make_batches,
    train_one,
    train_replicas,
)
from tests.helpers.models import split_of_twelve


@pytest.fixture(scope="module")
def split() -> SplitTable:
    return split_of_twelve()


@pytest.fixture(scope="module")
def batches() -> list[np.ndarray]:
    return make_batches()


class NumPyLazyAdam:
    """The formula of LazyAdam on the summed gradient, in NumPy."""

    def __init__(self, shape, *, weight_decay=0.0, clipnorm=None, clipvalue=None, amsgrad=False, ema=None) -> None:
        self.m, self.v, self.largest = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.weight_decay, self.clipnorm, self.clipvalue = weight_decay, clipnorm, clipvalue
        self.amsgrad, self.ema, self.average, self.t = amsgrad, ema, np.zeros(shape), 0

    def apply(self, gradient: np.ndarray, rows: np.ndarray, rate=0.1, beta_1=0.9, beta_2=0.999, epsilon=1e-7) -> None:
        self.t += 1
        touched = np.any(gradient != 0, axis=1)
        if self.clipvalue is not None:
            gradient = np.clip(gradient, -self.clipvalue, self.clipvalue)
        if self.clipnorm is not None:
            gradient = gradient * min(1.0, self.clipnorm / np.linalg.norm(gradient))
        rows -= rows * self.weight_decay * rate
        g = gradient[touched]
        self.m[touched] = beta_1 * self.m[touched] + (1 - beta_1) * g
        self.v[touched] = beta_2 * self.v[touched] + (1 - beta_2) * g**2
        self.largest[touched] = np.maximum(self.largest[touched], self.v[touched])
        second = self.largest if self.amsgrad else self.v
        step = rate * np.sqrt(1 - beta_2**self.t) / (1 - beta_1**self.t)
        rows[touched] -= step * self.m[touched] / (np.sqrt(second[touched]) + epsilon)
        if self.ema is not None:
            momentum, frequency = self.ema
            # Keras starts the average at the weights of the first step
            momentum = momentum if self.t > 1 else 0.0
            self.average = momentum * self.average + (1 - momentum) * rows
            if self.t % frequency == 0:
                rows[...] = self.average


def numpy_lazy_adam(split, batches, calls, penalized=False, **options) -> np.ndarray:
    """Gradients from the dense reference, updates from the formula."""
    reference = Dense(split)
    optimizer, rows = NumPyLazyAdam(split.trainable.shape, **options), split.trainable.astype(np.float64)
    for ids in batches:
        with tf.GradientTape() as tape:
            loss = loss_of(tf.constant(ids), calls, reference) + (reference.penalty() if penalized else 0.0)
        optimizer.apply(tape.gradient(loss, reference.variable.value).numpy().astype(np.float64), rows)
        reference.variable.assign(rows.astype(np.float32))
    return rows


LAZY = {
    "plain": ({}, {}),
    "weight decay": ({"weight_decay": 0.1}, {"weight_decay": 0.1}),
    "clipnorm": ({"clipnorm": 0.05}, {"clipnorm": 0.05}),
    "global_clipnorm": ({"global_clipnorm": 0.05}, {"clipnorm": 0.05}),
    "clipvalue": ({"clipvalue": 0.01}, {"clipvalue": 0.01}),
    "amsgrad": ({"amsgrad": True}, {"amsgrad": True}),
    "ema": ({"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 3}, {"ema": (0.5, 3)}),
    "loss scale": ({"loss_scale_factor": 8.0}, {}),
}


@pytest.mark.parametrize(
    ("name", "calls", "gradient"),
    [("plain", 1, "auto"), ("plain", 1, "sparse"), *((name, 2, "auto") for name in LAZY)]
    + [(name, 2, "dense") for name in ("plain", "clipnorm", "amsgrad")],
)
def test_lazy_adam_equals_its_formula(name, calls, gradient, split, batches):
    options, expected = LAZY[name]
    layer, optimizer = SplitEmbedding(split, gradient=gradient), LazyAdam(0.1, **options)
    layer.build()
    variables = layer.trainable_variables
    optimizer.build(variables)

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            loss = optimizer.scale_loss(loss_of(ids, calls, layer))
        gradients = tape.gradient(loss, variables)
        assert isinstance(gradients[0], tf.IndexedSlices) == (gradient != "dense")
        optimizer.apply(gradients, variables)

    for ids in batches:
        step(tf.constant(ids))
    np.testing.assert_allclose(
        layer.trainable_rows.numpy(), numpy_lazy_adam(split, batches, calls, **expected), rtol=0, atol=TOLERANCE
    )
    assert_frozen(layer, split, split.frozen.tobytes())


@pytest.mark.parametrize(
    ("name", "calls", "gradient"),
    [("plain", 1, "auto"), ("plain", 2, "dense"), ("weight decay", 2, "auto"), ("amsgrad", 2, "auto")],
)
def test_lazy_adam_on_two_replicas_equals_its_formula(name, calls, gradient, split, batches):
    options, expected = LAZY[name]
    layer = train_replicas(split, lambda: LazyAdam(0.1, **options), batches, calls, gradient=gradient)
    np.testing.assert_allclose(
        layer.trainable_rows.numpy(), numpy_lazy_adam(split, batches, calls, **expected), rtol=0, atol=TOLERANCE
    )


# rows without a gradient stay as they are under these optimizers, so that the lazy form is the dense one
LAZY_EXACT = {
    "SGD": (lambda: LazySGD(0.1), lambda: keras.optimizers.SGD(0.1)),
    "SGD clipnorm": (lambda: LazySGD(0.1, clipnorm=0.05), lambda: keras.optimizers.SGD(0.1, clipnorm=0.05)),
    "Adagrad": (lambda: LazyAdagrad(0.1), lambda: keras.optimizers.Adagrad(0.1)),
    "Adagrad decay": (
        lambda: LazyAdagrad(0.1, weight_decay=0.1),
        lambda: keras.optimizers.Adagrad(0.1, weight_decay=0.1),
    ),
}


@pytest.mark.parametrize(
    ("name", "calls", "gradient"),
    [*((name, 2, "sparse") for name in LAZY_EXACT), ("SGD", 1, "sparse"), ("SGD", 2, "dense"), ("Adagrad", 2, "dense")],
)
def test_lazy_sgd_and_adagrad_equal_the_dense_reference(name, calls, gradient, split, batches):
    lazy, plain = LAZY_EXACT[name]
    reference, layer = Dense(split), SplitEmbedding(split, gradient=gradient)
    layer.build()
    train_one(reference, [reference.variable], plain(), batches, calls)
    train_one(layer, layer.trainable_variables, lazy(), batches, calls)
    np.testing.assert_allclose(layer.trainable_rows.numpy(), reference.variable.numpy(), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(("gradient", "nesterov"), [("sparse", False), ("sparse", True), ("dense", False)])
def test_lazy_sgd_with_momentum_is_sgd_where_every_row_is_touched(gradient, nesterov, split):
    batches = [np.array([TRAINABLE_IDS * 2, [0] * 8])] * STEPS
    reference, layer = Dense(split), SplitEmbedding(split, gradient=gradient)
    layer.build()
    plain = keras.optimizers.SGD(0.1, momentum=0.9, nesterov=nesterov)
    train_one(reference, [reference.variable], plain, batches, 1)
    train_one(layer, layer.trainable_variables, LazySGD(0.1, momentum=0.9, nesterov=nesterov), batches, 1)
    np.testing.assert_allclose(layer.trainable_rows.numpy(), reference.variable.numpy(), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("gradient", ["sparse", "dense"])
def test_lazy_adam_accumulates_gradients(gradient, split, batches):
    """Every second batch makes a step with the mean of two gradients."""
    reference, layer = Dense(split), SplitEmbedding(split, gradient=gradient)
    layer.build()
    optimizer = LazyAdam(0.1, gradient_accumulation_steps=2)
    train_one(layer, layer.trainable_variables, optimizer, batches, 1)
    rows, expected = split.trainable.astype(np.float64), NumPyLazyAdam(split.trainable.shape)
    for first, second in zip(batches[::2], batches[1::2], strict=True):
        with tf.GradientTape() as tape:
            loss = sum(loss_of(tf.constant(ids), 1, reference) for ids in (first, second)) / 2
        expected.apply(tape.gradient(loss, reference.variable.value).numpy().astype(np.float64), rows)
        reference.variable.assign(rows.astype(np.float32))
    np.testing.assert_allclose(layer.trainable_rows.numpy(), rows, rtol=0, atol=TOLERANCE)


def test_lazy_adam_clips_sparse_and_dense_gradients_of_one_model_together(split, batches):
    """One global norm over slices and a kernel, against the same gradients all dense."""
    trained = []
    for gradient in ("sparse", "dense"):
        layer, kernel = SplitEmbedding(split, gradient=gradient), keras.Variable(np.ones((DIM, 2), np.float32))
        layer.build()
        optimizer = LazyAdam(keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.9), global_clipnorm=0.05)
        variables = [*layer.trainable_variables, kernel]
        train_one(lambda ids, kernel=kernel, layer=layer: layer(ids) @ kernel.value, variables, optimizer, batches, 2)
        trained.append([variable.numpy() for variable in variables])
    for sparse, dense in zip(*trained, strict=True):
        np.testing.assert_allclose(sparse, dense, rtol=0, atol=TOLERANCE)


def test_lazy_adam_with_a_regularizer_equals_its_formula(split, batches):
    """The regularizer's gradient reaches every row, so every row is touched: here LazyAdam is Adam."""
    layer, optimizer = SplitEmbedding(split, embeddings_regularizer=keras.regularizers.L2(0.1)), LazyAdam(0.1)
    layer.build()
    train_one(layer, layer.trainable_variables, optimizer, batches, 1, lambda: sum(layer.losses))
    expected = numpy_lazy_adam(split, batches, 1, penalized=True)
    np.testing.assert_allclose(layer.trainable_rows.numpy(), expected, rtol=0, atol=TOLERANCE)


def test_lazy_adam_keeps_rows_without_gradient_and_their_moments(split):
    layer, optimizer = SplitEmbedding(split), LazyAdam(0.1)
    layer.build()
    seen, unseen = TRAINABLE_IDS[:2], TRAINABLE_IDS[2:]
    train_one(layer, layer.trainable_variables, optimizer, [np.array([TRAINABLE_IDS])], 1)
    before = layer.trainable_rows.numpy(), [slot.numpy() for slot in optimizer.variables[2:]]
    train_one(layer, layer.trainable_variables, optimizer, [np.array([seen])] * 3, 1)
    after = layer.trainable_rows.numpy(), [slot.numpy() for slot in optimizer.variables[2:]]
    rows = ~split.remap[unseen]
    np.testing.assert_array_equal(after[0][rows], before[0][rows])
    assert (after[0] != before[0])[~split.remap[seen]].all()
    for slot_before, slot_after in zip(before[1], after[1], strict=True):
        np.testing.assert_array_equal(slot_after[rows], slot_before[rows])


def test_lazy_adam_is_adam_on_other_variables(split, batches):
    """Momentum must keep moving a Dense kernel where its gradient is zero, as under Adam."""
    kernels = []
    for optimizer in (LazyAdam(0.1), keras.optimizers.Adam(0.1)):
        kernel = keras.Variable(np.ones((3, 2), np.float32), name="kernel")
        for gradient in ([[1, 1], [1, 0], [0, 0]], [[0, 0], [1, 0], [2, 0]]):
            optimizer.apply([tf.constant(gradient, tf.float32)], [kernel])
        kernels.append(kernel.numpy())
    np.testing.assert_array_equal(*kernels)


def test_the_state_is_restored_from_a_keras_file_and_a_checkpoint(split, tmp_path):
    """Training continues unchanged: the slots and the step number are restored."""

    def make_model():
        ids = keras.Input((None,), dtype="int32")
        pooled = keras.layers.GlobalAveragePooling1D()(SplitEmbedding(split)(ids))
        model = keras.Model(ids, keras.layers.Dense(1, kernel_initializer="ones")(pooled))
        model.compile(LazyAdam(0.1, amsgrad=True), "mse")
        return model

    ids, targets = np.array([TRAINABLE_IDS * 2]), np.ones((1, 1))
    model, restored = make_model(), make_model()
    for each in (model, restored):
        each.fit(ids, targets, epochs=2, verbose=0)
    model.fit(ids, targets, verbose=0)
    model.save(tmp_path / "model.keras")
    path = tf.train.Checkpoint(model=model).save(tmp_path / "checkpoint")
    tf.train.Checkpoint(model=restored).restore(path).assert_consumed()
    others = keras.models.load_model(tmp_path / "model.keras"), restored
    for each in (model, *others):
        each.fit(ids, targets, epochs=2, verbose=0)
    for other in others:
        for ours, theirs in zip(model.optimizer.variables, other.optimizer.variables, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        for ours, theirs in zip(model.trainable_variables, other.trainable_variables, strict=True):
            np.testing.assert_array_equal(ours, theirs)
