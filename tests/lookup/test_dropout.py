"""Dropped occurrences of trainable rows: how many, which, and that nothing else moves; in both forms, alone and bagged.

A row of the splits here is never zero, unless it is padding, so what was dropped shows in what comes out.
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
from tests.helpers.fresh import run_fresh
from tests.helpers.models import DIM, IDS, TARGETS, TRAINABLE_IDS, functional, make_split
from tests.helpers.strategies import splits_and_ids

MANY = np.random.default_rng(0).integers(0, 6, (64, 60)).astype(np.int32)
TRAINS = np.isin(MANY, TRAINABLE_IDS)
COMBINERS = ("mean", "sum", "sqrtn")
# name: the form, and how a function of tensors is run
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
    """bool `ids.shape`: where a trainable row came out as zeros."""
    return (np.asarray(rows) == 0).all(-1) & np.isin(ids, TRAINABLE_IDS)


def within_four_deviations(number: int, trials: int, rate: float) -> bool:
    """Of a binomial; the seeds are fixed, so a test that passes will."""
    return abs(number - trials * rate) < 4 * math.sqrt(trials * rate * (1 - rate))


# What is drawn


@pytest.mark.parametrize("rate", [1, 1.0, -0.1, 1.5, math.nan, None, True, "0.5"])
def test_what_is_no_rate_is_refused(rate):
    with pytest.raises(SplitError, match="`trainable_dropout` must be a probability, 0 <= p < 1"):
        SplitEmbedding(make_split(), trainable_dropout=rate)


def test_whole_numbers_are_rates_too():
    assert checked_rate(0) == 0.0 and make_layer(0).get_config()["trainable_dropout"] == 0.0


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_each_occurrence_is_dropped_with_the_probability(way, rate):
    form, run = way
    layer = make_layer(rate, lookup=form)
    gone = dropped(run(lambda ids: layer(ids, training=True))(tf.constant(MANY)))[TRAINS]
    assert within_four_deviations(gone.sum(), gone.size, rate)
    both = gone[1:] & gone[:-1]  # neighbours are dropped independently of each other
    assert within_four_deviations(both.sum(), both.size, rate**2)


def test_all_other_rows_stay_to_the_bit(way):
    form, run = way
    layer, split = make_layer(lookup=form), make_split()
    rows = run(lambda ids: layer(ids, training=True))(tf.constant(MANY)).numpy()
    gone = dropped(rows)
    assert gone.any() and not gone.all()
    same_bits(rows[~gone], split.lookup(MANY)[~gone])
    same_bits(rows[gone], np.zeros((gone.sum(), DIM), np.float32))


@settings(max_examples=30)
@given(splits_and_ids(), st.sampled_from(["dynamic", "static"]), st.sampled_from([0.2, 0.9]))
def test_any_split_gives_each_id_its_row_or_zeros_if_it_trains(case, form, rate):
    split, ids = case
    rows = make_layer(rate, split=split, lookup=form)(ids, training=True).numpy()
    gone = (rows == 0).all(-1) & (split.remap[ids] < 0)
    same_bits(np.where(gone[..., None], 0, rows), np.where(gone[..., None], 0, split.lookup(ids)))


@pytest.mark.parametrize("training", [None, False])
def test_without_training_nothing_is_dropped(way, training):
    form, run = way
    layer = make_layer(0.9, lookup=form)
    same_bits(run(lambda ids: layer(ids, training=training))(tf.constant(MANY)), make_split().lookup(MANY))


def test_the_layer_hears_from_its_model_whether_it_trains():
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, make_layer()(ids))
    same_bits(model.predict(MANY, batch_size=64, verbose=0), make_split().lookup(MANY))
    assert dropped(model(MANY, training=True)).any() and not dropped(model(MANY)).any()


def test_a_seed_gives_the_same_draws_and_each_step_others(way):
    form, run = way

    def steps(seed):
        layer = make_layer(seed=seed, lookup=form)
        function = run(lambda ids: layer(ids, training=True))
        return [dropped(function(tf.constant(MANY))).tobytes() for _ in range(3)]

    first = steps(1)
    assert first == steps(1)
    assert len({*first, *steps(2)}) == 6


def test_without_a_seed_keras_gives_one():
    draws = []
    for seed in (1, 1, 2):
        keras.utils.set_random_seed(seed)
        draws.append(dropped(make_layer(seed=None)(MANY, training=True)).tobytes())
    assert draws[0] == draws[1] != draws[2]


def test_a_layer_that_does_not_train_drops_all_the_same():
    """As Keras's Dropout does: what comes after the rows may train, and `training` is what says so."""
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
    for _ in range(2):  # were zeros written over a constant, the second call would show it
        rows = layer(MANY, training=True).numpy()
        gone = (rows == 0).all(-1)
        assert gone.any() == bool(trainable_ids)
        same_bits(rows[~gone], matrix[MANY][~gone])
    same_bits(layer(MANY), matrix[MANY])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
