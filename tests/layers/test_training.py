"""What training moves, and by how much: against a dense variable of the trainable rows fed summed gradients."""

from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from splitembed import LazyAdam, SplitEmbedding, SplitTable
from splitembed.optimizers import LazyAdagrad, LazySGD
from tests.helpers.devices import two_replicas

NUM_TOKENS, DIM, STEPS = 12, 4, 10
TRAINABLE_IDS = [1, 4, 5, 9]
TOLERANCE = 1e-5  # float32: sums in another order, over ten steps at learning rate 0.1

OPTIMIZERS = {
    "SGD": lambda: keras.optimizers.SGD(0.1),
    "SGD momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "Adam": lambda: keras.optimizers.Adam(0.1),
    "Adam amsgrad": lambda: keras.optimizers.Adam(0.1, amsgrad=True),
    "AdamW": lambda: keras.optimizers.AdamW(0.1, weight_decay=0.1),
    "RMSprop": lambda: keras.optimizers.RMSprop(0.1),
    "Adagrad": lambda: keras.optimizers.Adagrad(0.1),
    "Adam ema": lambda: keras.optimizers.Adam(0.1, use_ema=True, ema_momentum=0.5),
    "Adam schedule": lambda: keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.9)),
}
ONE_DEVICE = {  # clipping is per replica in Keras, and overwriting by the average raises in a replica
    "Adam ema overwriting": lambda: keras.optimizers.Adam(
        0.1, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3
    ),
    "Adam clipnorm": lambda: keras.optimizers.Adam(0.1, clipnorm=0.05),
    "SGD clipnorm": lambda: keras.optimizers.SGD(0.1, clipnorm=0.05),
    "SGD global_clipnorm": lambda: keras.optimizers.SGD(0.1, global_clipnorm=0.05),
    "SGD clipvalue": lambda: keras.optimizers.SGD(0.1, clipvalue=0.01),
}


@pytest.fixture(scope="module")
def split() -> SplitTable:
    matrix = np.random.default_rng(0).normal(size=(NUM_TOKENS, DIM)).astype(np.float32)
    return SplitTable.from_matrix(matrix, TRAINABLE_IDS)


@pytest.fixture(scope="module")
def batches() -> list[np.ndarray]:
    """Ten batches of (8, 6) ids, so every batch repeats ids; half of them never see the last trainable row."""
    generator = np.random.default_rng(1)
    ids = [generator.integers(0, NUM_TOKENS, (8, 6)) for _ in range(STEPS)]
    for batch in ids[::2]:
        batch[batch == TRAINABLE_IDS[-1]] = 0
    return ids


def loss_of(rows: tf.Tensor, calls: int, look_up) -> tf.Tensor:
    """A loss with curvature, so that a wrong step shows in the next gradient; `calls` uses of one table."""
    total = tf.reduce_sum(tf.tanh(look_up(rows)) ** 2)
    for call in range(1, calls):
        total += tf.reduce_sum(tf.sin(look_up(rows[:, ::-1]) * (call + 1.0)))
    return total / 16.0  # a steeper loss makes ten steps of momentum chaotic: rounding alone then exceeds TOLERANCE


class Dense:
    """The reference: the same rows as one dense variable, read by a matrix product, whose gradient is summed."""

    def __init__(self, split: SplitTable) -> None:
        self.variable = keras.Variable(split.trainable, name="rows")
        is_frozen = split.remap >= 0
        self.frozen = tf.constant(np.where(is_frozen[:, None], split.combine(), 0).astype(np.float32))
        self.place = tf.constant(np.where(is_frozen, -1, ~split.remap))

    def __call__(self, ids: tf.Tensor) -> tf.Tensor:
        chosen = tf.one_hot(tf.gather(self.place, ids), self.variable.shape[0])
        return tf.gather(self.frozen, ids) + chosen @ self.variable.value

    def penalty(self) -> tf.Tensor:
        return 0.1 * tf.reduce_sum(self.variable.value**2)


