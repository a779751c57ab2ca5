"""The two forms of the lookup: equal rows, gradients and training; under XLA an invalid id gives NaN."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from splitembed import LazyAdam, SplitEmbedding, SplitTable
from splitembed.errors import SplitError, TokenIdError
from splitembed.optimizers import LazyAdagrad, LazySGD
from tests.helpers.bits import same_bits
from tests.helpers.models import DIM, IDS, functional, make_split
from tests.helpers.strategies import splits_and_ids

FORMS = ("dynamic", "static", "auto")


def compiled(layer: SplitEmbedding):
    """Return the layer compiled by XLA."""
    return tf.function(layer, jit_compile=True)


# Rows


# XLA compiles each example
@settings(max_examples=10)
@given(splits_and_ids())
def test_both_forms_equal_numpy_to_the_bit_in_and_out_of_xla(case):
    split, ids = case
    # XLA with unsigned ids is tested by dtype below
    if ids.dtype.kind == "u":
        ids = ids.astype(np.int64)
    expected = split.lookup(ids)
    for form in FORMS:
        same_bits(SplitEmbedding(split, lookup=form)(ids), expected)
    same_bits(compiled(SplitEmbedding(split))(ids), expected)
    same_bits(compiled(SplitEmbedding(split, lookup="static"))(ids), expected)


# the ids of a batch by its share of trainable ids
KINDS = {"none": [0, 2, 3, 5], "only": [1, 4], "some": [0, 1, 2, 3, 4, 5], "one": [1]}


@settings(max_examples=10)
@given(
    st.lists(st.tuples(st.sampled_from(list(KINDS)), st.integers(0, 5), st.integers(0, 40)), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
)
def test_compiled_equals_eager_on_batches_with_any_number_of_trainable_ids(batches, random):
    layer = SplitEmbedding(make_split())
    function = compiled(layer)
    for kind, rows, length in batches:
        ids = np.array([random.choice(KINDS[kind]) for _ in range(rows * length)], np.int32).reshape(rows, length)
        same_bits(function(ids), layer(ids))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_narrow_frozen_rows(dtype):
    split = make_split().with_frozen_dtype(dtype)
    layer = SplitEmbedding(split)
    same_bits(layer(IDS), split.lookup(IDS))
    same_bits(compiled(layer)(IDS), split.lookup(IDS))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32"])
def test_ids_of_every_dtype_inside_xla(dtype):
    split = make_split()
    same_bits(compiled(SplitEmbedding(split))(tf.constant(IDS.astype(dtype))), split.lookup(IDS))


# Invalid ids


INVALID = {
    "negative": np.array([[1, -1]], np.int32),
    "too large": np.array([[6, 1]], np.int32),
    "largest int32": np.array([[1, 2**31 - 1]], np.int32),
    "5 once narrowed": np.array([[2**32 + 5, 1]], np.int64),
    "most negative": np.array([[-(2**63), 1]], np.int64),
    "uint64": np.array([[2**64 - 1, 1]], np.uint64),
    "a fraction": np.array([[1.5, 1]], np.float32),
    "not a number": np.array([[np.nan, 1]], np.float32),
    "infinite": np.array([[np.inf, 1]], np.float32),
}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_id_is_nan_inside_xla_and_the_others_keep_their_rows(name):
    split, ids = make_split(), INVALID[name]
    rows = compiled(SplitEmbedding(split))(tf.constant(ids)).numpy()
    is_valid = np.isin(ids, np.arange(split.num_tokens))
    assert np.isnan(rows[~is_valid]).all() and (~is_valid).sum() == 1
    same_bits(rows[is_valid], split.lookup(ids[is_valid].astype(np.int64)))


# test_id_checks_tensorflow.py has the dynamic form
@pytest.mark.parametrize(("name", "form"), [*((name, "static") for name in INVALID), ("5 once narrowed", "auto")])
def test_an_invalid_id_raises_outside_xla(name, form):
    layer, ids = SplitEmbedding(make_split(), lookup=form), tf.constant(INVALID[name])
    with pytest.raises((TokenIdError, SplitError), match=r"out of range: there are 6 tokens|must be whole numbers"):
        layer(ids)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"out of range: there are 6 tokens|must be whole numbers"):
        tf.function(layer)(ids)


def test_ids_of_a_rounding_dtype_are_nan_inside_xla():
    split = SplitTable.from_matrix(np.ones((2**11 + 2, 2), np.float32), [3])
    assert np.isnan(compiled(SplitEmbedding(split))(tf.constant([1.0, 2.0], tf.float16))).all()


# Gradients


def gradients(layer: SplitEmbedding, ids: np.ndarray, jit: bool) -> np.ndarray:
    """Return the gradient of the trainable rows, for a loss with another weight at every position."""
    layer.build()
    factors = tf.constant(np.random.default_rng(1).normal(size=(*ids.shape, DIM)), tf.float32)

    @tf.function(jit_compile=jit)
    def run(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.sin(layer(ids)) * factors) + tf.reduce_sum(layer(ids[:, ::-1]) ** 2)
        return tf.convert_to_tensor(tape.gradient(loss, layer.trainable_variables[0].value))

    return run(tf.constant(ids)).numpy()


@pytest.mark.parametrize("jit", [False, True])
def test_gradients_equal_those_of_a_dense_table(jit):
    split, ids = make_split(), IDS
    table = tf.Variable(split.combine())
    factors = tf.constant(np.random.default_rng(1).normal(size=(*ids.shape, DIM)), tf.float32)
    with tf.GradientTape() as tape:
        rows = tf.gather(tf.convert_to_tensor(table), ids)
        loss = tf.reduce_sum(tf.sin(rows) * factors) + tf.reduce_sum(rows[:, ::-1] ** 2)
    expected = tf.convert_to_tensor(tape.gradient(loss, table)).numpy()[split.trainable_ids]
    for form in ("static", "auto") if jit else FORMS:
        np.testing.assert_allclose(gradients(SplitEmbedding(split, lookup=form), ids, jit), expected, atol=2e-6)


# Training


# not in the oldest Keras
NEW = {"Muon", "ScheduleFreeAdamW"}
OPTIMIZERS = {
    "SGD": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "Adam": lambda: keras.optimizers.Adam(0.1, amsgrad=True),
    "AdamW": lambda: keras.optimizers.AdamW(0.1, weight_decay=0.1),
    "Adamax": lambda: keras.optimizers.Adamax(0.1),
    "Nadam": lambda: keras.optimizers.Nadam(0.1),
    "RMSprop": lambda: keras.optimizers.RMSprop(0.1, momentum=0.5, centered=True),
    "Adagrad": lambda: keras.optimizers.Adagrad(0.1),
    "Adadelta": lambda: keras.optimizers.Adadelta(1.0),
    "Adafactor": lambda: keras.optimizers.Adafactor(0.1),
    "Ftrl": lambda: keras.optimizers.Ftrl(0.1),
    "Lion": lambda: keras.optimizers.Lion(0.01),
    "Lamb": lambda: keras.optimizers.Lamb(0.1),
    "clipped": lambda: keras.optimizers.Adam(0.1, global_clipnorm=0.05, use_ema=True),
    "Muon": lambda: keras.optimizers.Muon(0.1),
    "ScheduleFreeAdamW": lambda: keras.optimizers.ScheduleFreeAdamW(0.1),
    "LazyAdam": lambda: LazyAdam(0.1),
    "LazyAdagrad": lambda: LazyAdagrad(0.1),
    "LazySGD": lambda: LazySGD(0.1, momentum=0.9),
}
# optimizers made of others
COMBINATIONS = {"Optimizer", "LossScaleOptimizer", "MultiOptimizer", "OptimizerMap"}
OPTIMIZERS = {name: make for name, make in OPTIMIZERS.items() if hasattr(keras.optimizers, name) or name not in NEW}
TARGETS = np.array([[1.0], [0.0], [2.0], [-1.0]], np.float32)


def trained(form: str, jit: bool, optimizer: keras.optimizers.Optimizer) -> np.ndarray:
    """Return the trainable rows after a few steps of `fit` on batches with repeated ids."""
    layer = SplitEmbedding(make_split(), lookup=form)
    model = functional(layer)
    model.compile(optimizer, "mse", jit_compile=jit)
    model.fit(IDS, TARGETS, batch_size=2, epochs=3, shuffle=False, verbose=0)
    assert model.jit_compile == jit
    return layer.to_split().trainable


# To Keras's optimizers every form gives the same dense gradient: a few of them run by default.
RUN_BY_DEFAULT = {"SGD", "Adam", "clipped", "LazyAdam", "LazyAdagrad", "LazySGD"}


@pytest.mark.parametrize(
    "name", [name if name in RUN_BY_DEFAULT else pytest.param(name, marks=pytest.mark.slow) for name in OPTIMIZERS]
)
def test_training_is_the_same_in_both_forms_and_inside_xla(name):
    expected = trained("dynamic", False, OPTIMIZERS[name]())
    for form, jit in (("static", False), ("auto", True)):
        found = trained(form, jit, OPTIMIZERS[name]())
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=f"{form}, jit_compile={jit}")
    assert (expected != make_split().trainable).any()


def test_inside_xla_auto_is_the_static_form_to_the_bit():
    same_bits(trained("auto", True, LazyAdam(0.1)), trained("static", True, LazyAdam(0.1)))


def test_every_optimizer_of_keras_is_tested():
    known = {name for name in dir(keras.optimizers) if isinstance(getattr(keras.optimizers, name), type)}
    assert known - COMBINATIONS <= set(OPTIMIZERS)


# Bags


@pytest.mark.parametrize(
    ("combiner", "mask_zero", "has_weights"),
    [("sum", False, False), ("mean", True, False), ("mean", False, True), ("sqrtn", True, True)],
)
def test_bags_are_the_same_in_both_forms_and_inside_xla(combiner, mask_zero, has_weights):
    split = make_split()
    weights = np.random.default_rng(3).normal(size=IDS.shape).astype(np.float32) if has_weights else None
    layers = {form: SplitEmbedding(split, mask_zero, combiner=combiner, lookup=form) for form in FORMS}
    expected = layers["dynamic"](IDS, weights)
    np.testing.assert_allclose(layers["static"](IDS, weights), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(compiled(layers["auto"])(IDS, weights), expected, rtol=1e-5, atol=1e-6)


def test_an_empty_bag_is_zero_in_both_forms():
    for form, combiner in itertools.product(FORMS, ["mean", "sum", "sqrtn"]):
        layer = SplitEmbedding(make_split(), True, combiner=combiner, lookup=form)
        np.testing.assert_array_equal(layer(np.zeros((2, 3), np.int32)), 0)


def test_ragged_bags_need_the_dynamic_form():
    ids = tf.ragged.constant([[1], [2, 3]])
    with pytest.raises(SplitError, match="Ragged bags have no fixed shape"):
        SplitEmbedding(make_split(), combiner="mean", lookup="static")(ids)


# Choices


@pytest.mark.parametrize(
    ("options", "message"),
    [({"lookup": "fast"}, "`lookup` must be"), ({"lookup": "static", "gradient": "sparse"}, "has a dense gradient")],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(SplitError, match=message):
        SplitEmbedding(make_split(), **options)
