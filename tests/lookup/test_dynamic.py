"""The lookup itself: rows, gradients, and what is refused, eagerly and in graphs."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings

from splitembed import SplitTable
from splitembed.errors import SplitEmbedError, SplitError, TokenIdError
from splitembed.lookup.constant import Constants
from splitembed.lookup.dynamic import look_up
from splitembed.lookup.gradients import end_request, request_slices
from splitembed.lookup.id_checks import refusal_of_dtype
from tests.helpers.models import ONLY_READS, kinds_of_large_values, same_bits
from tests.helpers.strategies import ID_DTYPES, splits_and_ids


class Tables:
    """A split's parts as the lookup takes them."""

    def __init__(self, split: SplitTable) -> None:
        self.constants = Constants(split)
        self.trainable = tf.Variable(split.trainable)

    def __call__(self, ids, gradient="dense"):
        return look_up(tf.convert_to_tensor(ids), self.constants, self.trainable, gradient)


FOUR_TOKENS = SplitTable.from_matrix(np.arange(8.0).reshape(4, 2), [1, 3])


def of_size(num_tokens: int) -> SplitTable:
    """Many tokens on one frozen row; the last one trains."""
    remap = np.zeros(num_tokens, np.int32)
    remap[-1] = ~0
    return SplitTable.from_arrays([[0.0, 0.0]], remap, [[1.0, 2.0]])


@given(splits_and_ids())
def test_equals_numpy_to_the_bit(case):
    split, ids = case
    tables = Tables(split)
    same_bits(tables(ids), split.lookup(ids))
    same_bits(tf.function(tables)(ids), split.lookup(ids))


@pytest.mark.parametrize("form", ["dense", "sparse", "auto", "auto, sparse requested"])
@settings(max_examples=20)
@given(splits_and_ids(max_rank=2))
def test_gradient_sums_each_row(form, case):
    """Upstream values are small integers, whose sums are exact in any order."""
    split, ids = case
    tables = Tables(split)
    upstream = np.arange(ids.size * split.dim, dtype=np.float32).reshape(*ids.shape, split.dim) % 7
    with tf.GradientTape() as tape:
        loss = tf.math.multiply_no_nan(tables(ids, form.split(",")[0]), upstream)  # rows may hold NaN
    if "requested" in form:
        request_slices(lambda variable: variable is tables.trainable)
    gradient = tape.gradient(loss, tables.trainable)
    end_request()
    expected = np.zeros_like(split.trainable)
    rows = split.remap[ids]
    np.add.at(expected, ~rows[rows < 0], upstream[rows < 0])
    assert isinstance(gradient, tf.IndexedSlices) == ("sparse" in form)
    if isinstance(gradient, tf.IndexedSlices):
        assert sorted(gradient.indices.numpy()) == sorted({~row for row in rows.ravel().tolist() if row < 0})
    np.testing.assert_array_equal(tf.convert_to_tensor(gradient), expected)


def test_of_unknown_rank():
    tables = Tables(FOUR_TOKENS)
    read = tf.function(tables, input_signature=[tf.TensorSpec(None, tf.int64)])
    for ids in (3, [1, 2], np.zeros((2, 0), int), [[[0]], [[3]]]):
        same_bits(read(tf.constant(ids, tf.int64)), FOUR_TOKENS.lookup(ids))


def test_static_shape_is_kept():
    read = tf.function(Tables(FOUR_TOKENS), input_signature=[tf.TensorSpec((None, 3), tf.int32)])
    assert read.get_concrete_function().output_shapes == (None, 3, 2)


def test_step_makes_nothing_of_the_table_s_size():
    tables = Tables(of_size(5000))

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tables(ids) ** 2)
        return tape.gradient(loss, tables.trainable)

    graph = step.get_concrete_function(tf.zeros((4, 5), tf.int32)).graph
    assert kinds_of_large_values(graph, 5000) <= ONLY_READS


OUT_OF_RANGE = [
    (4, "int32", "4"),
    (-1, "int8", "-1"),
    (-1, "int32", "-1"),
    (-1, "int64", "-1"),
    (2**32 + 1, "int64", "4294967297"),
    (-(2**63), "int64", "-9223372036854775808"),
    (255, "uint8", "255"),
    (2**16 - 1, "uint16", "65535"),
    (2**32 - 1, "uint32", "4294967295"),
    (2**63 + 1, "uint64", "9223372036854775809"),
    (2**64 - 1, "uint64", "18446744073709551615"),
    (-2.0, "float32", "-2"),
    (4.0, "float16", "4"),
    (2.0**40, "float64", "1099511627776"),
]


@pytest.mark.parametrize(("token_id", "dtype", "shown"), OUT_OF_RANGE)
def test_I1_ids_out_of_range_are_named(token_id, dtype, shown):
    """The same text eagerly, in a graph and from NumPy."""
    ids = np.array([[0, token_id]], dtype)
    text = f"Token id {shown} is out of range: there are 4 tokens, so ids run from 0 to 3"
    tables = Tables(FOUR_TOKENS)
    with pytest.raises(TokenIdError, match=text):
        tables(ids)
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        tf.function(tables)(ids)
    if ids.dtype.kind != "f":
        with pytest.raises(TokenIdError, match=text):
            FOUR_TOKENS.lookup(ids)