def train_one(look_up, variables, optimizer, batches, calls, penalty=None) -> None:
    """`penalty`, if any, is added to the loss: its gradient is dense, and so would be the sum of both."""

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            loss = loss_of(ids, calls, look_up)
            if penalty is not None:
                loss += penalty()
        optimizer.apply(tape.gradient(loss, variables), variables)

    for ids in batches:
        step(tf.constant(ids))
    if optimizer.use_ema:
        optimizer.finalize_variable_values(variables)


def train_replicas(split, make_optimizer, batches, calls, **options):
    """One model on two devices, each with half of every batch; the optimizer sums the replicas' gradients."""
    strategy = two_replicas()
    with strategy.scope():
        layer, optimizer = SplitEmbedding(split, **options), make_optimizer()
        layer.build()
        optimizer.build(layer.trainable_variables)

    @tf.function
    def step(ids):
        def replica(ids):
            with tf.GradientTape() as tape:
                loss = loss_of(ids, calls, layer)
                loss = getattr(optimizer, "scale_loss", lambda value: value)(loss)
            optimizer.apply(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)

        strategy.run(replica, (ids,))

    for ids in batches:
        step(strategy.experimental_distribute_values_from_function(partial(halves, ids)))
    if optimizer.use_ema:
        optimizer.finalize_variable_values(layer.trainable_variables)
    replicas = strategy.experimental_local_results(layer.trainable_rows.value)
    np.testing.assert_array_equal(replicas[0].numpy(), replicas[1].numpy())
    return layer


def halves(ids: np.ndarray, context) -> tf.Tensor:
    return tf.constant(np.split(ids, context.num_replicas_in_sync)[context.replica_id_in_sync_group])


def assert_frozen(layer: SplitEmbedding, split: SplitTable, before: bytes) -> None:
    assert layer.to_split().frozen.tobytes() == before
    frozen_ids = np.flatnonzero(split.remap >= 0)
    np.testing.assert_array_equal(layer(frozen_ids).numpy(), split.lookup(frozen_ids))


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("name", [*OPTIMIZERS, *ONE_DEVICE])
def test_equals_dense_reference(name, calls, split, batches):
    make = {**OPTIMIZERS, **ONE_DEVICE}[name]
    before = split.frozen.tobytes()
    reference, layer = Dense(split), SplitEmbedding(split)
    layer.build()
    train_one(reference, [reference.variable], make(), batches, calls)
    train_one(layer, layer.trainable_variables, make(), batches, calls)
    np.testing.assert_allclose(layer.trainable_rows.numpy(), reference.variable.numpy(), rtol=0, atol=TOLERANCE)
    assert np.abs(layer.trainable_rows.numpy() - split.trainable).max() > 100 * TOLERANCE  # it did train
    assert_frozen(layer, split, before)


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_two_replicas_equal_dense_reference(name, calls, split, batches):
    before = split.frozen.tobytes()
    reference = Dense(split)
    train_one(reference, [reference.variable], OPTIMIZERS[name](), batches, calls)
    layer = train_replicas(split, OPTIMIZERS[name], batches, calls)
    np.testing.assert_allclose(layer.trainable_rows.numpy(), reference.variable.numpy(), rtol=0, atol=TOLERANCE)
    assert_frozen(layer, split, before)


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_regularizer_equals_dense_reference(name, calls, split, batches):
    reference = Dense(split)
    layer = SplitEmbedding(split, embeddings_regularizer=keras.regularizers.L2(0.1))
    layer.build()
    train_one(reference, [reference.variable], OPTIMIZERS[name](), batches, calls, reference.penalty)
    train_one(layer, layer.trainable_variables, OPTIMIZERS[name](), batches, calls, lambda: sum(layer.losses))
    np.testing.assert_allclose(layer.trainable_rows.numpy(), reference.variable.numpy(), rtol=0, atol=TOLERANCE)


def test_the_reference_can_tell_repeated_slices_apart(split, batches):
    """Stock Adam on stock slices squares repeats one by one: were our gradient such, these tests would fail."""
    reference, stock = Dense(split), keras.layers.Embedding(NUM_TOKENS, DIM)
    stock.build()
    stock.set_weights([split.combine()])
    train_one(reference, [reference.variable], keras.optimizers.Adam(0.1), batches, 1)
    train_one(stock, stock.trainable_variables, keras.optimizers.Adam(0.1), batches, 1)
    assert np.abs(stock.get_weights()[0][TRAINABLE_IDS] - reference.variable.numpy()).max() > 0.01


