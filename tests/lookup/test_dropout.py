"""Dropout of trainable rows, in both forms of the lookup, for rows and bags: rates, draws, gradients and saving.

No row of these splits is zero except padding, so that a zero row in the output is a dropped one.
"""

import itertools
import json
import math
from collections.abc import Callable
from functools import cache

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from splitembed import LazyAdam, SplitEmbedding, SplitTable
from splitembed.errors import SplitError
from splitembed.layers.spec import LIVE
from splitembed.lookup.constant import Constants
from splitembed.lookup.dropout import checked_rate
from splitembed.lookup.dynamic import look_up
from splitembed.optimizers import LazySGD
from tests.helpers.bits import same_bits
from tests.helpers.devices import two_replicas
from tests.helpers.models import DIM, IDS, TARGETS, TRAINABLE_IDS, embeddings_in, functional, make_split
from tests.helpers.strategies import splits_and_ids

MANY = np.random.default_rng(0).integers(0, 6, (64, 60)).astype(np.int32)
TRAINS = np.isin(MANY, TRAINABLE_IDS)
COMBINERS = ("mean", "sum", "sqrtn")
# name: the form of the lookup, and a function that runs or compiles another one
WAYS = {
    "dynamic": ("dynamic", lambda function: function),
    "dynamic graph": ("dynamic", tf.function),
    "static": ("static", lambda function: function),
    "static graph": ("static", tf.function),
    "XLA": ("auto", lambda function: tf.function(function, jit_compile=True)),
}


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


def make_layer(rate: float = 0.5, seed: int | None = 0, split: SplitTable | None = None, **options) -> SplitEmbedding:
    return SplitEmbedding(split or make_split(), trainable_dropout=rate, seed=seed, **options)


def dropped(rows, ids: np.ndarray = MANY) -> np.ndarray:
    """Return where a trainable row is zero in the output: bool `ids.shape`."""
    return (np.asarray(rows) == 0).all(-1) & np.isin(ids, TRAINABLE_IDS)


def within_four_deviations(number: int, trials: int, rate: float) -> bool:
    """Check a number of a binomial distribution. The seeds are fixed, so the result of a test never changes."""
    return abs(number - trials * rate) < 4 * math.sqrt(trials * rate * (1 - rate))


# Draws


@pytest.mark.parametrize("rate", [1, 1.0, -0.1, 1.5, math.nan, None, True, "0.5"])
def test_invalid_rate_is_refused(rate):
    with pytest.raises(SplitError, match="`trainable_dropout` must be a probability, 0 <= p < 1"):
        SplitEmbedding(make_split(), trainable_dropout=rate)


def test_a_rate_can_be_the_integer_zero():
    assert checked_rate(0) == 0.0 and make_layer(0).get_config()["trainable_dropout"] == 0.0


# every way at one rate, and other rates in each form
@pytest.mark.parametrize(("way", "rate"), [*((way, 0.5) for way in WAYS), ("dynamic", 0.1), ("static", 0.8)])
def test_each_occurrence_is_dropped_with_the_given_probability(way, rate):
    form, run = WAYS[way]
    layer = make_layer(rate, lookup=form)
    gone = dropped(run(lambda ids: layer(ids, training=True))(tf.constant(MANY)))[TRAINS]
    assert within_four_deviations(gone.sum(), gone.size, rate)
    # neighbours are dropped independently of each other
    both = gone[1:] & gone[:-1]
    assert within_four_deviations(both.sum(), both.size, rate**2)


def test_all_other_rows_keep_their_bits(way):
    form, run = way
    layer, split = make_layer(lookup=form), make_split()
    rows = run(lambda ids: layer(ids, training=True))(tf.constant(MANY)).numpy()
    gone = dropped(rows)
    assert gone.any() and not gone.all()
    same_bits(rows[~gone], split.lookup(MANY)[~gone])
    same_bits(rows[gone], np.zeros((gone.sum(), DIM), np.float32))


@settings(max_examples=30)
@given(splits_and_ids(), st.sampled_from(["dynamic", "static"]), st.sampled_from([0.2, 0.9]))
def test_an_id_gets_its_row_or_if_it_trains_zeros(case, form, rate):
    split, ids = case
    rows = make_layer(rate, split=split, lookup=form)(ids, training=True).numpy()
    gone = (rows == 0).all(-1) & (split.remap[ids] < 0)
    same_bits(np.where(gone[..., None], 0, rows), np.where(gone[..., None], 0, split.lookup(ids)))


