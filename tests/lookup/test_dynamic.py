"""The dynamic lookup: rows, gradients, and refusals, eagerly and in graphs."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings

from splitembed import SplitTable
from splitembed.errors import SplitEmbedError, SplitError, TokenIdError
from splitembed.lookup.constant import Constants
from splitembed.lookup.dynamic import look_up
from splitembed.lookup.gradients import end_request, request_slices
from tests.helpers.bits import same_bits
from tests.helpers.models import ONLY_READS, kinds_of_large_values
from tests.helpers.strategies import splits_and_ids


class Tables:
    """The parts of a split, as arguments of the lookup."""

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


@settings(max_examples=40)
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
        # rows may hold NaN
        loss = tf.math.multiply_no_nan(tables(ids, form.split(",")[0]), upstream)
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


def test_a_step_allocates_nothing_of_the_size_of_the_table():
    tables = Tables(of_size(5000))

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tables(ids) ** 2)
        return tape.gradient(loss, tables.trainable)

    graph = step.get_concrete_function(tf.zeros((4, 5), tf.int32)).graph
    assert kinds_of_large_values(graph, 5000) <= ONLY_READS


def test_refused_inside_xla():
    with pytest.raises(SplitEmbedError, match="XLA would compile into code that returns other tokens' rows"):
        tf.function(Tables(FOUR_TOKENS), jit_compile=True)(tf.constant([1, 2]))


@pytest.mark.parametrize("differentiate", [False, True])
def test_cached_function_called_from_a_compiled_one_is_refused(differentiate):
    """The inner function is not traced again, so the check of the package does not run: TensorFlow must refuse."""
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
    """This operation refuses XLA even if a graph has lost its checks of ids."""
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
def test_narrow_rows_are_widened_to_the_same_bits(dtype):
    split = SplitTable.from_matrix(np.random.default_rng(0).normal(size=(40, 6)), [3, 7]).with_frozen_dtype(dtype)
    tables, ids = Tables(split), np.arange(40).reshape(8, 5)
    same_bits(tables(ids), split.lookup(ids))
    same_bits(tf.function(tables)(ids), split.lookup(ids))


@pytest.mark.parametrize("kind", [SplitError, TokenIdError])
def test_errors_keep_their_kind_through_autograph(kind):
    @tf.function
    def fail(value):
        # Python that AutoGraph converts
        if value is not None:
            raise kind("as it is")

    with pytest.raises(kind, match="as it is"):
        fail(tf.constant(1))
