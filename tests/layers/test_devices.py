"""Two devices under `fit`: replicas equal each other, and one device on the same global batches.

MirroredStrategy gives each replica half of a batch. The tests compare with one device under a loss that is a sum: it
weighs every example the same, however many examples a replica has.
"""

import json
import sys
from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from splitembed import LazyAdam, SplitEmbedding, SplitTable
from splitembed.optimizers import LazySGD
from tests.helpers.devices import two_replicas
from tests.helpers.fresh import run_fresh
from tests.helpers.models import split_of_twelve
from tests.helpers.slow import others_slow

NUM_TOKENS, BATCH, LENGTH = 12, 8, 6
TRAINABLE_IDS = [1, 4, 5, 9]
# float32: replicas sum in another order
TOLERANCE = 1e-5
SUM = keras.losses.MeanSquaredError(reduction="sum")
ADAM, LAZY = partial(keras.optimizers.Adam, 0.05), partial(LazyAdam, 0.05)

OPTIMIZERS = {
    "Adam": ADAM,
    "LossScaleOptimizer": lambda: keras.optimizers.LossScaleOptimizer(LAZY(), initial_scale=8.0),
    "LazyAdam": LAZY,
    "LazyAdam weight decay": partial(LAZY, weight_decay=0.1),
    "LazyAdam ema": partial(LAZY, use_ema=True, ema_momentum=0.5),
    "LazySGD momentum": partial(LazySGD, 0.01, momentum=0.9),
}


split = pytest.fixture(split_of_twelve, scope="module", name="split")


def examples(in_last_batch: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Six batches that repeat ids within and across replicas, among them four edge cases.

    The second batch has no trainable token on one replica, the third on both; the fourth repeats one trainable token;
    the last is smaller, and with one example a replica gets an empty batch.
    """
    generator = np.random.default_rng(1)
    ids = generator.integers(0, NUM_TOKENS, (6, BATCH, LENGTH))
    ids[1, BATCH // 2 :] = ids[2] = 0
    ids[3] = TRAINABLE_IDS[1]
    kept = 5 * BATCH + in_last_batch
    return ids.reshape(-1, LENGTH)[:kept], generator.normal(size=(6 * BATCH, 1))[:kept]


def compiled(embedding, optimizer, loss=SUM, **options) -> keras.Model:
    """Return a model that calls the layer twice, so that a step has two gradients of one table."""
    ids = keras.Input((None,), dtype="int32")
    looked_up = [embedding(ids), embedding(ids[:, ::2])]
    if len(looked_up[0].shape) == 3:
        looked_up = [keras.layers.GlobalAveragePooling1D()(rows) for rows in looked_up]
    output = keras.layers.Dense(1, kernel_initializer="ones")(keras.layers.Concatenate()(looked_up))
    model = keras.Model(ids, output)
    model.compile(optimizer, loss=loss, jit_compile=False, **options)
    return model


def stock() -> keras.layers.Embedding:
    """Return Keras's Embedding with the same rows, all of which train."""
    rows = split_of_twelve().combine()
    return keras.layers.Embedding(*rows.shape, embeddings_initializer=lambda shape, dtype=None: tf.constant(rows))


def fit(model, data, epochs=3, batch_size=BATCH) -> keras.Model:
    ids, targets, *weights = data
    sample_weight = weights[0] if weights else None
    model.fit(ids, targets, batch_size, epochs, shuffle=False, verbose=0, sample_weight=sample_weight)
    return model


def on_two(make_model, data, **options) -> keras.Model:
    """Return a model trained on two devices."""
    with two_replicas().scope():
        model = make_model()
    return fit(model, data, **options)


def one_and_two(make_model, data, **options) -> tuple[keras.Model, keras.Model]:
    """Return the same model trained on one device and on two."""
    return fit(make_model(), data, **options), on_two(make_model, data, **options)


def replicas_of(variable) -> list[np.ndarray]:
    return [each.numpy() for each in two_replicas().experimental_local_results(variable.value)]


def assert_equal(found: keras.Model, expected: keras.Model) -> None:
    """Assert close weights and optimizer slots, and equal bits on all replicas of a model."""
    for model in (found, expected):
        for variable in model.variables + model.optimizer.variables:
            first, *others = replicas_of(variable)
            for other in others:
                np.testing.assert_array_equal(other, first)
    for ours, theirs in zip(found.variables, expected.variables, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=0, atol=TOLERANCE, err_msg=ours.path)
    for ours, theirs in zip(found.optimizer.variables, expected.optimizer.variables, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=TOLERANCE, atol=TOLERANCE, err_msg=ours.path)


def embedding_of(model):
    return next(layer for layer in model.layers if isinstance(layer, SplitEmbedding | keras.layers.Embedding))


def trained_rows(model) -> np.ndarray:
    """Return the rows of TRAINABLE_IDS, in that order."""
    embedding = embedding_of(model)
    rows = embedding.trainable_weights[0].numpy()
    return rows if isinstance(embedding, SplitEmbedding) else rows[TRAINABLE_IDS]


def assert_only_trainable_rows_changed(model, split: SplitTable, before: bytes) -> None:
    """Assert that every trainable row changed, and that frozen rows and remap did not."""
    assert (np.abs(trained_rows(model) - split.trainable).max(axis=1) > 100 * TOLERANCE).all()
    found = embedding_of(model).to_split()
    assert found.frozen.tobytes() == before == split.frozen.tobytes()
    np.testing.assert_array_equal(found.remap, split.remap)


def test_the_batches_have_the_documented_edge_cases(split):
    replicas = [ids.reshape(2, -1) for ids in examples(8)[0].reshape(-1, BATCH, LENGTH)]
    has_trainable = [[bool(np.isin(ids, TRAINABLE_IDS).any()) for ids in pair] for pair in replicas]
    assert has_trainable == [[True, True], [True, False], [False, False], [True, True], [True, True], [True, True]]
    dataset = two_replicas().experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(examples()).batch(BATCH)
    )
    sizes = [[len(ids) for ids in two_replicas().experimental_local_results(batch)] for batch, _ in dataset]
    assert sizes == [[4, 4]] * 5 + [[1, 0]]