def test_nothing_is_dropped_outside_training(way):
    form, run = way
    layer = make_layer(0.9, lookup=form)
    same_bits(run(lambda ids: layer(ids, training=False))(tf.constant(MANY)), make_split().lookup(MANY))
    same_bits(layer(MANY), make_split().lookup(MANY))


def test_a_model_passes_training_to_the_layer():
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, make_layer()(ids))
    same_bits(model.predict(MANY, batch_size=64, verbose=0), make_split().lookup(MANY))
    assert dropped(model(MANY, training=True)).any() and not dropped(model(MANY)).any()


def test_a_seed_repeats_the_draws_and_each_step_draws_differently(way):
    form, run = way

    def steps(seed):
        layer = make_layer(seed=seed, lookup=form)
        function = run(lambda ids: layer(ids, training=True))
        return [dropped(function(tf.constant(MANY))).tobytes() for _ in range(3)]

    first = steps(1)
    assert first == steps(1)
    assert len({*first, *steps(2)}) == 6


def test_the_default_seed_comes_from_keras():
    draws = []
    for seed in (1, 1, 2):
        keras.utils.set_random_seed(seed)
        draws.append(dropped(make_layer(seed=None)(MANY, training=True)).tobytes())
    assert draws[0] == draws[1] != draws[2]


def test_an_untrainable_layer_drops_rows():
    """Only `training` decides, as in Keras's Dropout: later layers may train."""
    assert dropped(make_layer(trainable=False)(MANY, training=True)).any()


def test_two_calls_in_a_model_draw_differently(way):
    form, run = way
    layer, ids = make_layer(lookup=form), keras.Input((None,), dtype="int32")
    model = keras.Model(ids, [layer(ids), layer(ids)])
    both = run(lambda ids: model(ids, training=True))(tf.constant(MANY))
    assert (dropped(both[0]) != dropped(both[1])).any()
    for rows in both:
        same_bits(rows.numpy()[~dropped(rows)], make_split().lookup(MANY)[~dropped(rows)])


@pytest.mark.parametrize("form", ["dynamic", "static"])
@pytest.mark.parametrize("trainable_ids", [[], range(6)])
def test_all_frozen_and_all_trainable(trainable_ids, form):
    matrix = np.random.default_rng(3).normal(size=(6, DIM)).astype(np.float32)
    layer = make_layer(split=SplitTable.from_matrix(matrix, trainable_ids), lookup=form)
    # the second call would show zeros written into the table
    for _ in range(2):
        rows = layer(MANY, training=True).numpy()
        gone = (rows == 0).all(-1)
        assert gone.any() == bool(trainable_ids)
        same_bits(rows[~gone], matrix[MANY][~gone])
    same_bits(layer(MANY), matrix[MANY])


@pytest.mark.parametrize(("dtype", "form"), [("float16", "dynamic"), ("int8", "dynamic"), ("bfloat16", "static")])
def test_narrow_frozen_rows(dtype, form):
    split = make_split().with_frozen_dtype(dtype)
    rows = make_layer(split=split, lookup=form)(MANY, training=True).numpy()
    gone = dropped(rows)
    assert gone.any()
    same_bits(rows[~gone], split.lookup(MANY)[~gone])


def test_ragged_ids():
    ragged = tf.RaggedTensor.from_row_lengths(MANY.reshape(-1), [60 * 60, 0, 4 * 60])
    rows = make_layer()(ragged, training=True)
    assert rows.row_lengths().numpy().tolist() == [3600, 0, 240]
    gone = dropped(rows.flat_values, MANY.reshape(-1))
    assert within_four_deviations(gone.sum(), TRAINS.sum(), 0.5)
    same_bits(rows.flat_values.numpy()[~gone], make_split().lookup(MANY.reshape(-1))[~gone])


@pytest.mark.parametrize(
    ("way", "policy"),
    [("dynamic", "mixed_float16"), ("dynamic", "mixed_bfloat16"), ("static", "float64"), ("XLA", "mixed_float16")],
)
def test_dtype_policies(way, policy):
    form, run = WAYS[way]
    layer = make_layer(dtype=policy, lookup=form)
    rows = run(lambda ids: layer(ids, training=True))(tf.constant(MANY))
    assert rows.dtype == layer.compute_dtype
    gone = dropped(tf.cast(rows, tf.float32))
    assert within_four_deviations(gone.sum(), TRAINS.sum(), 0.5)
    same_bits(rows.numpy()[~gone], tf.cast(make_split().lookup(MANY), rows.dtype).numpy()[~gone])


