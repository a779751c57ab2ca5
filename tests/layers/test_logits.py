"""The product of states with a split's rows: the bits of Keras's layer in id order, and gradients against NumPy."""

import warnings

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from keras import ops

import splitembed.layers.logits
from splitembed.layers.logits import Dtypes, _is_multiplied_as_stored, logits_of
from splitembed.layers.reversible import SplitReversibleEmbedding
from splitembed.layers.transposed import TransposedEmbedding
from splitembed.split.table import SplitTable
from tests.helpers.differentiate import BACKEND, gradients, numpy
from tests.helpers.languages import LAYER, TOLERANCE, Tied, Twin, assert_steps_are_equal, make_split_in_order, rows

pytestmark = pytest.mark.every_backend

POLICIES = ("float32", "mixed_float16", "mixed_bfloat16", "float16", "bfloat16")
SHAPES = ((1, 1), (1, 7), (2, 1), (4, 16), (8, 128), (5,), (2, 1, 3))
FLOAT32 = Dtypes("float32", "float32", "float32")
NUM_BASE = 150
CHOSEN = [3, 7, 8, 149]
# the oldest Keras has no untied layer
UNTIED = [False] if LAYER is None else [False, True]


@pytest.fixture
def policy(request):
    """A global dtype policy, as for a whole model."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy(before)


def split_of(variable, chosen=CHOSEN, num_new: int = 0) -> SplitTable:
    """A split with the rows of a variable `(num_tokens, dim)` in its dtype, and with chosen and new ids that train."""
    frozen = numpy(ops.cast(variable, "float32"))
    base = SplitTable.from_arrays(frozen, np.arange(len(frozen)), np.zeros((0, frozen.shape[1])))
    dtype = keras.backend.standardize_dtype(variable.dtype)
    return base.with_frozen_dtype(dtype).thaw(list(chosen)).grow(num_new)


def pair(dim: int, num_base: int = NUM_BASE, untied: bool = False, chosen=CHOSEN, num_new: int = 0, **options):
    """Return Keras's layer and a SplitReversibleEmbedding with the same table."""
    theirs = (LAYER or Tied)(num_base, dim, **({"tie_weights": False} if untied else {}), **options)
    theirs.build()
    tables = [rows(num_base, dim, seed=dim), *([rows(dim, num_base, seed=dim + 1)] if untied else [])]
    for variable, values in zip(theirs.weights, tables, strict=True):
        variable.assign(values)
    if untied:
        transposed = keras.Variable(ops.transpose(theirs.reverse_embeddings), dtype=theirs.reverse_embeddings.dtype)
        options = {**options, "tie_weights": False, "reverse_split": split_of(transposed, chosen, num_new)}
    return theirs, SplitReversibleEmbedding(split_of(theirs.embeddings, chosen, num_new), **options)


def compilers(function):
    """The function, and the function as the backend compiles it."""
    found = [function]
    if BACKEND == "tensorflow":
        import tensorflow as tf

        found += [tf.function(function), tf.function(function, jit_compile=True)]
    if BACKEND == "jax":
        import jax

        found.append(jax.jit(function))
    return found


def assert_same(found, expected) -> None:
    """Assert equal dtypes and bits."""
    assert keras.backend.standardize_dtype(found.dtype) == keras.backend.standardize_dtype(expected.dtype)
    assert numpy(found).tobytes() == numpy(expected).tobytes()


def assert_same_from_blocks(found, expected) -> None:
    """Assert equal dtypes and close values: some processors round a product with a block of rows differently."""
    assert keras.backend.standardize_dtype(found.dtype) == keras.backend.standardize_dtype(expected.dtype)
    # float32 logits of up to 5
    np.testing.assert_allclose(numpy(found), numpy(expected), rtol=1e-6, atol=5e-6)


def assert_logits_are_keras_s(theirs, ours, states, compare=assert_same) -> None:
    pairs = [compilers(lambda states, each=each: each(states, reverse=True)) for each in (theirs, ours)]
    for expected, found in zip(*pairs, strict=True):
        compare(found(states), expected(states))