@pytest.mark.parametrize("dtype", [*ID_DTYPES, "float16", "bfloat16", "float32", "float64"])
def test_I4_every_dtype_that_holds_the_ids(dtype):
    ids = tf.cast([[3, 0], [1, 2]], dtype)
    expected = FOUR_TOKENS.lookup([[3, 0], [1, 2]])
    same_bits(Tables(FOUR_TOKENS)(ids), expected)
    same_bits(tf.function(Tables(FOUR_TOKENS))(ids), expected)


@pytest.mark.parametrize("ids", [[True], ["the"], [1 + 0j]])
def test_other_dtypes_are_refused(ids):
    with pytest.raises(
        SplitError, match="`ids` must be integers. Received: a tensor of dtype (bool|string|complex128)"
    ):
        Tables(FOUR_TOKENS)(ids)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("token_id", [0.5, -0.25, float("nan"), float("inf"), float("-inf")])
def test_I3_floats_must_be_whole(token_id, dtype):
    ids = tf.constant([1.0, token_id], dtype)
    text = f"must be whole numbers from 0 to 3. Received: {token_id:g}, of dtype {dtype}|Token id -9223372036854775808"
    with pytest.raises(SplitEmbedError, match=text):
        Tables(FOUR_TOKENS)(ids)
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        tf.function(Tables(FOUR_TOKENS))(ids)


@pytest.mark.parametrize(("dtype", "largest"), [("bfloat16", 2**8), ("float16", 2**11), ("float32", 2**24)])
def test_I3_floats_must_hold_every_id_exactly(dtype, largest):
    exact, beyond = of_size(largest), of_size(largest + 1)
    same_bits(Tables(exact)(tf.constant([largest - 1], dtype)), exact.lookup([largest - 1]))
    with pytest.raises(
        SplitError, match=rf'of dtype {dtype} cannot hold every id below {largest + 1} .* dtype="int32"'
    ):
        Tables(beyond)(tf.constant([0], dtype))
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"of dtype {dtype} cannot hold every id"):
        tf.function(Tables(beyond))(tf.constant([0], dtype))
    same_bits(Tables(beyond)(tf.constant([largest])), beyond.lookup([largest]))


def test_which_float_dtypes_suit_how_many_tokens():
    assert not refusal_of_dtype("float64", 2**31) and not refusal_of_dtype("int8", 2**31)
    assert refusal_of_dtype("bool", 2) and refusal_of_dtype("string", 2)


def test_refused_inside_xla():
    with pytest.raises(SplitEmbedError, match="XLA would compile into code that returns other tokens' rows"):
        tf.function(Tables(FOUR_TOKENS), jit_compile=True)(tf.constant([1, 2]))


@pytest.mark.parametrize("differentiate", [False, True])
def test_cached_function_called_from_a_compiled_one_is_refused(differentiate):
    """The inner function is not traced again, so our own check never runs: TensorFlow must find nothing to compile."""
    tables = Tables(FOUR_TOKENS)

    @tf.function
    def inner(ids):
        if not differentiate:
            return tables(ids)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tables(ids))
        return tape.gradient(loss, tables.trainable)

    ids = tf.constant([1, 2, 1, 3])
    inner(ids)
    with pytest.raises((SplitEmbedError, tf.errors.InvalidArgumentError), match="XLA"):
        tf.function(lambda ids: inner(ids), jit_compile=True)(ids)


def test_the_update_in_place_has_no_form_for_xla():
    """What refuses the lookup there should the graph lose its checks of ids."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="InplaceUpdate"):
        tf.function(lambda rows: tf.raw_ops.InplaceUpdate(x=rows, i=[0], v=rows[1:]), jit_compile=True)(tf.ones((2, 3)))


def test_updates_in_place_reach_no_other_lookup_and_no_table():
    """Equal lookups in one graph, before and after the rows change: nothing may be shared between them."""
    matrix = np.arange(8, dtype=np.float32).reshape(4, 2)
    split = SplitTable.from_matrix(matrix, [1, 3])
    tables, ids = Tables(split), tf.constant([1, 0, 3, 1])

    @tf.function
    def step(ids):
        before = tables(ids)
        tables.trainable.assign_add(tf.ones((2, 2)))
        return before, tables(ids), tables(ids)

    before, *after = step(ids)
    same_bits(before, split.lookup(ids))
    for each in after:
        same_bits(each, split.with_trainable(split.trainable + 1).lookup(ids))
    same_bits(split.frozen, matrix[[0, 2]])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_low_precision_rows_are_widened_to_the_same_bits(dtype):
    split = SplitTable.from_matrix(np.random.default_rng(0).normal(size=(40, 6)), [3, 7]).with_frozen_dtype(dtype)
    tables, ids = Tables(split), np.arange(40).reshape(8, 5)
    same_bits(tables(ids), split.lookup(ids))
    same_bits(tf.function(tables)(ids), split.lookup(ids))


@pytest.mark.parametrize("kind", [SplitError, TokenIdError])
def test_errors_keep_their_kind_through_autograph(kind):
    @tf.function
    def fail(value):
        if value is not None:  # Python that AutoGraph converts
            raise kind("as it is")

    with pytest.raises(kind, match="as it is"):
        fail(tf.constant(1))