def test_dropout_does_not_change_the_mask():
    layer = make_layer(0.9, mask_zero=True)
    rows = layer(MANY, training=True)
    np.testing.assert_array_equal(keras.src.backend.get_keras_mask(rows), MANY != 0)
    same_bits(rows.numpy()[MANY == 0], np.zeros(((MANY == 0).sum(), DIM), np.float32))


# Cost


def test_the_dynamic_form_draws_one_number_for_each_occurrence_of_a_trainable_row():
    drawn = []

    def drop(shape):
        drawn.append([int(length) for length in shape])
        return tf.zeros(shape, bool)

    split = make_split()
    rows = look_up(tf.constant(MANY), Constants(split), tf.Variable(split.trainable), drop=drop)
    same_bits(rows, split.lookup(MANY))
    assert drawn == [[TRAINS.sum()]]


@pytest.mark.parametrize("options", [{}, {"combiner": "mean"}, {"lookup": "static"}])
def test_a_graph_without_dropout_has_no_random_operation(options):
    """A rate of 0, and any rate outside training, adds no operation."""

    def kinds(layer, training):
        graph = tf.function(lambda ids: layer(ids, training=training)).get_concrete_function(tf.constant(MANY)).graph
        return [operation.type for operation in graph.get_operations()]

    plain, layer = SplitEmbedding(make_split(), **options), make_layer(**options)
    expected = kinds(plain, False)
    assert kinds(plain, True) == kinds(layer, False) == expected
    assert any("Random" in kind for kind in kinds(layer, True)) and not any("Random" in kind for kind in expected)
    assert not hasattr(plain, "seed_generator") and len(plain.variables) == 1


# Bags


def bagged(rows: np.ndarray, gone: np.ndarray, weights: np.ndarray, combiner: str) -> np.ndarray:
    """Return the expected bags in float64: a dropped row adds nothing, and counts in the divisor."""
    weights = weights.astype(np.float64)
    total = (np.where(gone[..., None], 0, rows) * weights[..., None]).sum(1)
    divisor = {"sum": np.ones(len(rows)), "mean": weights.sum(1), "sqrtn": np.sqrt((weights**2).sum(1))}[combiner]
    return total / divisor[:, None]


@cache
def dropped_by_seed_0(form: str, run: Callable) -> np.ndarray:
    """Return the ids of MANY whose rows a layer without a combiner drops in its first call."""
    layer = make_layer(lookup=form)
    return dropped(run(lambda ids: layer(ids, training=True))(tf.constant(MANY)))


@pytest.mark.parametrize(
    ("combiner", "is_weighted", "mask_zero"),
    [("sum", False, False), ("mean", True, True), ("mean", False, True), ("sqrtn", True, False)],
)
def test_bags_drop_the_rows_that_a_layer_of_the_same_seed_drops(way, combiner, is_weighted, mask_zero):
    form, run = way
    bags = make_layer(lookup=form, combiner=combiner, mask_zero=mask_zero)
    weights = np.random.default_rng(1).uniform(0.5, 2, MANY.shape).astype(np.float32)
    arguments = [tf.constant(MANY), *([tf.constant(weights)] if is_weighted else [])]
    found = run(lambda *arguments: bags(*arguments, training=True))(*arguments)
    counted = (weights if is_weighted else np.ones_like(weights)) * ((MANY != 0) | (not mask_zero))
    gone = dropped_by_seed_0(form, run)
    assert gone.any()
    np.testing.assert_allclose(found, bagged(make_split().lookup(MANY), gone, counted, combiner), rtol=0, atol=1e-4)


@pytest.mark.parametrize("combiner", COMBINERS)
def test_ragged_bags(combiner):
    plain, bags = make_layer(), make_layer(combiner=combiner)
    lengths = [60 * 60, 4 * 60]
    ragged = tf.RaggedTensor.from_row_lengths(MANY.reshape(-1), lengths)
    rows = plain(ragged, training=True).flat_values.numpy()
    divisors = np.array(lengths) ** {"sum": 0, "mean": 1, "sqrtn": 0.5}[combiner]
    wanted = np.add.reduceat(rows.astype(np.float64), [0, lengths[0]]) / divisors[:, None]
    np.testing.assert_allclose(bags(ragged, training=True), wanted, rtol=1e-4, atol=1e-4)


