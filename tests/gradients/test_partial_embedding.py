"""PartialEmbedding on every backend: it trains what it should, to a dense reference, and is saved like any layer."""

import json

import keras
import numpy as np
import pytest

from splitembed import SplitEmbedding
from splitembed.errors import SplitError, TokenIdError
from splitembed.gradients.partial_embedding import PartialEmbedding
from splitembed.layers.spec import LIVE
from tests.helpers.differentiate import BACKEND, differences, numpy

pytestmark = pytest.mark.every_backend

NUM_TOKENS, DIM, TRAINABLE = 7, 3, [1, 4]
MATRIX = np.random.default_rng(0).normal(size=(NUM_TOKENS, DIM)).astype(np.float32)
MATRIX[0] = 0
IDS = np.array([[1, 2, 1, 0], [4, 3, 5, 0], [6, 4, 2, 2]])
TARGETS = np.array([[1.0], [0.0], [-1.0]], np.float32)


def make_model(layer):
    ids = keras.Input((None,), dtype="int32")
    pooled = keras.layers.GlobalAveragePooling1D()(layer(ids))
    return keras.Model(ids, keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", trainable=False)(pooled))


@pytest.mark.parametrize("weights", [MATRIX, [MATRIX], (MATRIX.tolist(),), MATRIX.astype(np.float64), MATRIX.tolist()])
def test_rows_are_the_matrix_s(weights):
    layer = PartialEmbedding(NUM_TOKENS, weights, TRAINABLE)
    np.testing.assert_array_equal(numpy(layer(IDS)), MATRIX[IDS])
    assert isinstance(layer, SplitEmbedding) and layer.num_trainable == 2
    assert [each.shape for each in layer.trainable_weights] == [(2, DIM)]


def test_matrix_of_one_row_is_not_read_as_a_list():
    np.testing.assert_array_equal(numpy(PartialEmbedding(1, [[1.0, 2.0]], [0])(np.array([0]))), [[1, 2]])


@pytest.mark.parametrize("trainable", [np.isin(np.arange(NUM_TOKENS), TRAINABLE), ["a", "d"]])
def test_trainable_rows_are_given_by_mask_or_token(trainable):
    words = ["", "a", "b", "c", "d", "e", "f"]
    layer = PartialEmbedding(NUM_TOKENS, MATRIX, trainable, vocabulary=words)
    assert layer.to_split().trainable_ids.tolist() == TRAINABLE
    layer.assign_rows("a", [1, 2, 3])
    np.testing.assert_array_equal(numpy(layer(np.array([1]))), [[1, 2, 3]])


@pytest.mark.parametrize(
    "compiled", [False, pytest.param(True, marks=pytest.mark.skipif(BACKEND == "torch", reason=""))]
)
def test_a_step_of_sgd_follows_finite_differences(compiled):
    layer = PartialEmbedding(NUM_TOKENS, [MATRIX], TRAINABLE)
    model = make_model(layer)
    model.compile(keras.optimizers.SGD(1.0), "mse", jit_compile=compiled)
    model.fit(IDS, TARGETS, verbose=0)

    def loss(table):
        return ((table[IDS].mean(1).sum(1, keepdims=True) - TARGETS) ** 2).mean()

    expected = np.array(MATRIX)
    expected[TRAINABLE] -= differences(loss, MATRIX)[TRAINABLE]
    np.testing.assert_allclose(layer.to_split().combine(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "make", [lambda: keras.optimizers.SGD(0.1, momentum=0.9), lambda: keras.optimizers.AdamW(0.1, weight_decay=0.1)]
)
def test_momentum_and_weight_decay_leave_frozen_rows_unchanged(make):
    layer = PartialEmbedding(NUM_TOKENS, [MATRIX], TRAINABLE)
    model = make_model(layer)
    model.compile(make(), "mse")
    model.fit(IDS, TARGETS, epochs=5, verbose=0)
    moved = (layer.to_split().combine() != MATRIX).any(1)
    assert np.flatnonzero(moved).tolist() == TRAINABLE


def test_a_saved_model_predicts_the_same(tmp_path):
    layer = PartialEmbedding(NUM_TOKENS, [MATRIX], TRAINABLE, mask_zero=True, name="partial")
    model = make_model(layer)
    model.compile(keras.optimizers.Adam(0.1), "mse")
    model.fit(IDS, TARGETS, verbose=0)
    expected = model.predict(IDS, verbose=0)
    model.save(tmp_path / "m.keras")
    LIVE.clear()
    again = keras.models.load_model(tmp_path / "m.keras")
    assert type(again.get_layer("partial")) is PartialEmbedding
    np.testing.assert_array_equal(again.predict(IDS, verbose=0), expected)


def test_configs_and_clones():
    layer = PartialEmbedding(NUM_TOKENS, [MATRIX], TRAINABLE, mask_zero=True, trainable=False, name="partial")
    config = json.loads(json.dumps(layer.get_config()))
    again = PartialEmbedding.from_config(config)
    assert again.get_config() == config and type(again) is PartialEmbedding and not again.trainable
    clone = keras.models.clone_model(make_model(layer))
    np.testing.assert_array_equal(numpy(clone.layers[1](IDS)), MATRIX[IDS])
    assert keras.saving.get_registered_name(PartialEmbedding) == "splitembed>PartialEmbedding"


def test_masking():
    layer = PartialEmbedding(NUM_TOKENS, [MATRIX], TRAINABLE, mask_zero=True)
    np.testing.assert_array_equal(numpy(layer.compute_mask(IDS)), IDS != 0)
    with pytest.raises(SplitError, match="padding id 0 must be frozen and zero, but it is trainable"):
        PartialEmbedding(NUM_TOKENS, [MATRIX], [0], mask_zero=True)
    with pytest.raises(SplitError, match="padding id 0 must be frozen and zero, but it is not zero"):
        PartialEmbedding(NUM_TOKENS, [MATRIX + 1], TRAINABLE, mask_zero=True)


@pytest.mark.parametrize(
    ("num_tokens", "weights", "ids", "error", "message"),
    [
        (8, MATRIX, [1], SplitError, "one row for each of 8 tokens. Received: 7 rows"),
        (7, [MATRIX], [7], TokenIdError, "7 is out of range"),
        (7, MATRIX[0], [1], SplitError, "`weights` must be a matrix"),
        (7, [MATRIX, MATRIX], [1], SplitError, "`weights` must be a matrix"),
        (7, None, [1], SplitError, "`weights` must be a matrix"),
    ],
)
def test_wrong_arguments_are_refused(num_tokens, weights, ids, error, message):
    with pytest.raises(error, match=message):
        PartialEmbedding(num_tokens, weights, ids)