class NumPyLazyAdam:
    """LazyAdam written from the formula in its docstring, on the summed gradient."""

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
            momentum = momentum if self.t > 1 else 0.0  # Keras starts the average at the first step's weights
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


@pytest.mark.parametrize("gradient", ["auto", "sparse", "dense"])
@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("name", LAZY)
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


@pytest.mark.parametrize("gradient", ["auto", "dense"])
@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("name", ["plain", "weight decay", "amsgrad"])
def test_lazy_adam_on_two_replicas_equals_its_formula(name, calls, gradient, split, batches):
    options, expected = LAZY[name]
    layer = train_replicas(split, lambda: LazyAdam(0.1, **options), batches, calls, gradient=gradient)
    np.testing.assert_allclose(
        layer.trainable_rows.numpy(), numpy_lazy_adam(split, batches, calls, **expected), rtol=0, atol=TOLERANCE
    )


LAZY_EXACT = {  # rows without a gradient stand still under these by themselves, so the lazy form is the dense one
    "SGD": (lambda: LazySGD(0.1), lambda: keras.optimizers.SGD(0.1)),
    "SGD clipnorm": (lambda: LazySGD(0.1, clipnorm=0.05), lambda: keras.optimizers.SGD(0.1, clipnorm=0.05)),
    "Adagrad": (lambda: LazyAdagrad(0.1), lambda: keras.optimizers.Adagrad(0.1)),
    "Adagrad decay": (
        lambda: LazyAdagrad(0.1, weight_decay=0.1),
        lambda: keras.optimizers.Adagrad(0.1, weight_decay=0.1),
    ),
}


@pytest.mark.parametrize("gradient", ["sparse", "dense"])
@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("name", LAZY_EXACT)
def test_lazy_sgd_and_adagrad_equal_the_dense_reference(name, calls, gradient, split, batches):
    lazy, plain = LAZY_EXACT[name]
    reference, layer = Dense(split), SplitEmbedding(split, gradient=gradient)
    layer.build()
    train_one(reference, [reference.variable], plain(), batches, calls)
    train_one(layer, layer.trainable_variables, lazy(), batches, calls)
    np.testing.assert_allclose(layer.trainable_rows.numpy(), reference.variable.numpy(), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("gradient", ["sparse", "dense"])
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
    """Every second batch makes a step, of the mean of two gradients."""
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


def test_lazy_adam_leaves_untouched_rows_and_their_moments_alone(split):
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
    """A Dense kernel with a column of zero gradients must coast on its momentum as under Adam."""
    kernels = []
    for optimizer in (LazyAdam(0.1), keras.optimizers.Adam(0.1)):
        kernel = keras.Variable(np.ones((3, 2), np.float32), name="kernel")
        for gradient in ([[1, 1], [1, 0], [0, 0]], [[0, 0], [1, 0], [2, 0]]):
            optimizer.apply([tf.constant(gradient, tf.float32)], [kernel])
        kernels.append(kernel.numpy())
    np.testing.assert_array_equal(*kernels)


def model_of(layer, dim=1):
    ids = keras.Input((None,), dtype="int32")
    pooled = keras.layers.GlobalAveragePooling1D()(layer(ids))
    return keras.Model(ids, keras.layers.Dense(dim)(pooled))


def test_only_trainable_rows_have_weights_and_slots(split, batches):
    model = model_of(SplitEmbedding(split))
    model.compile(optimizer="adam", loss="mse")
    model.fit(np.concatenate(batches), np.ones((80, 1)), verbose=0)
    rows, kernel, bias = model.trainable_weights
    assert rows.shape == (len(TRAINABLE_IDS), DIM) and kernel.shape == (DIM, 1) and bias.shape == (1,)
    assert len(model.weights) == 3
    shapes = [tuple(variable.shape) for variable in model.optimizer.variables]
    assert shapes.count((len(TRAINABLE_IDS), DIM)) == 2
    assert (NUM_TOKENS, DIM) not in shapes and (NUM_TOKENS - len(TRAINABLE_IDS), DIM) not in shapes