@pytest.mark.parametrize("form", ["dynamic", "static"])
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


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float64"])
def test_dtype_policies(way, policy):
    form, run = way
    layer = make_layer(dtype=policy, lookup=form)
    rows = run(lambda ids: layer(ids, training=True))(tf.constant(MANY))
    assert rows.dtype == layer.compute_dtype
    gone = dropped(tf.cast(rows, tf.float32))
    assert within_four_deviations(gone.sum(), TRAINS.sum(), 0.5)
    same_bits(rows.numpy()[~gone], tf.cast(make_split().lookup(MANY), rows.dtype).numpy()[~gone])


def test_the_mask_is_that_of_the_ids():
    layer = make_layer(0.9, mask_zero=True)
    rows = layer(MANY, training=True)
    np.testing.assert_array_equal(keras.src.backend.get_keras_mask(rows), MANY != 0)
    same_bits(rows.numpy()[MANY == 0], np.zeros(((MANY == 0).sum(), DIM), np.float32))


# What it costs


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
def test_without_dropout_the_graph_is_as_it_was(options):
    """Neither a rate of 0 in training nor a rate outside training leaves an operation."""

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
    """NumPy's answer in float64: what is dropped adds nothing, and counts in the divisor."""
    weights = weights.astype(np.float64)
    total = (np.where(gone[..., None], 0, rows) * weights[..., None]).sum(1)
    divisor = {"sum": np.ones(len(rows)), "mean": weights.sum(1), "sqrtn": np.sqrt((weights**2).sum(1))}[combiner]
    return total / divisor[:, None]


@cache
def dropped_by_seed_0(form: str, run: Callable) -> np.ndarray:
    """Of MANY, where a layer that does not bag drops the row in its first call."""
    layer = make_layer(lookup=form)
    return dropped(run(lambda ids: layer(ids, training=True))(tf.constant(MANY)))


@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("mask_zero", [False, True])
def test_bags_leave_out_what_a_layer_of_the_same_seed_drops(way, combiner, is_weighted, mask_zero):
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
def test_the_gradient_is_that_of_the_occurrences_that_were_kept(form, gradient):
    layer = make_layer(lookup=form, gradient=gradient)
    factors = np.random.default_rng(2).normal(size=(*MANY.shape, DIM)).astype(np.float32)
    layer.build()
    with tf.GradientTape() as tape:
        rows = layer(MANY, training=True)
        gone = dropped(rows)
        assert gone.any()
        factors[gone] = np.nan  # whatever reaches a dropped row goes no further
    found = tape.gradient(rows, layer.trainable_rows.value, output_gradients=tf.constant(factors))
    wanted = [factors[(token_id == MANY) & ~gone].sum(0, dtype=np.float64) for token_id in TRAINABLE_IDS]
    np.testing.assert_allclose(tf.convert_to_tensor(found), wanted, rtol=0, atol=1e-4)


