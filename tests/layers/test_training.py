"""Training of a SplitEmbedding with Keras's optimizers, compared with a dense variable of its trainable rows."""

import keras
import numpy as np
import pytest

from splitembed import SplitEmbedding, SplitTable
from tests.helpers.dense_reference import (
    DIM,
    NUM_TOKENS,
    TOLERANCE,
    TRAINABLE_IDS,
    Dense,
    assert_frozen,
    make_batches,
    train_one,
    train_replicas,
)
from tests.helpers.models import split_of_twelve

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
# clipping is per replica in Keras, and overwriting by the average raises in a replica
ONE_DEVICE = {
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
    return split_of_twelve()


@pytest.fixture(scope="module")
def batches() -> list[np.ndarray]:
    return make_batches()


@pytest.mark.parametrize(("name", "calls"), [("Adam", 1), *((name, 2) for name in [*OPTIMIZERS, *ONE_DEVICE])])
def test_equals_dense_reference(name, calls, split, batches):
    make = {**OPTIMIZERS, **ONE_DEVICE}[name]
    before = split.frozen.tobytes()
    reference, layer = Dense(split), SplitEmbedding(split)
    layer.build()
    train_one(reference, [reference.variable], make(), batches, calls)
    train_one(layer, layer.trainable_variables, make(), batches, calls)
    np.testing.assert_allclose(layer.trainable_rows.numpy(), reference.variable.numpy(), rtol=0, atol=TOLERANCE)
    assert np.abs(layer.trainable_rows.numpy() - split.trainable).max() > 100 * TOLERANCE
    assert_frozen(layer, split, before)


@pytest.mark.parametrize(("name", "calls"), [("Adam", 1), ("SGD momentum", 2), ("AdamW", 2), ("Adam ema", 2)])
def test_two_replicas_equal_dense_reference(name, calls, split, batches):
    before = split.frozen.tobytes()
    reference = Dense(split)
    train_one(reference, [reference.variable], OPTIMIZERS[name](), batches, calls)
    layer = train_replicas(split, OPTIMIZERS[name], batches, calls)
    np.testing.assert_allclose(layer.trainable_rows.numpy(), reference.variable.numpy(), rtol=0, atol=TOLERANCE)
    assert_frozen(layer, split, before)


@pytest.mark.parametrize(("name", "calls"), [("SGD", 1), ("Adam", 2), ("AdamW", 2)])
def test_regularizer_equals_dense_reference(name, calls, split, batches):
    reference = Dense(split)
    layer = SplitEmbedding(split, embeddings_regularizer=keras.regularizers.L2(0.1))
    layer.build()
    train_one(reference, [reference.variable], OPTIMIZERS[name](), batches, calls, reference.penalty)
    train_one(layer, layer.trainable_variables, OPTIMIZERS[name](), batches, calls, lambda: sum(layer.losses))
    np.testing.assert_allclose(layer.trainable_rows.numpy(), reference.variable.numpy(), rtol=0, atol=TOLERANCE)


def test_the_reference_differs_from_repeated_slices(split, batches):
    """Keras's Adam squares the row slices of repeated ids one by one: these tests would find such a gradient."""
    reference, stock = Dense(split), keras.layers.Embedding(NUM_TOKENS, DIM)
    stock.build()
    stock.set_weights([split.combine()])
    train_one(reference, [reference.variable], keras.optimizers.Adam(0.1), batches, 1)
    train_one(stock, stock.trainable_variables, keras.optimizers.Adam(0.1), batches, 1)
    assert np.abs(stock.get_weights()[0][TRAINABLE_IDS] - reference.variable.numpy()).max() > 0.01


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
