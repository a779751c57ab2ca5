"""assign_rows and add_to_rows on every backend, against the same update of a dense NumPy matrix."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from splitembed import SplitEmbedding, SplitTable
from splitembed.errors import MissingTableError, SplitError, TokenIdError, UnknownTokenError, VocabularyError
from tests.helpers.differentiate import BACKEND, numpy

pytestmark = pytest.mark.every_backend

WORDS = ["", "a", "b", "c", "d", "e"]
TRAINABLE, DIM = [1, 3, 4], 2
MATRIX = np.array([[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5]], np.float32)


def make_layer(**options):
    split = SplitTable.from_matrix(MATRIX, TRAINABLE, vocabulary=WORDS, padding=0)
    return SplitEmbedding(split, name="tokens", **options)


def rows_of(layer):
    return layer.to_split().combine()


@pytest.mark.parametrize(
    ("ids", "values"),
    [
        (["c", 1], [[7, 8], [9, 10]]),
        (np.array([3, 1]), np.array([[7, 8], [9, 10]], np.float64)),
        (np.array([False, True, False, True, False, False]), [[9, 10], [7, 8]]),
        ([1, 3, 3], [[9, 10], [0, 0], [7, 8]]),
        ({3, 1}, [[9, 10], [7, 8]]),
    ],
)
def test_rows_are_assigned(ids, values):
    expected = np.array(MATRIX)
    expected[[1, 3]] = [[9, 10], [7, 8]]
    for is_built in (False, True):
        layer = make_layer()
        if is_built:
            layer.build()
        layer.assign_rows(ids, values)
        np.testing.assert_array_equal(rows_of(layer), expected)
        np.testing.assert_array_equal(numpy(layer(np.arange(6))), expected)


def test_labelled_values_are_refused():
    values = SimpleNamespace(iloc=None, index=["c", "a"], shape=(2, 2))
    with pytest.raises(VocabularyError, match="`values` must be without labels.* Received: rows labelled 'c', 'a'"):
        make_layer().assign_rows(["a", "c"], values)


def test_tensors_and_single_tokens():
    layer = make_layer()
    layer.assign_rows(keras.ops.convert_to_tensor([4]), keras.ops.convert_to_tensor([[1.5, 2.5]]))
    layer.assign_rows("a", [6, 7])
    layer.add_to_rows(3, np.array([[1, 2]]))
    layer.add_to_rows(np.int64(3), (1, 2))
    np.testing.assert_array_equal(rows_of(layer)[TRAINABLE], [[6, 7], [5, 7], [1.5, 2.5]])


def test_values_for_one_row_add_up():
    layer = make_layer()
    layer.add_to_rows(["a", "d", 1], [[0.5, 0], [1, 1], [0.25, 2]])
    np.testing.assert_array_equal(rows_of(layer)[TRAINABLE], [[1.75, 3], [3, 3], [5, 5]])


@given(
    st.lists(st.sampled_from([0, 2, 3, 5]), max_size=8).flatmap(
        lambda ids: st.tuples(st.just(ids), arrays(np.float32, (len(ids), DIM), elements=st.floats(-8, 8, width=16)))
    )
)
def test_ids_that_share_a_row(case):
    ids, values = case
    # ids 0 and 3 share a row
    remap = [~0, 0, ~1, ~0, 1, ~2]
    split = SplitTable.from_arrays(np.ones((2, DIM)), remap, np.arange(6.0).reshape(3, DIM))
    assigned, added = SplitEmbedding(split), SplitEmbedding(split)
    assigned.assign_rows(ids, values)
    added.add_to_rows(ids, values)
    expected, summed = np.array(split.trainable), np.array(split.trainable)
    for token_id, value in zip(ids, values, strict=True):
        expected[~remap[token_id]] = value
        summed[~remap[token_id]] += value
    np.testing.assert_array_equal(assigned.to_split().trainable, expected)
    np.testing.assert_array_equal(added.to_split().trainable, summed)


def test_split_and_other_layers_on_it_are_unchanged():
    layer = make_layer()
    split = layer.to_split()
    other = SplitEmbedding(split)
    other.build()
    layer.assign_rows([1], [[9, 9]])
    np.testing.assert_array_equal(split.combine(), MATRIX)
    np.testing.assert_array_equal(rows_of(other), MATRIX)
    assert layer.to_split().frozen is split.frozen


@pytest.mark.parametrize(
    ("ids", "values", "error", "message"),
    [
        (
            ["b"],
            [[1, 1]],
            SplitError,
            r"must have trainable rows. .* 'b' \(id 2\). .* split.thaw\(tokens\)",
        ),
        ([1, 5, 2], np.ones((3, 2)), SplitError, r"'e' \(id 5\), 'b' \(id 2\). Thaw them"),
        ([0], [[1, 1]], SplitError, "Id 0 is the padding of layer 'tokens', whose row stays zero"),
        ([1], [[1, 1, 1]], SplitError, r"`\(num_ids, dim\)`, here \(1, 2\). Received: shape \(1, 3\)"),
        ([1, 3], [[1, 1]], SplitError, r"here \(2, 2\). Received: shape \(1, 2\)"),
        ([1], [1, 1], SplitError, r"here \(1, 2\). Received: shape \(2,\)"),
        (1, [1, 1, 1], SplitError, r"here \(1, 2\) or \(2,\). Received: shape \(1, 3\)"),
        ([1], [[1e300, 0]], SplitError, "beyond float32's range"),
        ([1], [["x", "y"]], SplitError, "matrix of numbers"),
        ([6], [[1, 1]], TokenIdError, "6 is out of range"),
        (["z"], [[1, 1]], UnknownTokenError, "'z' is not among"),
    ],
)
def test_invalid_updates_are_refused_and_change_nothing(ids, values, error, message):
    layer = make_layer()
    for update in (layer.assign_rows, layer.add_to_rows):
        with pytest.raises(error, match=message):
            update(ids, values)
    np.testing.assert_array_equal(rows_of(layer), MATRIX)


def test_many_frozen_rows_are_not_all_listed():
    split = SplitTable.from_matrix(np.ones((9, 2)), [0])
    with pytest.raises(SplitError, match="frozen rows of 1, 2, 3, 4, 5 and 3 more"):
        SplitEmbedding(split).assign_rows(range(1, 9), np.ones((8, 2)))


@pytest.mark.parametrize("ids", [[], np.zeros(6, bool)])
def test_no_rows_are_no_change(ids):
    layer = make_layer()
    layer.assign_rows(ids, [])
    layer.add_to_rows(ids, np.empty((0, 2)))
    np.testing.assert_array_equal(rows_of(layer), MATRIX)


def test_a_layer_without_tables_is_refused():
    config = make_layer().get_config()
    config["split"]["frozen_fingerprint"] = "sha256:" + "0" * 64
    with pytest.raises(MissingTableError, match="'tokens' has no tables"):
        SplitEmbedding.from_config(config).assign_rows([1], [[1, 1]])


@pytest.mark.skipif(BACKEND == "torch", reason="PyTorch runs eagerly")
def test_updates_inside_a_compiled_function_are_refused():
    layer = make_layer()
    layer.build()

    def update(values):
        layer.assign_rows([1], [[1, 1]])
        return values

    with pytest.raises(SplitError, match="cannot be set inside a compiled function"):
        _compiled(layer, update)


def _compiled(layer, update):
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return tf.function(update)(tf.ones(1))
    import jax

    def stateless(rows, values):
        with keras.StatelessScope(state_mapping=[(layer.trainable_rows, rows)]):
            return update(values)

    return jax.jit(stateless)(layer.trainable_rows.value, np.ones(1))


def test_training_continues_from_assigned_rows():
    layer = make_layer()
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, keras.layers.GlobalAveragePooling1D()(layer(ids)))
    model.compile(keras.optimizers.SGD(1.0), "mse")
    batch = np.array([[1, 2]])
    model.fit(batch, np.zeros((1, DIM)), verbose=0)
    layer.assign_rows([1], [[4.0, 6.0]])
    model.fit(batch, np.zeros((1, DIM)), verbose=0)
    mean = np.array([[4.0, 6.0], [2, 2]]).mean(0)
    np.testing.assert_allclose(rows_of(layer)[1], [4.0, 6.0] - mean / 2, rtol=1e-6)