@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("form", ["dynamic", "static"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_gradients_of_bags_equal_those_of_pooling_what_was_kept(form, combiner, is_weighted):
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
def test_a_row_whose_every_occurrence_was_dropped_is_not_touched_by_lazy_adam(jit):
    """Both rows occur once a batch, so a step moves one exactly where it was not dropped, momentum or not."""
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

    assert trained(0.5, 1) == trained(0.5, 1)
    assert len({trained(0.5, 1), trained(0.5, 2), trained(0.0, 1)}) == 3


def test_replicas_draw_differently():
    """Each replica gets the same ids; the strategy counts the layer's steps alike on both."""
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


def test_replicas_stay_alike_under_fit():
    with two_replicas().scope():
        layer = make_layer()
        model = functional(layer)
        model.compile(LazyAdam(0.1), "mse", jit_compile=False)
    model.fit(IDS, TARGETS, batch_size=4, epochs=3, verbose=0)
    for variable in (layer.trainable_rows.value, layer.seed_generator.state.value):
        one, other = two_replicas().experimental_local_results(variable)
        same_bits(one, other)
    assert (layer.to_split().trainable != make_split().trainable).all()


# Saving and leaving


def test_config_says_it_and_an_older_one_need_not():
    layer = make_layer(0.25, seed=7)
    config = json.loads(json.dumps(layer.get_config()))
    assert (config["trainable_dropout"], config["seed"]) == (0.25, 7)
    again = SplitEmbedding.from_config(config)
    same_bits(again(MANY, training=True), layer(MANY, training=True))
    del config["trainable_dropout"], config["seed"]
    same_bits(SplitEmbedding.from_config(config)(MANY, training=True), make_split().lookup(MANY))


def test_a_clone_drops_too():
    model = functional(make_layer(seed=3))
    clone = keras.models.clone_model(model)
    (layer,) = (each for each in clone.layers if isinstance(each, SplitEmbedding))
    same_bits(layer(MANY, training=True), make_layer(seed=3)(MANY, training=True))


def trained_model(rate: float) -> keras.Model:
    model = functional(make_layer(rate))
    model.compile(LazyAdam(0.1), "mse")
    model.fit(IDS, TARGETS, verbose=0)
    return model


IN_A_FRESH_PROCESS = """
import sys, splitembed, keras, numpy as np
model = keras.models.load_model(sys.argv[1])
(layer,) = (layer for layer in model.layers if isinstance(layer, splitembed.SplitEmbedding))
ids = np.load(sys.argv[2])
print(model.predict(ids, verbose=0).tobytes().hex(), np.asarray(layer(ids, training=True)).tobytes().hex())
"""


def test_a_saved_model_predicts_the_same_in_a_fresh_process_and_still_drops(tmp_path):
    model = trained_model(0.5)
    model.save(tmp_path / "m.keras")
    np.save(tmp_path / "ids.npy", IDS)
    predicted, trained = run_fresh(IN_A_FRESH_PROCESS, tmp_path / "m.keras", tmp_path / "ids.npy").split()[-2:]
    assert predicted == model.predict(IDS, verbose=0).tobytes().hex()
    (layer,) = (each for each in model.layers if isinstance(each, SplitEmbedding))
    again = make_layer(split=layer.to_split())  # the draws begin anew, from the seed
    assert trained == again(IDS, training=True).numpy().tobytes().hex()
    LIVE.clear()


@pytest.mark.parametrize(("saved", "loaded"), [(0.5, 0.0), (0.0, 0.5), (0.5, 0.5)])
def test_weights_and_checkpoints_go_between_rates(saved, loaded, tmp_path):
    """What was saved knows nothing of the draws, so it loads whether or not a layer draws."""
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


def test_an_exported_model_draws_nothing(tmp_path):
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
