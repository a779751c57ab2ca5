"""Keras's lookup layers: row i belongs to the token that the layer maps to i."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from splitembed.errors import VocabularyError
from splitembed.vocabulary import read_vocabulary
from splitembed.vocabulary.keras_layers import update_layer


def lookup_layer(tokens, **attributes):
    defaults = {"num_oov_indices": 1, "mask_token": None, "oov_token": "[UNK]", "output_mode": "int", "invert": False}
    config = {**defaults, **attributes}
    return SimpleNamespace(get_config=lambda: config, get_vocabulary=lambda: tokens)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (lookup_layer(["a"], invert=True), "has invert=True"),
        (lookup_layer(["[UNK]", "a"], output_mode="multi_hot"), 'must have output_mode="int". Received: .*multi_hot'),
        (lookup_layer(["[UNK]"]), "has no tokens yet. Call its adapt"),
        (lookup_layer([], num_oov_indices=0), "has no tokens yet"),
        (SimpleNamespace(get_vocabulary=lambda: ["a"]), "not a Keras lookup layer. Pass the list"),
    ],
)
def test_refused_layers(layer, message):
    with pytest.raises(VocabularyError, match=message):
        read_vocabulary(layer)


def test_layer_without_a_name_for_unknown_tokens():
    vocabulary = read_vocabulary(lookup_layer([None, None, "a"], num_oov_indices=2, oov_token=None))
    assert (vocabulary.tokens, vocabulary.unknown, vocabulary.reserved) == (("[UNK]", "[UNK]", "a"), 0, {0, 1})


def looked_up(layer, tokens):
    return np.asarray(layer(np.array(tokens))).reshape(-1).tolist()


@pytest.mark.parametrize(
    ("num_oov_indices", "mask_token", "oov_token"),
    [*itertools.product([0, 1, 3], [None, ""], ["[UNK]", None]), (3, "<pad>", "<oov>")],
)
def test_row_i_belongs_to_the_token_that_string_lookup_maps_to_i(num_oov_indices, mask_token, oov_token):
    import keras

    # Keras treats "[UNK]" among the words as an ordinary token.
    words = ["the", "[UNK]", "é", "a b", "<unk>"]
    layer = keras.layers.StringLookup(
        num_oov_indices=num_oov_indices, mask_token=mask_token, oov_token=oov_token, vocabulary=words
    )
    vocabulary = read_vocabulary(layer)
    assert vocabulary.num_tokens == layer.vocabulary_size()
    assert [vocabulary.tokens[index] for index in looked_up(layer, words)] == words
    assert vocabulary.ids(words).tolist() == looked_up(layer, words)
    assert vocabulary.padding == (None if mask_token is None else looked_up(layer, [mask_token])[0])
    if num_oov_indices:
        strangers = [f"stranger{index}" for index in range(40)]
        slots = set(looked_up(layer, strangers))
        assert len(slots) == num_oov_indices
        assert vocabulary.unknown == min(slots)
        assert vocabulary.reserved == slots | ({0} if mask_token is not None else set())
    else:
        assert vocabulary.unknown == vocabulary.index["[UNK]"]


def test_row_i_belongs_to_the_token_that_text_vectorization_maps_to_i():
    import keras

    layer = keras.layers.TextVectorization()
    layer.adapt(["the sky is red", "the sky", "le ciel été"])
    vocabulary = read_vocabulary(layer)
    assert (vocabulary.tokens[:2], vocabulary.padding, vocabulary.unknown) == (("", "[UNK]"), 0, 1)
    words = ["the", "sky", "is", "red", "été"]
    assert [vocabulary.tokens[index] for index in looked_up(layer, words)] == words
    assert looked_up(layer, ["stranger"]) == [vocabulary.unknown]
    assert looked_up(layer, ["the stranger", "sky"])[-1] == vocabulary.padding
    assert read_vocabulary(layer.get_vocabulary()) == vocabulary
    assert {type(token) for token in vocabulary.tokens} == {str}


def test_lookup_layer_whose_vocabulary_is_a_file(tmp_path):
    import keras

    path = tmp_path / "vocabulary.txt"
    path.write_bytes(b"the\nsky\n")
    layer = keras.layers.StringLookup(mask_token="", vocabulary=str(path))
    assert read_vocabulary(layer).tokens == ("", "[UNK]", "the", "sky")


def test_refused_keras_layers():
    import keras

    layers = keras.layers
    for layer, message in [
        (layers.StringLookup(vocabulary=["a"], invert=True), "StringLookup has invert=True"),
        (layers.StringLookup(vocabulary=["a"], output_mode="one_hot"), 'StringLookup must have output_mode="int"'),
        (
            layers.TextVectorization(vocabulary=["a"], output_mode="count"),
            'TextVectorization must have output_mode="int"',
        ),
        (layers.StringLookup(), "StringLookup has no tokens yet"),
        (layers.StringLookup(num_oov_indices=0, mask_token=""), "StringLookup has no tokens yet"),
        (layers.TextVectorization(), "TextVectorization has no tokens yet"),
        (layers.IntegerLookup(vocabulary=[5], invert=True), "IntegerLookup has invert=True"),
        (layers.IntegerLookup(vocabulary=[5], output_mode="count"), 'IntegerLookup must have output_mode="int"'),
        (layers.IntegerLookup(), "IntegerLookup has no tokens yet"),
    ]:
        with pytest.raises(VocabularyError, match=message):
            read_vocabulary(layer)


def test_explicit_choices_for_a_layer():
    layer = lookup_layer(["<pad>", "[UNK]", "[UNK]", "a"], num_oov_indices=2, mask_token="<pad>")
    vocabulary = read_vocabulary(layer, padding=None, unknown=2)
    assert (vocabulary.padding, vocabulary.unknown, vocabulary.reserved) == (None, 2, {0, 1, 2})


@pytest.mark.parametrize(
    ("num_oov_indices", "mask_token", "oov_token"),
    [*itertools.product([0, 1, 3], [None, 0], [-1, None]), (1, -1, -1), (3, -1, 99)],
)
def test_row_i_belongs_to_the_token_that_integer_lookup_maps_to_i(num_oov_indices, mask_token, oov_token):
    import keras

    integers = [42, 7, -5, 2**40]
    layer = keras.layers.IntegerLookup(
        num_oov_indices=num_oov_indices, mask_token=mask_token, oov_token=oov_token, vocabulary=integers
    )
    vocabulary = read_vocabulary(layer)
    assert vocabulary.num_tokens == layer.vocabulary_size()
    ids = looked_up(layer, integers)
    assert [vocabulary.tokens[index] for index in ids] == ["42", "7", "-5", "1099511627776"]
    assert vocabulary.ids([str(integer) for integer in integers]).tolist() == ids
    masks = set() if mask_token is None else set(looked_up(layer, [mask_token]))
    assert vocabulary.padding == (min(masks) if masks else None)
    slots = set(looked_up(layer, list(range(1000, 1040)))) if num_oov_indices else set()
    assert len(slots) == num_oov_indices
    assert vocabulary.unknown == (min(slots) if slots else None)
    assert vocabulary.reserved == masks | slots
    assert {type(token) for token in vocabulary.tokens} == {str}
    assert vocabulary.has_strings


def test_row_i_belongs_to_the_token_that_an_adapted_integer_lookup_maps_to_i():
    import keras

    layer = keras.layers.IntegerLookup(mask_token=0, max_tokens=4)
    layer.adapt([[7, 7, 7, 42], [42, 0, -3, 0]])
    vocabulary = read_vocabulary(layer)
    assert vocabulary.tokens == ("0", "-1", "7", "42")
    assert looked_up(layer, [0, -3, 7, 42]) == [0, 1, 2, 3]
    assert (vocabulary.padding, vocabulary.unknown, vocabulary.reserved) == (0, 1, {0, 1})


@pytest.mark.parametrize("front", [[], ["<pad>", "<oov>", "<oov>"]])
@pytest.mark.parametrize("kind", ["StringLookup", "IntegerLookup"])
def test_row_i_belongs_to_the_token_that_the_layer_maps_to_i_after_another_set_vocabulary(front, kind):
    import keras

    if kind == "StringLookup":
        first, second, special = ["old", "red"], ["sky", "red", "the"], front
        layer = keras.layers.StringLookup(num_oov_indices=2, mask_token="<pad>", oov_token="<oov>", vocabulary=first)
    else:
        first, second, special = [1, 2], [30, 2, 10], [0, -1, -1] if front else []
        layer = keras.layers.IntegerLookup(num_oov_indices=2, mask_token=0, vocabulary=first)
    layer.set_vocabulary([*special, *second])
    vocabulary = read_vocabulary(layer)
    assert vocabulary.num_tokens == 6
    assert [vocabulary.tokens[index] for index in looked_up(layer, second)] == list(map(str, second))
    assert looked_up(layer, first[:1])[0] in vocabulary.reserved


def test_row_i_belongs_to_the_token_that_text_vectorization_maps_to_i_after_set_vocabulary():
    import keras

    layer = keras.layers.TextVectorization(standardize=None, split="character", output_sequence_length=3)
    layer.set_vocabulary(["", "[UNK]", "b", "É"])
    vocabulary = read_vocabulary(layer)
    assert [vocabulary.tokens[index] for index in looked_up(layer, ["bÉb"])] == ["b", "É", "b"]
    assert looked_up(layer, ["bz"]) == [vocabulary.index["b"], vocabulary.unknown, vocabulary.padding]


@pytest.mark.parametrize("vocabulary_dtype", ["int32", "int64", "<dtype: 'int64'>"])
def test_integers_beside_slots_without_a_name(vocabulary_dtype):
    layer = lookup_layer([0, None, np.int32(7)], mask_token=0, oov_token=None, vocabulary_dtype=vocabulary_dtype)
    assert read_vocabulary(layer).tokens == ("0", "[UNK]", "7")
    with pytest.raises(VocabularyError, match="Tokens must be str or int. Received: 1.5 of type float at position 1"):
        read_vocabulary(lookup_layer([-1, 1.5], vocabulary_dtype=vocabulary_dtype, oov_token=-1))


LAYERS = {
    "string lookup": lambda layers, tokens: layers.StringLookup(vocabulary=tokens, mask_token="", num_oov_indices=2),
    "string lookup without slots": lambda layers, tokens: layers.StringLookup(vocabulary=tokens, num_oov_indices=0),
    "integer lookup": lambda layers, tokens: layers.IntegerLookup(vocabulary=list(map(int, tokens)), mask_token=0),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_an_updated_layer_returns_the_new_ids_also_after_saving(kind, tmp_path):
    import keras

    layer = LAYERS[kind](keras.layers, ["5", "7"])
    tokens = [*read_vocabulary(layer).tokens, "9", "6"]
    update_layer(layer, tokens)
    assert read_vocabulary(layer).tokens == tuple(tokens)
    words = [int(token) if kind == "integer lookup" else token for token in tokens[-4:]]
    ids = list(range(len(tokens) - 4, len(tokens)))
    assert looked_up(layer, words) == ids
    inputs = keras.Input((1,), dtype="int64" if kind == "integer lookup" else "string")
    keras.Model(inputs, layer(inputs)).save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras").layers[-1]
    assert looked_up(loaded, words) == ids


def test_an_updated_text_vectorization_returns_the_new_ids_also_after_saving(tmp_path):
    import keras

    layer = keras.layers.TextVectorization()
    layer.adapt(["good film"])
    update_layer(layer, ["", "[UNK]", "good", "film", "meh"])
    inputs = keras.Input((1,), dtype="string")
    keras.Model(inputs, layer(inputs)).save(tmp_path / "model.keras")
    for each in (layer, keras.models.load_model(tmp_path / "model.keras").layers[-1]):
        assert looked_up(each, ["A meh film"]) == [1, 4, 3]


def test_layers_that_cannot_have_the_vocabulary_are_refused():
    import keras

    tokens = ["", "[UNK]", "a", "b"]
    made = keras.layers.TextVectorization(vocabulary=["a"])
    full = keras.layers.TextVectorization(max_tokens=3)
    other = keras.layers.StringLookup(vocabulary=["a"], oov_token="<unk>")
    integers = keras.layers.IntegerLookup(vocabulary=[7])
    cases = [
        (made, tokens, "was made with `vocabulary`, which its saved config would restore. Make a new layer"),
        (full, tokens, "has max_tokens=3, but the split has 4 tokens. Make a new layer"),
        (other, tokens, r"has the mask and OOV tokens \['<unk>'\]; expected those of the split: \[''\]"),
        (integers, ["-1", "7", "a"], "cannot have the vocabulary of the split: invalid literal"),
        (keras.layers.StringLookup(), ["[UNK]", "a", "a"], "cannot have the vocabulary of the split"),
        (keras.layers.Dense(1), tokens, "Dense is not a Keras lookup layer"),
    ]
    for layer, words, message in cases:
        with pytest.raises(VocabularyError, match=message):
            update_layer(layer, words)
    assert read_vocabulary(integers).tokens == ("-1", "7") and read_vocabulary(made).tokens == ("", "[UNK]", "a")
