"""replace_split warns of lookup layers with the old vocabulary, and a new word trains once they are updated."""

import warnings

import keras
import numpy as np
import pytest

from splitembed import SplitEmbedding, build_split, replace_split
from splitembed.errors import VocabularyWarning

TEXTS = np.array([["good film"], ["bad film"], ["meh"]], object)
VECTORS = {"good": [1.0, 0.0], "film": [0.0, 1.0]}


def made(inside):
    """Return a trained model, its text layer, which may be inside the model, and the inputs of the model."""
    vectorize = keras.layers.TextVectorization(output_sequence_length=2)
    vectorize.adapt(TEXTS[:2])
    layer = SplitEmbedding(build_split(vectorize, VECTORS, seed=0), mask_zero=True, name="words")
    inputs = keras.Input((1,), dtype="string") if inside else keras.Input((2,), dtype="int64")
    rows = layer(vectorize(inputs) if inside else inputs)
    model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.GlobalAveragePooling1D()(rows)))
    model.compile(keras.optimizers.SGD(0.1), "mse")
    fit(model, vectorize, inside)
    return model, vectorize


def fit(model, vectorize, inside):
    model.fit(keras.ops.convert_to_tensor(TEXTS) if inside else vectorize(TEXTS), np.ones(3), verbose=0)


def row_of(model, token):
    split = model.get_layer("words").to_split()
    return split.lookup(split.ids([token]))[0].tolist()


@pytest.mark.parametrize("inside", [False, True])
def test_a_new_word_trains_after_an_update_and_there_is_a_warning_without(inside):
    model, vectorize = made(inside)
    before = model.get_layer("words").to_split()
    grown = before.grow(["meh"], oov_initializer="zeros")
    message = rf"These lookup layers still have the old vocabulary: '{vectorize.name}'. `new_split` has 6 tokens"
    with pytest.warns(VocabularyWarning, match=message):
        replace_split(model, "words", grown)
    fit(model, vectorize, inside)
    assert row_of(model, "meh") == [0.0, 0.0]
    again = model.get_layer("words").to_split().grow(["so"], oov_initializer="zeros")
    again.update_lookup(vectorize)
    with warnings.catch_warnings():
        warnings.simplefilter("error", VocabularyWarning)
        replace_split(model, "words", again)
        # No other edit changes the vocabulary.
        replace_split(model, "words", model.get_layer("words").to_split().thaw(["good"]))
        same = model.get_layer("words").to_split()
        replace_split(model, "words", same.with_parts(vocabulary=list(same.vocabulary)))
    fit(model, vectorize, inside)
    assert row_of(model, "meh") != [0.0, 0.0] and row_of(model, "so") == [0.0, 0.0]


def test_lookup_layers_of_another_vocabulary_give_no_warning():
    ids, colors = keras.Input((2,), dtype="int64"), keras.Input((1,), dtype="string")
    color = keras.layers.StringLookup(vocabulary=["red"])(colors)
    layer = SplitEmbedding(build_split(["", "[UNK]", "good"], VECTORS, seed=0), name="words")
    model = keras.Model([ids, colors], [layer(ids), color])
    with warnings.catch_warnings():
        warnings.simplefilter("error", VocabularyWarning)
        replace_split(model, "words", layer.to_split().grow(["meh"]))
