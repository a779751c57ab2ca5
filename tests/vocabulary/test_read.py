"""Sources of vocabularies, the meaning of "auto", and refused sources and options."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from splitembed.errors import TokenIdError, UnknownTokenError, VocabularyError
from splitembed.vocabulary import Vocabulary, align_counts, read_vocabulary


def test_C3_padding_and_unknown_are_reserved():
    vocabulary = read_vocabulary(["", "[UNK]", "b", "a"])
    assert vocabulary == Vocabulary(("", "[UNK]", "b", "a"), padding=0, reserved=frozenset([0, 1]), unknown=1)
    assert vocabulary.is_ordinary.tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("options", "padding", "unknown", "reserved"),
    [
        ({}, 0, 2, {0, 2}),
        ({"padding": None}, None, 2, {2}),
        ({"unknown": None}, 0, None, {0}),
        ({"padding": None, "unknown": None}, None, None, set()),
        ({"padding": 1}, 1, 2, {1, 2}),
        ({"padding": "a"}, 1, 2, {1, 2}),
        ({"padding": np.int64(1), "unknown": np.uint8(0)}, 1, 0, {0, 1}),
        ({"unknown": "a"}, 0, 1, {0, 1}),
        ({"unknown": 1}, 0, 1, {0, 1}),
    ],
)
def test_explicit_padding_and_unknown(options, padding, unknown, reserved):
    vocabulary = read_vocabulary(["", "a", "[UNK]"], **options)
    assert (vocabulary.padding, vocabulary.unknown, vocabulary.reserved) == (padding, unknown, frozenset(reserved))
    assert read_vocabulary(vocabulary) == vocabulary


def test_padding_makes_an_ordinary_word_at_id_0_reserved():
    vocabulary = read_vocabulary(["the", "of"], padding=0)
    assert (vocabulary.padding, vocabulary.reserved) == (0, frozenset([0]))


def test_reading_a_vocabulary_a_second_time_can_change_the_reserved_ids():
    vocabulary = read_vocabulary(["the", "[UNK]", "of"], padding=0)
    assert read_vocabulary(vocabulary, padding=None).reserved == {1}
    assert read_vocabulary(vocabulary, padding=2, unknown=None).reserved == {2}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"padding": 2}, TokenIdError, "Token id 2 is out of range: there are 2 tokens, so ids run from 0 to 1."),
        ({"unknown": -1}, TokenIdError, "Token id -1 is out of range"),
        ({"unknown": "<unk>"}, UnknownTokenError, "Token '<unk>' is not among the 2 tokens"),
        ({"padding": False}, VocabularyError, '`padding` must be "auto", None, an id or a token. Received: False.'),
        ({"unknown": 1.0}, VocabularyError, "`unknown` must be .* Received: 1.0."),
        ({"padding": 1, "unknown": 1}, VocabularyError, "must be different ids. Received: 1 for both"),
        ({"padding": "[UNK]"}, VocabularyError, "must be different ids. Received: 1 for both"),
        ({"keep_lines": True}, VocabularyError, "`keep_lines` is only for text files. Received: .*list."),
    ],
)
def test_refused_options(options, error, message):
    with pytest.raises(error, match=message):
        read_vocabulary(["the", "[UNK]"], **options)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "The vocabulary is empty"),
        ((), "The vocabulary is empty"),
        ({}, "The vocabulary is empty"),
        (["a", "b", "a"], "id 2: found the token 'a' of id 0 again"),
        (["", "a", ""], "id 2: found the token '' of id 0 again"),
        (["a", b"b"], "Tokens must be str or int. Received: b'b' of type bytes at position 1. Decode it."),
        (np.array([3.0, 4.0]), "Received: 3.0 of type float at position 0"),
        (["a", None], "Received: None of type NoneType at position 1"),
        (["a", "\ud800"], "lone surrogate"),
        ({"\ud800": 0}, "lone surrogate"),
        ({"a", "b"}, "Received: set"),
        (Counter("aab"), "Received: Counter"),
        (b"vocabulary.txt", "Received: bytes"),
        (np.array([["a"]]), "Received: ndarray"),
        (7.0, "Received: float"),
        (True, "Received: bool"),
        (np.True_, "Received: bool"),
        (None, "Received: NoneType"),
        (SimpleNamespace(index_to_key=["a"]), "Received: SimpleNamespace. Pass its `index_to_key`."),
        (SimpleNamespace(num_bins=9), "Received: SimpleNamespace. Pass its `num_bins`."),
        (SimpleNamespace(word_index={"a": 1}), "Received: SimpleNamespace. Pass its `word_index`."),
    ],
)
def test_refused_sources(source, message):
    with pytest.raises(VocabularyError, match=message):
        read_vocabulary(source)


def test_errors_and_representation_of_a_long_vocabulary_are_short():
    tokens = [f"token{index}" for index in range(5000)]
    assert len(repr(read_vocabulary(tokens))) < 100
    for call in (
        lambda: read_vocabulary([*tokens, "token7"]),
        lambda: read_vocabulary({token: 2 * index for index, token in enumerate(tokens)}),
        lambda: read_vocabulary(tokens, padding=5000),
        lambda: read_vocabulary(tokens).ids([*tokens, "other"]),
        lambda: align_counts(np.ones(4999), read_vocabulary(tokens)),
    ):
        with pytest.raises((VocabularyError, TokenIdError, UnknownTokenError)) as caught:
            call()
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "source",
    [["a"], 7, SimpleNamespace(token2id={"a": 0}), SimpleNamespace(word_index={"a": 1}, num_words=2, oov_token=None)],
)
def test_num_words_is_for_dicts(source):
    with pytest.raises(VocabularyError, match=f"`num_words` is only for a dict .*Received: {type(source).__name__}"):
        read_vocabulary(source, num_words=2)


def test_marks_can_be_named_for_any_tokens():
    tokens = ["[PAD]", "[UNK]", "play", "##ing", "Ġplay"]
    vocabulary = read_vocabulary(tokens, marks="wordpiece", padding="[PAD]")
    assert (vocabulary.tokens, vocabulary.marks) == (tuple(tokens), "wordpiece")
    assert vocabulary.spellings == ("[PAD]", "[UNK]", "play", None, "Ġplay")
    assert repr(vocabulary).endswith("num_reserved=2, marks='wordpiece')")
    for choice in ("auto", None):
        plain = read_vocabulary(tokens, marks=choice)
        assert (plain.spellings, plain.marks, plain.tokens) == (None, None, tuple(tokens))


def test_marks_are_kept_in_a_second_reading_and_can_be_dropped_or_changed():
    vocabulary = read_vocabulary(["▁play", "ing"], marks="metaspace")
    assert read_vocabulary(vocabulary) == vocabulary
    assert read_vocabulary(vocabulary, marks="metaspace") == vocabulary
    assert read_vocabulary(vocabulary, marks=None) == read_vocabulary(["▁play", "ing"])
    assert read_vocabulary(vocabulary, marks="wordpiece").spellings == ("▁play", "ing")


@pytest.mark.parametrize("marks", ["bert", "", 3, ["wordpiece"]])
def test_refused_marks(marks):
    names = '"wordpiece", "metaspace", "byte-level", "word-end"'
    with pytest.raises(VocabularyError, match=f'`marks` must be "auto", None or one of {names}. Received: '):
        read_vocabulary(["a"], marks=marks)


def test_ids_without_strings_have_no_marks():
    assert read_vocabulary(3, marks=None) == read_vocabulary(3)
    with pytest.raises(VocabularyError, match='`marks` must be "auto" or None for ids without strings'):
        read_vocabulary(3, marks="wordpiece")
