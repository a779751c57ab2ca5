"""Tokens with ids: dicts, Keras's Tokenizer and gensim's Dictionary, each against its own lookup."""

from collections import OrderedDict
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import VocabularyError, VocabularyWarning
from splitembed.vocabulary import Vocabulary, read_vocabulary

TOKENS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=1, max_size=12, unique=True)


def test_C1_word_index_from_1():
    vocabulary = read_vocabulary({"red": 1, "sky": 2})
    assert vocabulary == Vocabulary(("", "red", "sky"), padding=0, reserved=frozenset([0]), unknown=None)


def test_row_0_of_a_word_index_from_1_matches_nothing_without_padding():
    vocabulary = read_vocabulary({"": 1, "red": 2}, padding=None)
    assert (vocabulary.tokens, vocabulary.padding, vocabulary.reserved) == (("", "", "red"), None, {0})
    assert vocabulary.ids("").tolist() == [1]


def test_word_index_from_0_has_no_padding():
    vocabulary = read_vocabulary({"sky": 1, "red": 0})
    assert (vocabulary.tokens, vocabulary.padding) == (("red", "sky"), None)
    assert read_vocabulary({"": 0, "red": 1}).padding == 0


def test_word_index_names_its_unknown_token():
    assert read_vocabulary({"<OOV>": 1, "red": 2}, unknown="<OOV>").reserved == {0, 1}
    assert read_vocabulary({"[UNK]": 1, "red": 2}).unknown == 1


@given(TOKENS, st.sampled_from([0, 1]), st.sampled_from([int, np.int32, np.uint64]), st.randoms())
def test_row_i_of_a_word_index_belongs_to_the_token_with_id_i(tokens, start, kind, random):
    pairs = [(token, kind(index)) for index, token in enumerate(tokens, start)]
    random.shuffle(pairs)
    vocabulary = read_vocabulary(OrderedDict(pairs))
    assert vocabulary.num_tokens == start + len(tokens)
    assert all(vocabulary.tokens[int(token_id)] == token for token, token_id in pairs)


@pytest.mark.parametrize(
    ("word_index", "message"),
    [
        ({"a": 1, "b": 3}, "no token with id 2, the next one, 'b', has 3"),
        ({"a": 0, "b": 2}, "no token with id 1, the next one, 'b', has 2"),
        ({"a": 2, "b": 3}, "no token with id 1, the next one, 'a', has 2"),
        ({"a": 1, "b": 2, "c": 1}, "tokens 'a' and 'c' with the same id 1"),
        ({"a": 0, "b": 0}, "tokens 'a' and 'b' with the same id 0"),
        ({"a": 0, "b": -1}, "The id of token 'b' must be an integer, 0 or more. Received: -1 of type int"),
        ({"a": True}, "The id of token 'a' must be an integer, 0 or more. Received: True of type bool"),
        ({"a": np.True_}, "The id of token 'a' .* of type bool"),
        ({"a": 1, "b": 2.0}, "The id of token 'b' .* Received: 2.0 of type float"),
        ({"a": "1"}, "The id of token 'a' .* Received: '1' of type str"),
        ({"a": 0, "b": 2**70}, "The id of token 'b' .* Received: 1180591620717411303424"),
        ({1: "a"}, "The id of token '1' must be an integer, 0 or more. Received: 'a' of type str"),
    ],
)
def test_refused_word_indices(word_index, message):
    with pytest.raises(VocabularyError, match=message):
        read_vocabulary(word_index)


@pytest.mark.parametrize(
    ("num_words", "tokens"), [(2, ("", "a")), (3, ("", "a", "b")), (np.int64(9), ("", "a", "b", "c"))]
)
def test_num_words_keeps_the_ids_below_it(num_words, tokens):
    assert read_vocabulary({"c": 3, "a": 1, "b": 2}, num_words=num_words).tokens == tokens


def test_num_words_of_a_word_index_from_0_and_of_one_with_a_gap_beyond_it():
    assert read_vocabulary({"c": 2, "a": 0, "b": 1}, num_words=2).tokens == ("a", "b")
    assert read_vocabulary({"a": 1, "b": 2, "z": 9}, num_words=3).tokens == ("", "a", "b")


