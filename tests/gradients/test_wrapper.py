"""RowGradientOptimizer under fit on every backend: which rows move, how far, and what is saved."""

import json

import keras
import numpy as np
import pytest

from splitembed.errors import SplitError, TokenIdError
from splitembed.gradients.wrapper import RowGradientOptimizer
from tests.helpers.differentiate import BACKEND, numpy

pytestmark = pytest.mark.every_backend

PATH = "tokens/embeddings"
IDS = np.array([[1, 2, 0, 0], [3, 4, 5, 0], [1, 1, 2, 2]])
TARGETS = np.ones((3, 1), np.float32)
ROWS = [1, 3]


def make_model(optimizer, jit=False, dtype=None):
    keras.utils.set_random_seed(0)
    ids = keras.Input((4,), dtype="int32")
    rows = keras.layers.Embedding(6, 3, name="tokens", dtype=dtype)(ids)
    output = keras.layers.Dense(1, name="head")(keras.layers.GlobalAveragePooling1D()(rows))
    model = keras.Model(ids, output)
    model.compile(optimizer, "mse", jit_compile=jit)
    return model


def table(model):
    return numpy(model.get_layer("tokens").embeddings)


def fit(model, epochs=1):
    before = table(model)
    model.fit(IDS, TARGETS, epochs=epochs, shuffle=False, verbose=0)
    return table(model) - before


INNER = {
    "SGD": lambda: keras.optimizers.SGD(0.1),
    "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "Adam": lambda: keras.optimizers.Adam(0.1),
    "clipped": lambda: keras.optimizers.Adam(0.1, clipnorm=0.1),
}
if BACKEND == "tensorflow":
    from splitembed import LazyAdam
    from splitembed.optimizers import LazySGD
    from tests.helpers.devices import two_replicas

    INNER["LazyAdam"] = lambda: LazyAdam(0.1)
# on TensorFlow Keras's own cannot divide row slices by the scale
SCALED = LazySGD if BACKEND == "tensorflow" else keras.optimizers.SGD
INNER["scaled"] = lambda: SCALED(0.1, loss_scale_factor=128.0)
JITS = [False] if BACKEND == "torch" else [False, True]


@pytest.mark.parametrize(("name", "jit"), [*((name, False) for name in INNER), *(("scaled", jit) for jit in JITS[1:])])
def test_only_the_kept_rows_move_under_fit(name, jit):
    model = make_model(RowGradientOptimizer(INNER[name](), {PATH: ROWS}), jit)
    moved = fit(model, epochs=3)
    assert np.flatnonzero(moved.any(1)).tolist() == ROWS
    assert int(model.optimizer.iterations) == 3