# Gradients and training


@pytest.mark.parametrize(("form", "gradient"), [("dynamic", "dense"), ("dynamic", "sparse"), ("static", "auto")])
def test_the_gradient_is_the_sum_of_the_kept_occurrences(form, gradient):
    layer = make_layer(lookup=form, gradient=gradient)
    factors = np.random.default_rng(2).normal(size=(*MANY.shape, DIM)).astype(np.float32)
    layer.build()
    with tf.GradientTape() as tape:
        rows = layer(MANY, training=True)
        gone = dropped(rows)
        assert gone.any()
        # the upstream gradient of a dropped row must not be used
        factors[gone] = np.nan
    found = tape.gradient(rows, layer.trainable_rows.value, output_gradients=tf.constant(factors))
    wanted = [factors[(token_id == MANY) & ~gone].sum(0, dtype=np.float64) for token_id in TRAINABLE_IDS]
    np.testing.assert_allclose(tf.convert_to_tensor(found), wanted, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("form", "combiner", "is_weighted"),
    [("dynamic", "mean", False), ("static", "mean", False)]
    + [(form, combiner, True) for form in ("dynamic", "static") for combiner in COMBINERS],
)
def test_gradients_of_bags_equal_those_of_pooling_the_kept_rows(form, combiner, is_weighted):
    layer, plain = make_layer(lookup=form, combiner=combiner), make_layer(lookup=form)
    weights = tf.Variable(np.random.default_rng(1).uniform(0.5, 2, MANY.shape).astype(np.float32))
    ones, kept = tf.ones_like(weights), ~dropped(plain(MANY, training=True))
    assert not kept.all()
    layer.build()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sin(layer(MANY, weights if is_weighted else None, training=True)))
    found = tape.gradient(loss, [layer.trainable_rows.value, *([weights] if is_weighted else [])])
    table, remap = plain.trainable_rows.value, make_split().remap
    with tf.GradientTape() as tape:
        learned = tf.gather(tf.convert_to_tensor(table), np.maximum(~remap[MANY], 0))
        rows = tf.where(TRAINS[..., None], learned, make_split().lookup(MANY)) * kept[..., None].astype(np.float32)
        each = weights if is_weighted else ones
        power = {"sum": ones[:, :1], "mean": each, "sqrtn": each**2}[combiner]
        divisor = tf.reduce_sum(power, 1, keepdims=True) ** (0.5 if combiner == "sqrtn" else 1.0)
        loss = tf.reduce_sum(tf.sin(tf.reduce_sum(rows * each[..., None], 1) / divisor))
    wanted = tape.gradient(loss, [table, weights])
    for ours, theirs in zip(found, wanted, strict=False):
        np.testing.assert_allclose(tf.convert_to_tensor(ours), tf.convert_to_tensor(theirs), rtol=0, atol=1e-3)
    if is_weighted and combiner == "sum":
        np.testing.assert_array_equal(found[1].numpy()[~kept], 0)


@pytest.mark.parametrize("jit", [False, True])
def test_lazy_adam_does_not_update_a_row_whose_occurrences_were_all_dropped(jit):
    """Both rows occur once per batch, so that a step changes a row exactly if it was kept."""
    layer = make_layer()
    model = functional(layer)
    model.compile(LazyAdam(0.1), "mse", jit_compile=jit)
    moved = []
    for _ in range(20):
        before = layer.to_split().trainable
        model.train_on_batch(np.array([[1, 2, 4]]), TARGETS[:1])
        moved.append((layer.to_split().trainable != before).any(1))
    moved = np.array(moved)
    assert moved.any(0).all() and not moved.all(0).any()
    assert (moved[:, 0] != moved[:, 1]).any()


@pytest.mark.parametrize("jit", [False, True])
def test_fit_drops_the_same_with_the_same_seed(jit):
    def trained(rate, seed):
        layer = make_layer(rate, seed)
        model = functional(layer)
        model.compile(LazySGD(0.1), "mse", jit_compile=jit)
        model.fit(IDS, TARGETS, batch_size=2, epochs=3, shuffle=False, verbose=0)
        assert layer.to_split().frozen.tobytes() == make_split().frozen.tobytes()
        return layer.to_split().trainable.tobytes()

    first = trained(0.5, 1)
    assert trained(0.5, 1) == first
    assert len({first, trained(0.5, 2), trained(0.0, 1)}) == 3