@pytest.mark.parametrize(
    ("num_words", "message"),
    [
        (1, "`num_words` must be above 1, the smallest id, to keep any token. Received: 1"),
        (0, "Received: 0"),
        (-1, "Received: -1"),
        (True, "`num_words` must be an integer or None. Received: True"),
        (2.0, "`num_words` must be an integer or None. Received: 2.0"),
        ("2", "Received: '2'"),
    ],
)
def test_refused_num_words(num_words, message):
    with pytest.raises(VocabularyError, match=message):
        read_vocabulary({"a": 1, "b": 2}, num_words=num_words)


# Keras's Tokenizer


TEXTS = ["the sky is red", "the sea is blue", "The red, red rose"]


@pytest.mark.parametrize("num_words", [None, 0, 1, 4, 9])
@pytest.mark.parametrize("oov_token", [None, "<OOV>", "rose"])
def test_row_i_belongs_to_the_token_that_a_tokenizer_maps_to_i(num_words, oov_token):
    import tensorflow

    tokenizer = tensorflow.keras.preprocessing.text.Tokenizer(num_words=num_words, oov_token=oov_token)
    tokenizer.fit_on_texts(TEXTS)
    vocabulary = read_vocabulary(tokenizer)
    sent = set()
    for word, token_id in tokenizer.word_index.items():
        ids = tokenizer.texts_to_sequences([[word]])[0]
        sent |= set(ids)
        assert len(ids) <= 1
        if ids == [token_id]:
            assert vocabulary.tokens[token_id] == word
        else:
            assert ids == ([] if oov_token is None else [vocabulary.unknown])
    unknown = {each for ids in tokenizer.texts_to_sequences([["stranger"]]) for each in ids}
    assert unknown == (set() if oov_token is None else {vocabulary.unknown})
    assert vocabulary.num_tokens == max(sent | {0}) + 1
    assert vocabulary.padding == 0
    assert set(range(vocabulary.num_tokens)) - sent <= vocabulary.reserved
    assert vocabulary.is_ordinary.sum() == len(sent - unknown)


def test_row_i_belongs_to_the_token_that_a_tokenizer_from_json_maps_to_i(tmp_path):
    import tensorflow

    text = tensorflow.keras.preprocessing.text
    tokenizer = text.Tokenizer(num_words=4, oov_token="<OOV>")
    tokenizer.fit_on_texts(TEXTS)
    path = tmp_path / "tokenizer.json"
    path.write_text(tokenizer.to_json())
    assert read_vocabulary(path) == read_vocabulary(tokenizer)
    assert text.tokenizer_from_json(path.read_text()).texts_to_sequences(["the red sky"]) == [[2, 3, 1]]
    assert read_vocabulary(path).tokens == ("", "<OOV>", "the", "red")


def tokenizer_like(word_index, num_words=None, oov_token=None):
    return SimpleNamespace(word_index=word_index, num_words=num_words, oov_token=oov_token)


def test_tokenizer_to_which_the_user_added_padding():
    vocabulary = read_vocabulary(tokenizer_like({"the": 1, "sky": 2, "<pad>": 0}))
    assert (vocabulary.tokens, vocabulary.padding, vocabulary.reserved) == (("<pad>", "the", "sky"), 0, {0})


def test_tokenizer_with_an_oov_id_beyond_num_words():
    vocabulary = read_vocabulary(tokenizer_like({"the": 1, "sky": 2, "<oov>": 4}, num_words=2, oov_token="<oov>"))
    assert vocabulary.tokens == ("", "the", "[no token 2]", "[no token 3]", "<oov>")
    assert (vocabulary.unknown, vocabulary.reserved) == (4, {0, 2, 3, 4})