@pytest.mark.parametrize("jit", JITS)
@pytest.mark.parametrize("scale", [None, 64.0])
def test_rows_are_clipped_by_their_summed_gradient(jit, scale):
    plain = fit(make_model(keras.optimizers.SGD(1.0)))
    clipnorm = float(np.median(np.linalg.norm(plain, axis=1)))
    inner = SCALED(1.0, loss_scale_factor=scale)
    found = fit(make_model(RowGradientOptimizer(inner, clip_rows={PATH: clipnorm}), jit))
    norms = np.linalg.norm(plain, axis=1, keepdims=True)
    np.testing.assert_allclose(found, plain * np.minimum(1, clipnorm / norms), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", INNER)
def test_without_rows_it_equals_the_wrapped_optimizer(name):
    np.testing.assert_array_equal(
        fit(make_model(RowGradientOptimizer(INNER[name]())), 3), fit(make_model(INNER[name]()), 3)
    )


def test_loss_scaling_around_it():
    optimizer = RowGradientOptimizer(keras.optimizers.Adam(0.1), {PATH: ROWS})
    model = make_model(keras.optimizers.LossScaleOptimizer(optimizer))
    assert np.flatnonzero(fit(model).any(1)).tolist() == ROWS
    assert optimizer.loss_scale_factor is None


def test_weight_decay_and_earlier_momentum_still_move_dropped_rows():
    decayed = fit(make_model(RowGradientOptimizer(keras.optimizers.AdamW(0.1, weight_decay=0.1), {PATH: ROWS})))
    assert decayed.any(1).all()
    model = make_model(keras.optimizers.SGD(0.1, momentum=0.9))
    fit(model)
    later = RowGradientOptimizer(model.optimizer, {PATH: ROWS})
    model.compile(later, "mse")
    assert fit(model).any(1).all()


@pytest.mark.parametrize("kwargs", [{"keep_rows": {"rows": [1]}}, {"clip_rows": {"rows": 1.0}}])
def test_a_path_that_names_no_variable_is_refused(kwargs):
    model = make_model(RowGradientOptimizer("sgd", **kwargs))
    with pytest.raises(SplitError, match=f"Path 'rows' has 0 of: '{PATH}', 'head/kernel', 'head/bias'"):
        model.fit(IDS, TARGETS, verbose=0)


def test_a_path_that_names_two_variables_is_refused():
    variables = [keras.Variable(np.ones((2, 2)), name="same") for _ in range(2)]
    with pytest.raises(SplitError, match="Path 'same' has 2 of"):
        RowGradientOptimizer("sgd", {"same": [0]}).build(variables)


def test_wrong_rows_and_lengths_are_refused_before_training():
    with pytest.raises(TokenIdError, match="6 is out of range"):
        make_model(RowGradientOptimizer("sgd", {PATH: [6]})).fit(IDS, TARGETS, verbose=0)
    with pytest.raises(SplitError, match="positive number"):
        RowGradientOptimizer("sgd", clip_rows={PATH: 0})


def test_saved_model_continues_training_unchanged(tmp_path):
    mask = np.isin(np.arange(6), ROWS)
    model = make_model(RowGradientOptimizer(keras.optimizers.Adam(0.1), {PATH: mask}, {PATH: 0.01}))
    fit(model, epochs=2)
    model.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    assert isinstance(again.optimizer, RowGradientOptimizer)
    for one, other in zip(model.optimizer.variables, again.optimizer.variables, strict=True):
        np.testing.assert_array_equal(numpy(one), numpy(other))
    moved = fit(again)
    np.testing.assert_array_equal(moved, fit(model))
    assert np.flatnonzero(moved.any(1)).tolist() == ROWS


def test_config_round_trip():
    optimizer = RowGradientOptimizer("adam", {PATH: np.array([1, 3])}, {PATH: 1.0}, name="rows")
    config = json.loads(json.dumps(optimizer.get_config()))
    assert config["keep_rows"] == {PATH: ROWS} and config["clip_rows"] == {PATH: 1.0}
    assert RowGradientOptimizer.from_config(config).get_config() == config


def test_learning_rate_is_that_of_the_wrapped_optimizer():
    model = make_model(RowGradientOptimizer(keras.optimizers.SGD(0.5), {PATH: ROWS}))
    halve = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
    model.fit(IDS, TARGETS, epochs=2, verbose=0, callbacks=[halve])
    assert float(numpy(model.optimizer.inner_optimizer.learning_rate)) == 0.125


@pytest.mark.skipif(BACKEND != "tensorflow", reason="strategies are TensorFlow's")
def test_on_two_replicas():
    for make in (lambda: keras.optimizers.SGD(0.1, momentum=0.9), lambda: LazyAdam(0.1)):
        with two_replicas().scope():
            ids = keras.Input((2,), dtype="int32")
            rows = keras.layers.Embedding(4, 2, name="tokens")(ids)
            model = keras.Model(ids, keras.layers.Dense(1)(keras.layers.GlobalAveragePooling1D()(rows)))
            model.compile(RowGradientOptimizer(make(), {PATH: [3]}, {PATH: 0.1}), "mse")
        before = table(model)
        # the first batch has no row to train
        for batch in ([[0, 1], [1, 2]], [[3, 0], [1, 3]]):
            model.fit(np.array(batch), np.ones((2, 1)), verbose=0)
        assert (table(model) != before).any(1).tolist() == [False, False, False, True]