def test_replicas_draw_differently():
    """Both replicas get the same ids and the same number of steps."""
    with two_replicas().scope():
        layer = make_layer()
        layer.build()

    @tf.function
    def step():
        return two_replicas().run(lambda: layer(tf.constant(MANY), training=True))

    draws = [dropped(rows) for _ in range(2) for rows in step().values]
    assert len({each.tobytes() for each in draws}) == 4
    assert all(within_four_deviations(each.sum(), TRAINS.sum(), 0.5) for each in draws)
    same = [one & other for one, other in itertools.pairwise(draws)]
    assert all(within_four_deviations(each.sum(), TRAINS.sum(), 0.25) for each in same)


def test_replicas_stay_equal_under_fit():
    with two_replicas().scope():
        layer = make_layer()
        model = functional(layer)
        model.compile(LazyAdam(0.1), "mse", jit_compile=False)
    model.fit(IDS, TARGETS, batch_size=4, epochs=3, verbose=0)
    for variable in (layer.trainable_rows.value, layer.seed_generator.state.value):
        one, other = two_replicas().experimental_local_results(variable)
        same_bits(one, other)
    assert (layer.to_split().trainable != make_split().trainable).all()


# Saving and export


def test_the_config_has_rate_and_seed_and_an_older_config_loads_without():
    layer = make_layer(0.25, seed=7)
    config = json.loads(json.dumps(layer.get_config()))
    assert (config["trainable_dropout"], config["seed"]) == (0.25, 7)
    again = SplitEmbedding.from_config(config)
    same_bits(again(MANY, training=True), layer(MANY, training=True))
    del config["trainable_dropout"], config["seed"]
    same_bits(SplitEmbedding.from_config(config)(MANY, training=True), make_split().lookup(MANY))


def test_a_clone_draws_the_same():
    model = functional(make_layer(seed=3))
    clone = keras.models.clone_model(model)
    (layer,) = (each for each in clone.layers if isinstance(each, SplitEmbedding))
    same_bits(layer(MANY, training=True), make_layer(seed=3)(MANY, training=True))


def trained_model(rate: float) -> keras.Model:
    model = functional(make_layer(rate))
    model.compile(LazyAdam(0.1), "mse")
    model.fit(IDS, TARGETS, verbose=0)
    return model


def test_a_loaded_model_predicts_the_same_and_starts_its_draws_from_the_seed(tmp_path):
    model = trained_model(0.5)
    model.save(tmp_path / "m.keras")
    LIVE.clear()
    loaded = keras.models.load_model(tmp_path / "m.keras")
    same_bits(loaded.predict(IDS, verbose=0), model.predict(IDS, verbose=0))
    (layer,) = embeddings_in(loaded)
    fresh = make_layer(split=layer.to_split())
    same_bits(layer(IDS, training=True), fresh(IDS, training=True))


@pytest.mark.parametrize(("saved", "loaded"), [(0.5, 0.0), (0.0, 0.5)])
def test_weights_and_checkpoints_load_at_another_rate(saved, loaded, tmp_path):
    """Weights contain no state of the draws."""
    model, other, third = trained_model(saved), trained_model(loaded), trained_model(loaded)
    expected = model.predict(IDS, verbose=0)
    model.save_weights(tmp_path / "m.weights.h5")
    other.load_weights(tmp_path / "m.weights.h5")
    path = tf.train.Checkpoint(model=model).save(tmp_path / "checkpoint")
    status = tf.train.Checkpoint(model=third).restore(path)
    status.assert_consumed().assert_existing_objects_matched()
    for each in (other, third):
        np.testing.assert_array_equal(each.predict(IDS, verbose=0), expected)
        assert not np.array_equal(each(IDS, training=True), expected) or not loaded


def test_an_exported_model_has_no_random_operation(tmp_path):
    model = trained_model(0.5)
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", model, [tf.TensorSpec((None, None), tf.int32)])
    archive.write_out(tmp_path / "served", verbose=False)
    served = tf.saved_model.load(tmp_path / "served")
    definition = served.signatures["serve"].graph.as_graph_def()
    nodes = [*definition.node, *(node for each in definition.library.function for node in each.node_def)]
    assert len(nodes) > 10 and not [node.op for node in nodes if "Random" in node.op]
    np.testing.assert_allclose(served.serve(tf.constant(IDS, tf.int32)), model.predict(IDS, verbose=0), atol=1e-6)
