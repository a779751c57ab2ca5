"""Two devices under `fit`: replicas equal each other, and one device on the same global batches; and what Keras does.

MirroredStrategy gives each replica half of a batch. A loss that is a sum counts every example the same, whichever
replica it fell to and however few a replica had: that is what "the same as one device" is measured with.
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

NUM_TOKENS, DIM, BATCH, LENGTH = 12, 4, 8, 6
TRAINABLE_IDS = [1, 4, 5, 9]
TOLERANCE = 1e-5  # float32: replicas sum in another order
SUM = keras.losses.MeanSquaredError(reduction="sum")
ADAM, LAZY = partial(keras.optimizers.Adam, 0.05), partial(LazyAdam, 0.05)

OPTIMIZERS = {
    "Adam": ADAM,
    "LossScaleOptimizer": lambda: keras.optimizers.LossScaleOptimizer(LAZY(), initial_scale=8.0),
    "LazyAdam": LAZY,
    "LazyAdam weight decay": partial(LAZY, weight_decay=0.1),
    "LazyAdam ema": partial(LAZY, use_ema=True, ema_momentum=0.5),
    "LazyAdam loss scale": partial(LAZY, loss_scale_factor=8.0),
    "LazySGD momentum": partial(LazySGD, 0.01, momentum=0.9),
}


def make_split() -> SplitTable:
    return SplitTable.from_matrix(rows_of_all_tokens(), TRAINABLE_IDS)


split = pytest.fixture(make_split, scope="module", name="split")


def rows_of_all_tokens() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(NUM_TOKENS, DIM)).astype(np.float32)


def examples(in_last_batch: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Six batches that repeat ids within and across replicas, four of them odd in some way.

    In the second batch one replica has no trainable token, in the third none has any, in the fourth every token is the
    same trainable one; the last is smaller, and of one example leaves a replica with an empty batch.
    """
    generator = np.random.default_rng(1)
    ids = generator.integers(0, NUM_TOKENS, (6, BATCH, LENGTH))
    ids[1, BATCH // 2 :] = ids[2] = 0
    ids[3] = TRAINABLE_IDS[1]
    kept = 5 * BATCH + in_last_batch
    return ids.reshape(-1, LENGTH)[:kept], generator.normal(size=(6 * BATCH, 1))[:kept]


def compiled(embedding, optimizer, loss=SUM, **options) -> keras.Model:
    """A model that looks up twice, so that one step has two gradients of one table."""
    ids = keras.Input((None,), dtype="int32")
    looked_up = [embedding(ids), embedding(ids[:, ::2])]
    if len(looked_up[0].shape) == 3:
        looked_up = [keras.layers.GlobalAveragePooling1D()(rows) for rows in looked_up]
    output = keras.layers.Dense(1, kernel_initializer="ones")(keras.layers.Concatenate()(looked_up))
    model = keras.Model(ids, output)
    model.compile(optimizer, loss=loss, jit_compile=False, **options)
    return model


def stock() -> keras.layers.Embedding:
    """Keras's own layer on the same rows, all of which train."""
    rows = rows_of_all_tokens()
    return keras.layers.Embedding(NUM_TOKENS, DIM, embeddings_initializer=lambda shape, dtype=None: tf.constant(rows))


def fit(model, data, epochs=3, batch_size=BATCH) -> keras.Model:
    ids, targets, *weights = data
    sample_weight = weights[0] if weights else None
    model.fit(ids, targets, batch_size, epochs, shuffle=False, verbose=0, sample_weight=sample_weight)
    return model


def on_two(make_model, data, **options) -> keras.Model:
    """A model, trained on two devices."""
    with two_replicas().scope():
        model = make_model()
    return fit(model, data, **options)


def one_and_two(make_model, data, **options) -> tuple[keras.Model, keras.Model]:
    """The same model, trained on one device and on two."""
    return fit(make_model(), data, **options), on_two(make_model, data, **options)


def replicas_of(variable) -> list[np.ndarray]:
    return [each.numpy() for each in two_replicas().experimental_local_results(variable.value)]


def assert_equal(found: keras.Model, expected: keras.Model) -> None:
    """Weights and the optimizer's slots; and the replicas to the bit, where there are any."""
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
    """The rows of TRAINABLE_IDS, in that order."""
    embedding = embedding_of(model)
    rows = embedding.trainable_weights[0].numpy()
    return rows if isinstance(embedding, SplitEmbedding) else rows[TRAINABLE_IDS]


def assert_trained_alone(model, split: SplitTable, before: bytes) -> None:
    """The trainable rows moved, all of them, and nothing else did."""
    assert (np.abs(trained_rows(model) - split.trainable).max(axis=1) > 100 * TOLERANCE).all()
    found = embedding_of(model).to_split()
    assert found.frozen.tobytes() == before == split.frozen.tobytes()
    np.testing.assert_array_equal(found.remap, split.remap)


def test_the_batches_are_as_odd_as_they_say(split):
    replicas = [ids.reshape(2, -1) for ids in examples(8)[0].reshape(-1, BATCH, LENGTH)]
    has_trainable = [[bool(np.isin(ids, TRAINABLE_IDS).any()) for ids in pair] for pair in replicas]
    assert has_trainable == [[True, True], [True, False], [False, False], [True, True], [True, True], [True, True]]
    dataset = two_replicas().experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(examples()).batch(BATCH)
    )
    sizes = [[len(ids) for ids in two_replicas().experimental_local_results(batch)] for batch, _ in dataset]
    assert sizes == [[4, 4]] * 5 + [[1, 0]]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_fit_on_two_devices_equals_one(name, split):
    before = split.frozen.tobytes()
    one, two = one_and_two(lambda: compiled(SplitEmbedding(split), OPTIMIZERS[name]()), examples())
    assert_equal(two, one)
    assert_trained_alone(two, split, before)