# To the bit


@pytest.mark.parametrize("untied", UNTIED)
@pytest.mark.parametrize("dim", [4, 33, pytest.param(256, marks=pytest.mark.slow), 2048])
def test_logits_are_keras_s_to_the_bit(dim, untied):
    theirs, ours = pair(dim, untied=untied)
    for shape in SHAPES:
        assert_logits_are_keras_s(theirs, ours, ops.convert_to_tensor(rows(*shape, dim)))


@pytest.mark.parametrize(
    ("policy", "reverse_dtype", "untied"),
    [*((policy, None, False) for policy in POLICIES), *((policy, "float32", UNTIED[-1]) for policy in POLICIES)],
    indirect=["policy"],
)
def test_logits_are_keras_s_in_every_policy(policy, reverse_dtype, untied):
    theirs, ours = pair(64, untied=untied, reverse_dtype=reverse_dtype, logit_soft_cap=5.0)
    compare = assert_same_from_blocks if untied else assert_same
    for dtype in dict.fromkeys((ours.compute_dtype, "float32")):
        for shape in ((1, 1), (3, 8)):
            assert_logits_are_keras_s(theirs, ours, ops.cast(rows(*shape, 64), dtype), compare)


@pytest.mark.parametrize("untied", UNTIED)
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"], indirect=True)
def test_a_functional_model_s_outputs_are_keras_s_to_the_bit(policy, untied):
    found = []
    ids = np.array([[3, 0, 5, 149], [7, 7, 1, 2]])
    for layer in pair(16, untied=untied):
        inputs = keras.Input((None,), dtype="int32")
        model = keras.Model(inputs, layer(keras.layers.Activation("tanh")(layer(inputs)), reverse=True))
        called = [each(ops.convert_to_tensor(ids)) for each in compilers(model)]
        found.append([*called, model.predict(ids, verbose=0)])
    for expected, mine in zip(*found, strict=True):
        assert_same(mine, expected)


@pytest.mark.parametrize("policy", POLICIES, indirect=True)
def test_rows_are_keras_s_to_the_bit(policy):
    theirs, ours = pair(16)
    ids = ops.arange(NUM_BASE, dtype="int32")
    for expected, found in zip(compilers(theirs), compilers(ours), strict=True):
        assert_same(found(ids), expected(ids))


@pytest.mark.parametrize("untied", UNTIED)
def test_new_and_trained_tokens_do_not_change_the_other_columns(untied):
    theirs, ours = pair(32, untied=untied, num_new=3)
    ours.build()
    trained = (ours.reverse_embedding if untied else ours).trainable_rows
    trained.assign(rows(*trained.shape, seed=9))
    split = (ours.reverse_embedding if untied else ours).to_split()
    others = np.setdiff1d(np.arange(NUM_BASE), CHOSEN)
    for shape in ((1, 1), (4, 16)):
        states = rows(*shape, 32)
        logits = numpy(ours(states, reverse=True))
        assert logits.shape == (*shape, NUM_BASE + 3)
        assert_same(logits[..., others], numpy(theirs(states, reverse=True))[..., others])
        np.testing.assert_allclose(logits, states @ split.combine().T, rtol=0, atol=20 * TOLERANCE)


def test_the_logits_of_a_trained_row_have_no_rounding_error_of_its_frozen_row():
    _, ours = pair(32, num_base=8, chosen=[2, 3])
    ours.build()
    ours.trainable_rows.assign(np.zeros((2, 32)))
    logits = numpy(ours(1e6 * rows(3, 32), reverse=True))
    np.testing.assert_array_equal(logits[:, 2:4], np.zeros((3, 2)))


# What it computes


