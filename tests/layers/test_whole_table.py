"""`layer.embeddings`: the dense table with the current rows, some of them or all, and not in compiled functions."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from splitembed import SplitEmbedding
from splitembed.errors import SplitError
from tests.helpers.bits import same_bits
from tests.helpers.models import IDS, WORDS, functional, make_split


@pytest.fixture
def layer() -> SplitEmbedding:
    layer = SplitEmbedding(make_split())
    layer.build()
    layer.assign_rows("usr", [1.0, 2.0, 3.0])
    return layer


def test_the_whole_table_has_the_current_rows(layer):
    expected = layer.to_split().combine()
    assert (layer.embeddings.shape, layer.embeddings.dtype, len(layer.embeddings)) == ((6, 3), np.float32, 6)
    for found in (np.asarray(layer.embeddings), layer.embeddings.numpy(), keras.ops.convert_to_numpy(layer.embeddings)):
        same_bits(found, expected)
    same_bits(np.asarray(layer.embeddings, np.float64), expected.astype(np.float64))
    assert dict(zip(WORDS, layer.embeddings, strict=True))["usr"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("ids", [4, -2, [1, 4], slice(1, 4), IDS, np.array([True, False] * 3), (4, 1), (slice(2), 0)])
def test_indices_are_those_of_numpy(layer, ids):
    same_bits(layer.embeddings[ids], layer.to_split().combine()[ids])


def test_an_index_out_of_range_is_refused(layer):
    with pytest.raises(IndexError):
        layer.embeddings[6]


def test_the_table_is_read_only(layer):
    with pytest.raises(AttributeError):
        layer.embeddings = np.zeros((6, 3))
    with pytest.raises(TypeError):
        layer.embeddings[0] = 1


def test_some_rows_are_read_without_the_whole_table(layer, monkeypatch):
    monkeypatch.setattr(type(layer.to_split()), "combine", None)
    layer.embeddings[[1, 2]]


def test_a_compiled_function_refuses_it(layer):
    # the values of the first trace would stay
    for read in (lambda: tf.constant(layer.embeddings), lambda: tf.constant(layer.embeddings[4])):
        with pytest.raises(SplitError, match="inside a compiled function"):
            tf.function(read, autograph=False)()


def test_saving_a_model_does_not_make_the_whole_table(layer, tmp_path, monkeypatch):
    model = functional(layer)
    monkeypatch.setattr(type(layer.to_split()), "combine", None)
    model.save(tmp_path / "m.keras")
    tf.saved_model.save(model, tmp_path / "saved")