@pytest.mark.parametrize(
    ("options", "frozen_dtype"),
    [
        ({"gradient": "sparse"}, None),
        ({"combiner": "mean"}, None),
        ({"combiner": "sqrtn"}, "int8"),
        ({}, "float16"),
        ({}, "bfloat16"),
    ],
    ids=str,
)
def test_fit_of_every_kind_of_layer_on_two_devices_equals_one(options, frozen_dtype, split):
    split = split if frozen_dtype is None else split.with_frozen_dtype(frozen_dtype)
    before = split.frozen.tobytes()
    one, two = one_and_two(lambda: compiled(SplitEmbedding(split, **options), LAZY()), examples(5))
    assert_equal(two, one)
    assert_trained_alone(two, split, before)


@pytest.mark.parametrize("make", [ADAM, LAZY], ids=["Adam", "LazyAdam"])
def test_eager_fit_on_two_devices_equals_one(make, split):
    one, two = one_and_two(lambda: compiled(SplitEmbedding(split), make(), run_eagerly=True), examples(), epochs=1)
    assert_equal(two, one)


OUTCOME = """
import json, sys
import tensorflow as tf
from tests.layers.test_devices import ADAM, LAZY, SplitEmbedding, compiled, examples, fit
from tests.layers.test_devices import make_split, stock, trained_rows, two_replicas

which, optimizer_options, compile_options = map(json.loads, sys.argv[1:])
strategy = tf.distribute.get_strategy() if which == "one" else two_replicas()
with strategy.scope():
    make, embedding = (ADAM, stock()) if which == "stock" else (LAZY, SplitEmbedding(make_split()))
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
def test_what_keras_cannot_do_on_two_devices_fails_by_name_and_not_only_with_our_layer(
    optimizer_options, compile_options
):
    """Where Keras's own Embedding trains, ours does, as on one device; where it fails, ours is not silently wrong.

    In processes of their own: a step that failed leaves TensorFlow's collective operations unusable.
    """

    def outcome(which: str) -> list | str:
        """The rows as trained, or the kind of error that fit ended in."""
        arguments = map(json.dumps, (which, optimizer_options, compile_options))
        return json.loads(run_fresh(OUTCOME, *arguments).splitlines()[-1])

    found, expected = outcome("ours"), outcome("stock")
    if isinstance(expected, str):
        assert found == expected
    else:
        np.testing.assert_allclose(found, outcome("one"), rtol=0, atol=TOLERANCE)


def distinct_ids(num_examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Each example has every trainable token once: Keras's own layer neither repeats a row nor moves any other."""
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
        (keras.optimizers.SGD, {"clipnorm": 0.05}),
        (LazySGD, {"global_clipnorm": 0.05}),
        (LazySGD, {"clipvalue": 0.01}),
    ],
    ids=str,
)
def test_each_replica_clips_its_own_gradient_as_with_any_layer_of_keras(make, clip, split):
    data, loss = distinct_ids(8), SUM  # of which each replica has one at a time
    one, two = one_and_two(lambda: once(SplitEmbedding(split), make(0.1, **clip), loss), data, batch_size=2)
    theirs = on_two(lambda: once(stock(), keras.optimizers.SGD(0.1, **clip), loss), data, batch_size=2)
    np.testing.assert_allclose(trained_rows(two), trained_rows(theirs), rtol=0, atol=TOLERANCE)
    assert np.abs(trained_rows(two) - trained_rows(one)).max() > 100 * TOLERANCE