def test_tokenizer_with_an_empty_token():
    vocabulary = read_vocabulary(tokenizer_like({"": 1, "sky": 2}))
    assert (vocabulary.tokens, vocabulary.padding) == (("[no token 0]", "", "sky"), 0)


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        (tokenizer_like({}), "SimpleNamespace has no tokens yet. Call its fit_on_texts"),
        (tokenizer_like({"a": 1, "b": 1}), "tokens 'a' and 'b' with the same id 1"),
        (tokenizer_like({"a": "1"}), "The id of token 'a' must be an integer"),
        (tokenizer_like({"a": 1, "b": 10**9}), "found 'b' with id 1000000000, but only 3 tokens"),
    ],
)
def test_refused_tokenizers(tokenizer, message):
    with pytest.raises(VocabularyError, match=message):
        read_vocabulary(tokenizer)


# gensim's Dictionary


DOCUMENTS = [["red", "sky"], ["sky", "sea"], ["sky", "red", "é"]]


def test_row_i_belongs_to_the_token_that_a_dictionary_maps_to_i():
    corpora = pytest.importorskip("gensim.corpora")
    dictionary = corpora.Dictionary(DOCUMENTS)
    vocabulary = read_vocabulary(dictionary)
    assert vocabulary.num_tokens == len(dictionary)
    for document in DOCUMENTS:
        assert [vocabulary.tokens[index] for index in dictionary.doc2idx(document)] == document
        assert vocabulary.ids(document).tolist() == dictionary.doc2idx(document)
    assert (vocabulary.padding, vocabulary.unknown, vocabulary.reserved) == (None, None, frozenset())


def test_row_i_belongs_to_the_token_that_a_filtered_dictionary_maps_to_i():
    corpora = pytest.importorskip("gensim.corpora")
    dictionary = corpora.Dictionary(DOCUMENTS)
    removed = [dictionary.token2id["red"], dictionary.token2id["sea"]]
    # As after merging and editing; `filter_tokens` renumbers the tokens.
    for token_id in removed:
        del dictionary.token2id[dictionary[token_id]]
    vocabulary = read_vocabulary(dictionary)
    assert [vocabulary.tokens[index] for index in dictionary.doc2idx(["é", "sky"])] == ["é", "sky"]
    assert vocabulary.reserved == set(removed)
    dictionary.filter_extremes(no_below=2, no_above=1.0)
    assert [read_vocabulary(dictionary).tokens[index] for index in dictionary.doc2idx(["sky"])] == ["sky"]


def test_row_i_belongs_to_the_token_that_a_dictionary_with_special_tokens_maps_to_i():
    corpora = pytest.importorskip("gensim.corpora")
    dictionary = corpora.Dictionary(DOCUMENTS)
    dictionary.patch_with_special_tokens({"<pad>": 0, "[UNK]": 1})
    vocabulary = read_vocabulary(dictionary, padding="<pad>")
    assert (vocabulary.padding, vocabulary.unknown) == (0, 1)
    assert dictionary.doc2idx(["<pad>", "[UNK]"]) == [0, 1]
    assert [vocabulary.tokens[index] for index in dictionary.doc2idx(DOCUMENTS[2])] == DOCUMENTS[2]


def test_a_placeholder_differs_from_every_token():
    vocabulary = read_vocabulary(SimpleNamespace(token2id={"[no token 1]": 0, "sky": 2}))
    assert vocabulary.tokens == ("[no token 1]", "[[no token 1]]", "sky")
    assert len(set(vocabulary.tokens)) == vocabulary.num_tokens


def test_gaps_are_allowed_up_to_a_hundred_thousand_ids_or_ten_times_the_tokens():
    message = "SimpleNamespace: 99,999 of 100,000 ids have no token; the highest id is that of 'a'. .* Renumber"
    with pytest.warns(VocabularyWarning, match=message):
        assert read_vocabulary(SimpleNamespace(token2id={"a": 99_999})).num_tokens == 100_000
    with pytest.raises(VocabularyError, match="expected a token for most ids. Renumber the tokens"):
        read_vocabulary(SimpleNamespace(token2id={"a": 100_000}))
    many = {str(index): 9 * index for index in range(20_000)}
    with pytest.warns(VocabularyWarning):
        assert read_vocabulary(SimpleNamespace(token2id=many)).num_tokens == 9 * 19_999 + 1