@st.composite
def splits_in_order(draw) -> SplitTable:
    """Splits with a frozen table in id order: none, some or all chosen; none or some new; rows shared or unused."""
    num_frozen, num_new, dim = draw(st.integers(1, 7)), draw(st.integers(0, 4)), draw(st.integers(1, 3))
    is_chosen = draw(arrays(bool, num_frozen))
    num_ids = int(is_chosen.sum()) + num_new
    num_trainable = draw(st.integers(int(num_ids > 0), 6))
    # one row for each id, in id order
    if draw(st.booleans()) and num_ids:
        num_trainable, trained = num_ids, list(range(num_ids))
    else:
        trained = draw(st.lists(st.integers(0, max(num_trainable - 1, 0)), min_size=num_ids, max_size=num_ids))
    numbers = st.integers(-8, 8).map(lambda number: number / 4)
    frozen, trainable = (draw(arrays(np.float32, (n, dim), elements=numbers)) for n in (num_frozen, num_trainable))
    remap = np.concatenate([np.arange(num_frozen), np.zeros(num_new, int)])
    remap[np.concatenate([is_chosen, np.ones(num_new, bool)])] = ~np.array(trained, int)
    # these dtypes represent the numbers exactly
    dtype = draw(st.sampled_from(["float32", "float32", "float16", "bfloat16"]))
    return SplitTable.from_arrays(frozen, remap, trainable).with_frozen_dtype(dtype)


def product_of(split: SplitTable):
    """The product of states with a split's frozen rows and other trainable ones."""
    layer = SplitReversibleEmbedding(split)
    layer.build()
    return lambda states, trainable: logits_of(states, trainable, layer._constants, split, FLOAT32)