@pytest.mark.parametrize(("in_last_batch", "weights"), [(5, [5 / 6] * 3 + [5 / 4] * 2), (1, [1 / 2])])
def test_a_mean_loss_is_a_mean_of_means_in_a_smaller_last_batch(in_last_batch, weights, split):
    """As one device does it, had those examples these weights; with Keras's own layer too."""
    ids, targets = distinct_ids(2 * BATCH + in_last_batch)
    with two_replicas().scope():  # Keras 3.6 adds the replicas' means up, later ones divide by their number
        scale = 2 * float(keras.losses.MeanSquaredError()(tf.ones([1, 1]), tf.zeros([1, 1])))
    weights = scale * np.array([1.0] * 2 * BATCH + weights)
    one, two = one_and_two(lambda: once(SplitEmbedding(split), LazySGD(0.02), "mse"), (ids, targets))
    theirs = on_two(lambda: once(stock(), keras.optimizers.SGD(0.02), "mse"), (ids, targets))
    weighted = fit(once(SplitEmbedding(split), LazySGD(0.02), "mse"), (ids, targets, weights))
    np.testing.assert_allclose(trained_rows(two), trained_rows(theirs), rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(trained_rows(two), trained_rows(weighted), rtol=0, atol=TOLERANCE)
    assert np.abs(trained_rows(two) - trained_rows(one)).max() > 100 * TOLERANCE


@pytest.mark.parametrize("make", [ADAM, LAZY], ids=["Adam", "LazyAdam"])
def test_a_model_saved_on_two_devices_goes_on_on_one_and_back(make, split, tmp_path):
    """Rows, slots and frozen rows cross in a `.keras` file both ways, and training goes on as if nothing had been."""
    expected = fit(compiled(SplitEmbedding(split), make()), examples(), epochs=3)
    with two_replicas().scope():
        model = compiled(SplitEmbedding(split), make())
    for place in (tf.distribute.get_strategy(), two_replicas()):
        fit(model, examples(), epochs=1).save(tmp_path / "model.keras")
        with place.scope():
            model = keras.models.load_model(tmp_path / "model.keras")
        np.testing.assert_array_equal(embedding_of(model).to_split().combine()[0], split.combine()[0])
        assert len(replicas_of(embedding_of(model).trainable_rows)) == place.num_replicas_in_sync
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
import sys, keras, numpy as np, tensorflow as tf
from contextlib import nullcontext
from tests.helpers.devices import two_replicas
from splitembed import LazyAdam, SplitEmbedding, SplitTable
from splitembed.arrays import aligned_empty
from benchmarks.accuracy.memory import PeakMemory

def train(num_frozen):
    frozen = aligned_empty((num_frozen, 100), np.float32)
    frozen[...] = 1
    remap = np.r_[~np.arange(100), np.arange(num_frozen)].astype(np.int32)
    split = SplitTable.from_arrays(frozen, remap, np.zeros((100, 100), np.float32))
    with PeakMemory() as peak, two_replicas().scope() if sys.argv[1] == "two" else nullcontext():
        model = keras.Sequential([keras.Input((8,), dtype="int32"), SplitEmbedding(split), keras.layers.Flatten(),
                                  keras.layers.Dense(1)])
        model.compile(LazyAdam(), loss="mse", jit_compile=False)
        model.fit(np.arange(256).reshape(32, 8) * (len(remap) // 256), np.ones((32, 1)), batch_size=8, verbose=0)
    return peak.growth

small = train(1000)  # what TensorFlow and Keras take for themselves, the first time
print(small, train(500_000))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="anonymous memory is told by Linux's /proc")
@pytest.mark.parametrize("devices", ["one", "two"])
def test_training_copies_no_frozen_row_on_any_number_of_logical_cpus(devices):
    table_bytes = 500_000 * 100 * 4
    _, growth = map(int, run_fresh(MEASURED, devices).split()[-2:])
    assert growth < table_bytes / 4
