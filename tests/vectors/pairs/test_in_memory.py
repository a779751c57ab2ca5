"""Objects in memory: the table of a Keras `Embedding` with its lookup gives the rows that the layers give."""

import numpy as np
import pytest

from splitembed.errors import VectorFormatError
from splitembed.vectors import read_vectors
from tests.helpers.reference import table_of

keras = pytest.importorskip("keras")

TOKENS = ["the", "of", "naïve"]


def lookup(**options):
    layer = keras.layers.StringLookup(**options)
    layer.set_vocabulary(TOKENS)
    return layer


def embedding(num_tokens, **options):
    layer = keras.layers.Embedding(num_tokens, 4, **options)
    layer.build(())
    return layer


@pytest.mark.parametrize("options", [{}, {"num_oov_indices": 3}, {"num_oov_indices": 0}, {"mask_token": ""}])
def test_every_token_has_the_row_that_the_layers_give_it(options):
    words = lookup(**options)
    table = embedding(words.vocabulary_size())
    vectors = read_vectors((words, table))
    assert vectors.words == TOKENS
    assert np.array_equal(vectors.vectors, keras.ops.convert_to_numpy(table(words(np.array(TOKENS)))))
    assert read_vectors((words, table), ["of", "[UNK]", ""]).words == ["of"]


def test_text_vectorization_and_integer_lookup():
    vectorize = keras.layers.TextVectorization(vocabulary=TOKENS)
    table = embedding(vectorize.vocabulary_size())
    expected = dict(zip(TOKENS, np.asarray(table.embeddings)[2:].tolist(), strict=True))
    assert table_of(read_vectors((vectorize, table))) == expected
    numbers = keras.layers.IntegerLookup(vocabulary=[12, 7])
    table = embedding(3)
    expected = {"12": np.asarray(table.embeddings)[1].tolist(), "7": np.asarray(table.embeddings)[2].tolist()}
    assert table_of(read_vectors((numbers, table))) == expected


def test_a_list_of_words_will_do():
    table = embedding(3)
    assert np.array_equal(read_vectors((TOKENS, table)).vectors, np.asarray(table.embeddings))


def test_both_sizes_are_named_where_they_differ():
    with pytest.raises(VectorFormatError, match=r"found 4 words and rows of shape \(9, 4\)"):
        read_vectors((lookup(), embedding(9)))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_tables_of_any_float(dtype):
    table = embedding(3, dtype=dtype)
    expected = keras.ops.convert_to_numpy(keras.ops.cast(table.embeddings, "float32"))
    assert np.array_equal(read_vectors((TOKENS, table)).vectors, expected)


def test_lora_updates_are_in_the_rows():
    table = embedding(3)
    table.enable_lora(2)
    table.lora_embeddings_b.assign(np.ones((2, 4)))
    before = np.asarray(table._embeddings)
    vectors = read_vectors((TOKENS, table)).vectors
    assert not np.array_equal(vectors, before)
    assert np.allclose(vectors, np.asarray(table(np.arange(3))), atol=1e-7)


def test_a_layer_without_a_table_and_one_of_integers_are_refused():
    with pytest.raises(VectorFormatError, match="The Embedding layer 'mine' has no table yet"):
        read_vectors((TOKENS, keras.layers.Embedding(3, 4, name="mine")))
    table = embedding(3)
    table.quantize("int8")
    with pytest.raises(VectorFormatError, match=r"is quantized \(int8\), .* integers without their scales"):
        read_vectors((TOKENS, table))


def test_a_layer_alone_knows_no_words():
    with pytest.raises(VectorFormatError, match=r"Pass \(lookup, embedding\): the layer knows no words"):
        read_vectors(embedding(3))