@settings(max_examples=40)
@given(splits_in_order(), st.integers(0, 3))
def test_any_split_in_order_is_numpy_s(split, num_states):
    product = product_of(split)
    states, upstream = rows(num_states, split.dim, seed=2), rows(num_states, split.num_tokens, seed=3)
    trainable = ops.convert_to_tensor(split.trainable)
    logits = product(ops.convert_to_tensor(states), trainable)
    np.testing.assert_allclose(numpy(logits), states @ split.combine().T, rtol=0, atol=TOLERANCE)

    def total(states, trainable):
        return ops.sum(product(states, trainable) * ops.convert_to_tensor(upstream))

    to_states, to_rows = gradients(total, states, split.trainable)
    np.testing.assert_allclose(to_states, upstream @ split.combine(), rtol=0, atol=TOLERANCE)
    expected = np.zeros_like(split.trainable)
    # gradients of tokens with a shared row are summed
    for token_id in split.trainable_ids:
        expected[~split.remap[token_id]] += upstream[:, token_id] @ states
    np.testing.assert_allclose(to_rows, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_table_in_any_order_is_multiplied_as_it_is_stored(compiled, transposed):
    """Two tokens share a frozen row, two share a trainable one, and a row that is not finite has no token."""
    frozen, trainable, remap = rows(7, 4), rows(3, 4, seed=1), [4, ~2, 0, 4, ~0, ~2, 6, 1]
    frozen[5] = np.nan
    kind = TransposedEmbedding if transposed else SplitReversibleEmbedding
    states, upstream = rows(2, 3, 4, seed=2), ops.convert_to_tensor(rows(2, 3, 8, seed=3))
    found = []
    for of_unused in (np.nan, 0):
        frozen[5] = of_unused
        layer = kind(SplitTable.from_arrays(frozen, remap, trainable))
        layer.build()
        tables, split = layer._constants, layer.to_split()
        assert _is_multiplied_as_stored(tables, FLOAT32) == (of_unused == 0)

        def total(states, trainable, tables=tables, split=split):
            return ops.sum(logits_of(states, trainable, tables, split, FLOAT32) * upstream)

        logits = logits_of(ops.convert_to_tensor(states), ops.convert_to_tensor(trainable), tables, split, FLOAT32)
        found.append([numpy(logits), *gradients(total, states, trainable, compiled=compiled)])
    np.testing.assert_allclose(found[1][0], states @ split.combine().T, rtol=0, atol=TOLERANCE)
    for as_stored, in_blocks in zip(*found, strict=True):
        np.testing.assert_allclose(as_stored, in_blocks, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("num_frozen", "dtype", "expected"), [(8, "float32", True), (9, "float32", False), (8, "float16", False)]
)
def test_tables_of_many_rows_and_tables_that_are_widened_are_read_in_blocks(num_frozen, dtype, expected):
    split = SplitTable.from_arrays(rows(num_frozen, 4), [3, 2, 1, 0], np.zeros((0, 4))).with_frozen_dtype(dtype)
    layer = SplitReversibleEmbedding(split)
    layer.build()
    assert _is_multiplied_as_stored(layer._constants, FLOAT32) == expected


@pytest.fixture(params=["few", "many"])
def way(request, monkeypatch):
    """The code path from trainable rows to logits, chosen independently of their number."""
    monkeypatch.setattr(splitembed.layers.logits, "_FEW", {"few": 1.0, "many": 0.0}[request.param])


@pytest.mark.parametrize(
    ("frozen_dtype", "blocks", "compiled"),
    [
        ("float32", "one block", False),
        ("float32", "many blocks", False),
        ("float32", "many blocks", True),
        ("float16", "many blocks", False),
        ("bfloat16", "one block", True),
        ("int8", "many blocks", True),
    ],
)
def test_gradients_are_those_of_the_dense_formulation(frozen_dtype, blocks, compiled, way, monkeypatch):
    if blocks == "many blocks":
        monkeypatch.setattr(splitembed.layers.logits, "_BLOCK_BYTES", 1)
    base = SplitTable.from_arrays(rows(NUM_BASE, 4), np.arange(NUM_BASE), np.zeros((0, 4)))
    split = base.with_frozen_dtype(frozen_dtype).thaw(CHOSEN).grow(2)
    split = split.with_trainable(rows(split.num_trainable, 4, seed=1))
    product = product_of(split)
    states, upstream = rows(2, 3, 4, seed=2), ops.convert_to_tensor(rows(2, 3, split.num_tokens, seed=3))
    frozen, position = split.combine(), ops.convert_to_tensor(np.maximum(~split.remap, 0))
    is_frozen = ops.convert_to_tensor(split.remap[:, None] >= 0)

    def dense(states, trainable):
        table = ops.where(is_frozen, ops.convert_to_tensor(frozen), ops.take(trainable, position, axis=0))
        return ops.sum(ops.matmul(states, ops.transpose(table)) * upstream)

    def ours(states, trainable):
        return ops.sum(product(states, trainable) * upstream)

    expected = gradients(dense, states, split.trainable, compiled=compiled)
    for found, other in zip(gradients(ours, states, split.trainable, compiled=compiled), expected, strict=True):
        np.testing.assert_allclose(found, other, rtol=0, atol=10 * TOLERANCE)
    logits = numpy(product(ops.convert_to_tensor(states), ops.convert_to_tensor(split.trainable)))
    np.testing.assert_allclose(logits, states @ split.combine().T, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("untied", UNTIED)
@pytest.mark.parametrize("blocks", ["one block", "many blocks"])
def test_a_trainable_row_that_was_not_finite_has_no_effect_after_an_assignment(blocks, untied, way, monkeypatch):
    if blocks == "many blocks":
        monkeypatch.setattr(splitembed.layers.logits, "_BLOCK_BYTES", 1)
    theirs, _ = pair(4, untied=untied)
    table = theirs.reverse_embeddings if untied else theirs.embeddings
    values = numpy(table)
    values[(slice(None), 7) if untied else 7] = np.nan
    table.assign(values)
    split = split_of(ops.transpose(table) if untied else table)
    other = {"tie_weights": False, "reverse_split": split} if untied else {}
    ours = SplitReversibleEmbedding(split, **other)
    states = rows(5, 4, seed=2)
    with warnings.catch_warnings():
        # NaN is intended here
        warnings.simplefilter("ignore")
        assert_same_from_blocks(ours(states, reverse=True), theirs(states, reverse=True))
    layer = ours.reverse_embedding if untied else ours
    trained = split.with_trainable(rows(4, 4, seed=3))
    layer.trainable_rows.assign(trained.trainable)
    expected = trained.combine()
    np.testing.assert_allclose(numpy(ours(states, reverse=True)), states @ expected.T, rtol=0, atol=TOLERANCE)
    upstream = rows(5, NUM_BASE, seed=4)

    def total(states, trainable):
        logits = logits_of(states, trainable, layer._constants, split, FLOAT32)
        return ops.sum(logits * ops.convert_to_tensor(upstream))

    to_states, to_rows = gradients(total, states, trained.trainable)
    np.testing.assert_allclose(to_states, upstream @ expected, rtol=0, atol=10 * TOLERANCE)
    np.testing.assert_allclose(to_rows, (upstream.T @ states)[CHOSEN], rtol=0, atol=TOLERANCE)


def test_an_unchanged_row_that_is_not_finite_is_keras_s(way):
    theirs, _ = pair(4)
    values = numpy(theirs.embeddings)
    values[[7, 9]] = np.nan
    theirs.embeddings.assign(values)
    ours = SplitReversibleEmbedding(split_of(theirs.embeddings))
    np.testing.assert_array_equal(numpy(ours(rows(5, 4), reverse=True)), numpy(theirs(rows(5, 4), reverse=True)))


@pytest.mark.skipif(BACKEND != "tensorflow", reason="other backends update nothing in place")
def test_written_columns_do_not_reach_another_product(way):
    """Two calls on the same states, and the product that Keras makes of them, in one graph that may merge them."""
    import tensorflow as tf

    theirs, ours = pair(4)
    ours.build()
    changed = tf.constant(rows(4, 4, seed=5))

    @tf.function
    def run(states):
        before = ours(states, reverse=True)
        ours.trainable_rows.assign(changed)
        return before, ours(states, reverse=True), theirs(states, reverse=True)

    states = tf.constant(rows(3, 4))
    expected = theirs(states, reverse=True)
    before, after, other = run(states)
    np.testing.assert_allclose(before, expected, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(other, expected, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(after, states @ ours.to_split().combine().T, rtol=0, atol=TOLERANCE)


# Training


OPTIMIZERS = {
    "SGD": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "Adam": lambda: keras.optimizers.Adam(0.01),
}


@pytest.mark.parametrize(
    ("name", "options"),
    [("SGD", {}), ("Adam", {"logit_soft_cap": 0.7}), pytest.param("Adam", {"mask_zero": True}, marks=pytest.mark.slow)],
)
def test_a_language_model_trains_as_its_dense_twin_step_for_step(name, options):
    split = make_split_in_order()
    assert_steps_are_equal(SplitReversibleEmbedding(split, **options), Twin(split, **options), OPTIMIZERS[name])


@pytest.mark.skipif(LAYER is None, reason="this Keras has no ReversibleEmbedding")
def test_untied_weights_train_as_the_dense_twin_s():
    split, reverse = make_split_in_order(), make_split_in_order(seed=5)
    layer = SplitReversibleEmbedding(split, tie_weights=False, reverse_split=reverse)
    # not Adam: from the row slices of an untied Embedding Keras's adds up squares of what repeats, not of its sum
    assert_steps_are_equal(layer, Twin(split, reverse), OPTIMIZERS["SGD"])


def test_a_trained_column_is_finite_where_the_frozen_product_overflows(way):
    matrix = np.full((NUM_BASE, 4), 1e30, np.float32)
    layer = SplitReversibleEmbedding(SplitTable.from_arrays(matrix, np.arange(NUM_BASE), np.empty((0, 4))).thaw([3]))
    layer.build()
    layer.assign_rows([3], np.full((1, 4), 0.5, np.float32))
    logits = numpy(layer(ops.full((2, 4), 1e10), reverse=True))
    assert np.isinf(np.delete(logits, 3, axis=1)).all() and logits[:, 3].tolist() == [2e10, 2e10]