@pytest.mark.parametrize("name", others_slow(OPTIMIZERS, ["Adam", "LazyAdam"]))
def test_fit_on_two_devices_equals_one(name, split):
    before = split.frozen.tobytes()
    one, two = one_and_two(lambda: compiled(SplitEmbedding(split), OPTIMIZERS[name]()), examples())
    assert_equal(two, one)
    assert_only_trainable_rows_changed(two, split, before)


@pytest.mark.parametrize(
    ("options", "frozen_dtype"),
    [
        pytest.param({"gradient": "sparse"}, None, marks=pytest.mark.slow),
        ({"combiner": "mean"}, "int8"),
        pytest.param({}, "float16", marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_fit_of_every_kind_of_layer_on_two_devices_equals_one(options, frozen_dtype, split):
    split = split if frozen_dtype is None else split.with_frozen_dtype(frozen_dtype)
    before = split.frozen.tobytes()
    one, two = one_and_two(lambda: compiled(SplitEmbedding(split, **options), LAZY()), examples(5))
    assert_equal(two, one)
    assert_only_trainable_rows_changed(two, split, before)


@pytest.mark.parametrize("make", [pytest.param(ADAM, marks=pytest.mark.slow), LAZY], ids=["Adam", "LazyAdam"])
def test_eager_fit_on_two_devices_equals_one(make, split):
    one, two = one_and_two(lambda: compiled(SplitEmbedding(split), make(), run_eagerly=True), examples(), epochs=1)
    assert_equal(two, one)


OUTCOME = """
import json, sys
import tensorflow as tf
from tests.layers.test_devices import ADAM, LAZY, SplitEmbedding, compiled, examples, fit
from tests.layers.test_devices import split_of_twelve, stock, trained_rows, two_replicas

which, optimizer_options, compile_options = map(json.loads, sys.argv[1:])
strategy = tf.distribute.get_strategy() if which == "one" else two_replicas()
with strategy.scope():
    make, embedding = (ADAM, stock()) if which == "stock" else (LAZY, SplitEmbedding(split_of_twelve()))
    model = compiled(embedding, make(**optimizer_options), **compile_options)
try:
    print(json.dumps(trained_rows(fit(model, examples(8))).tolist()))
except (RuntimeError, ValueError, tf.errors.OpError) as error:
    print(json.dumps(type(error).__name__))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("optimizer_options", "compile_options"),
    [
        ({"gradient_accumulation_steps": 2}, {}),
        ({"use_ema": True, "ema_overwrite_frequency": 2}, {}),
        ({}, {"steps_per_execution": 4}),
    ],
    ids=["gradient accumulation", "EMA overwriting", "steps_per_execution"],
)
def test_features_that_keras_lacks_on_two_devices_fail_as_with_keras_s_embedding(optimizer_options, compile_options):
    """Train as on one device if Keras's Embedding trains; else fail with the same error.

    Fresh processes: a failed step makes TensorFlow's collective operations unusable.
    """

    def outcome(which: str) -> list | str:
        """Return the trained rows, or the name of the error from fit."""
        arguments = map(json.dumps, (which, optimizer_options, compile_options))
        return json.loads(run_fresh(OUTCOME, *arguments).splitlines()[-1])

    found, expected = outcome("ours"), outcome("stock")
    if isinstance(expected, str):
        assert found == expected
    else:
        np.testing.assert_allclose(found, outcome("one"), rtol=0, atol=TOLERANCE)


def distinct_ids(num_examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples with every trainable token once, so that Keras's Embedding neither repeats a row nor changes another."""
    generator = np.random.default_rng(2)
    ids = np.stack([generator.permutation(TRAINABLE_IDS) for _ in range(num_examples)])
    return ids, generator.normal(size=(num_examples, 1))


def once(embedding, optimizer, loss) -> keras.Model:
    ids = keras.Input((len(TRAINABLE_IDS),), dtype="int32")
    output = keras.layers.Dense(1, kernel_initializer="ones")(keras.layers.Flatten()(embedding(ids)))
    model = keras.Model(ids, output)
    model.compile(optimizer, loss=loss, jit_compile=False)
    return model


@pytest.mark.parametrize(
    ("make", "clip"),
    [
        pytest.param(keras.optimizers.SGD, {"clipnorm": 0.05}, marks=pytest.mark.slow),
        (LazySGD, {"global_clipnorm": 0.05}),
        pytest.param(LazySGD, {"clipvalue": 0.01}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_each_replica_clips_its_gradient_as_with_keras_s_embedding(make, clip, split):
    # each replica gets one example at a time
    data, loss = distinct_ids(8), SUM
    one, two = one_and_two(lambda: once(SplitEmbedding(split), make(0.1, **clip), loss), data, batch_size=2)
    theirs = on_two(lambda: once(stock(), keras.optimizers.SGD(0.1, **clip), loss), data, batch_size=2)
    np.testing.assert_allclose(trained_rows(two), trained_rows(theirs), rtol=0, atol=TOLERANCE)
    assert np.abs(trained_rows(two) - trained_rows(one)).max() > 100 * TOLERANCE


@pytest.mark.parametrize(
    ("in_last_batch", "weights"), [(5, [5 / 6] * 3 + [5 / 4] * 2), pytest.param(1, [1 / 2], marks=pytest.mark.slow)]
)
def test_a_mean_loss_is_the_mean_of_the_replicas_means_in_a_smaller_last_batch(in_last_batch, weights, split):
    """The result equals one device with these sample weights, and Keras's Embedding."""
    ids, targets = distinct_ids(2 * BATCH + in_last_batch)
    # Keras 3.6 adds the means of the replicas, later versions divide by their number
    with two_replicas().scope():
        scale = 2 * float(keras.losses.MeanSquaredError()(tf.ones([1, 1]), tf.zeros([1, 1])))
    weights = scale * np.array([1.0] * 2 * BATCH + weights)
    one, two = one_and_two(lambda: once(SplitEmbedding(split), LazySGD(0.02), "mse"), (ids, targets))
    theirs = on_two(lambda: once(stock(), keras.optimizers.SGD(0.02), "mse"), (ids, targets))
    weighted = fit(once(SplitEmbedding(split), LazySGD(0.02), "mse"), (ids, targets, weights))
    np.testing.assert_allclose(trained_rows(two), trained_rows(theirs), rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(trained_rows(two), trained_rows(weighted), rtol=0, atol=TOLERANCE)
    assert np.abs(trained_rows(two) - trained_rows(one)).max() > 100 * TOLERANCE


@pytest.mark.parametrize("make", [pytest.param(ADAM, marks=pytest.mark.slow), LAZY], ids=["Adam", "LazyAdam"])
def test_a_model_saved_on_two_devices_continues_training_on_one_and_back(make, split, tmp_path):
    """Training continues unchanged from a `.keras` file, saved on two devices and on one."""
    expected = fit(compiled(SplitEmbedding(split), make()), examples(), epochs=3)
    with two_replicas().scope():
        model = compiled(SplitEmbedding(split), make())
    for strategy in (tf.distribute.get_strategy(), two_replicas()):
        fit(model, examples(), epochs=1).save(tmp_path / "model.keras")
        with strategy.scope():
            model = keras.models.load_model(tmp_path / "model.keras")
        np.testing.assert_array_equal(embedding_of(model).to_split().combine()[0], split.combine()[0])
        assert len(replicas_of(embedding_of(model).trainable_rows)) == strategy.num_replicas_in_sync
    assert_equal(fit(model, examples(), epochs=1), expected)


def test_weights_saved_on_two_devices_load_on_one_and_back(split, tmp_path):
    one, two = one_and_two(lambda: compiled(SplitEmbedding(split), LAZY()), examples(), epochs=1)
    for source, target in ((two, one), (one, two)):
        for variable in target.trainable_variables:
            variable.assign(keras.ops.zeros_like(variable))
        source.save_weights(tmp_path / "model.weights.h5")
        target.load_weights(tmp_path / "model.weights.h5")
        assert_equal(target, source)
        assert np.abs(trained_rows(source)).min() > 0
    np.testing.assert_array_equal(one.predict(examples()[0], verbose=0), two.predict(examples()[0], verbose=0))


MEASURED = """
import keras, numpy as np
from tests.helpers.devices import two_replicas
from splitembed import LazyAdam, SplitEmbedding, SplitTable
from splitembed.arrays import aligned_empty
from benchmarks.accuracy.memory import PeakMemory

def train(num_frozen):
    frozen = aligned_empty((num_frozen, 100), np.float32)
    frozen[...] = 1
    remap = np.r_[~np.arange(100), np.arange(num_frozen)].astype(np.int32)
    split = SplitTable.from_arrays(frozen, remap, np.zeros((100, 100), np.float32))
    with PeakMemory() as peak, two_replicas().scope():
        model = keras.Sequential([keras.Input((8,), dtype="int32"), SplitEmbedding(split), keras.layers.Flatten(),
                                  keras.layers.Dense(1)])
        model.compile(LazyAdam(), loss="mse", jit_compile=False)
        model.fit(np.arange(256).reshape(32, 8) * (len(remap) // 256), np.ones((32, 1)), batch_size=8, verbose=0)
    return peak.growth

# the first training also allocates memory for TensorFlow and Keras
small = train(1000)
print(small, train(500_000))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="anonymous memory is read from Linux's /proc")
def test_training_on_two_devices_copies_no_frozen_row():
    table_bytes = 500_000 * 100 * 4
    _, growth = map(int, run_fresh(MEASURED).split()[-2:])
    assert growth < table_bytes / 4
