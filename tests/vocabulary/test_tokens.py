"""Lists of tokens, ids without strings, and the checks that all sources share."""

import enum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import TokenIdError, UnknownTokenError, VocabularyError
from splitembed.vocabulary import read_vocabulary
from splitembed.vocabulary.tokens import SourceTokens, as_text, check_distinct, check_writable, with_defaults
from splitembed.words import Words, pack_words

TOKENS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=1, max_size=12, unique=True)


class Spelling(str, enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("tokens", "given", "expected"),
    [
        (("", "a"), {}, SourceTokens(("", "a"), 0, None)),
        (("a", "", "[UNK]"), {}, SourceTokens(("a", "", "[UNK]"), None, 2)),
        (("", "[UNK]"), {"padding": 1, "unknown": 0}, SourceTokens(("", "[UNK]"), 1, 0)),
        (("a", "b"), {"slots": frozenset([1])}, SourceTokens(("a", "b"), None, None, frozenset([1]))),
    ],
)
def test_defaults_of_padding_and_unknown(tokens, given, expected):
    assert with_defaults(tokens, **given) == expected


def test_an_empty_vocabulary_is_refused():
    with pytest.raises(VocabularyError, match="The vocabulary is empty. Pass at least one token"):
        with_defaults(())


def test_integers_are_tokens():
    assert as_text(["a", "", 1001, np.int64(-7)]) == ("a", "", "1001", "-7")
    assert read_vocabulary(np.array([1001, 1002])).tokens == ("1001", "1002")
    assert read_vocabulary({1001: 1, 1002: 2}).tokens == ("", "1001", "1002")
    with pytest.raises(VocabularyError, match="found the token '7' of id 0 again"):
        read_vocabulary([7, "7"])


@pytest.mark.parametrize("token", [None, 1.5, True, np.True_])
def test_other_types_are_not_tokens(token):
    with pytest.raises(VocabularyError, match=r"Tokens must be str or int. Received: .* at position 1\."):
        as_text(["a", token])


@pytest.mark.parametrize("token", ["\ud800", "a\udcc3\udca9"])
def test_text_that_cannot_be_saved_is_refused(token):
    check_writable(["a", "\udcff", "é"])
    with pytest.raises(VocabularyError, match="The word "):
        check_writable(["a", token])


def test_a_duplicate_is_named_with_both_positions():
    check_distinct(["a", "A", "á"], "id", first=0)
    with pytest.raises(VocabularyError, match="^{}, line 4: found the token 'b' of line 2 again; .* Remove one"):
        check_distinct(["a", "b", "c", "b", "b"], "line", first=1, source="{}, ")


@given(TOKENS)
def test_row_i_of_a_list_belongs_to_token_i(tokens):
    vocabulary = read_vocabulary(tokens)
    assert vocabulary.tokens == tuple(tokens)
    assert vocabulary.num_tokens == len(tokens)
    assert [vocabulary.index[token] for token in tokens] == list(range(len(tokens)))
    assert vocabulary.ids(tokens).tolist() == list(range(len(tokens)))


@pytest.mark.parametrize(
    "source",
    [
        ["red", "sky"],
        ("red", "sky"),
        np.array(["red", "sky"]),
        np.array(["red", "sky"], object),
        [np.str_("red"), "sky"],
        [Spelling.RED, "sky"],
        Words.from_arrays(*pack_words(["red", "sky"])),
    ],
)
def test_every_kind_of_list_gives_plain_strings(source):
    tokens = read_vocabulary(source).tokens
    assert tokens == ("red", "sky")
    assert {type(token) for token in tokens} == {str}


def test_Y4_lookalikes_of_unknown_are_ordinary_words():
    vocabulary = read_vocabulary(["unk", "<unk>", "UNK", "[unk]"])
    assert (vocabulary.padding, vocabulary.unknown, vocabulary.reserved) == (None, None, frozenset())


def test_empty_string_is_padding_only_in_front():
    assert read_vocabulary(["a", ""]).padding is None


# Ids without strings


@pytest.mark.parametrize("source", [3, np.int32(3), np.uint8(3), range(3), range(0, 3, 1)])
def test_ids_without_strings(source):
    vocabulary = read_vocabulary(source)
    assert (vocabulary.num_tokens, vocabulary.tokens) == (3, ("0", "1", "2"))
    assert (vocabulary.padding, vocabulary.unknown, vocabulary.reserved) == (None, None, frozenset())
    assert not vocabulary.has_strings
    assert read_vocabulary(vocabulary) == vocabulary
    assert vocabulary.ids([2, 0]).tolist() == [2, 0]
    assert vocabulary.ids(np.array([False, True, True])).tolist() == [1, 2]


def test_padding_and_unknown_of_ids_without_strings():
    vocabulary = read_vocabulary(3, padding=0, unknown=2)
    assert (vocabulary.padding, vocabulary.unknown, vocabulary.reserved) == (0, 2, {0, 2})
    with pytest.raises(TokenIdError, match="Token id 3 is out of range"):
        read_vocabulary(3, padding=3)
    with pytest.raises(UnknownTokenError, match="Token '0' cannot be looked up, because there is no vocabulary"):
        read_vocabulary(3, padding="0")


def test_digits_are_not_tokens_of_ids_without_strings():
    assert read_vocabulary(["0", "1"]).ids(["1"]).tolist() == [1]
    with pytest.raises(UnknownTokenError, match="Token '1' cannot be looked up, because there is no vocabulary"):
        read_vocabulary(2).ids(["1"])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (0, "The number of ids must be from 1 to 2147483647. Received: 0"),
        (-3, "Received: -3"),
        (2**31, "Received: 2147483648"),
        (10**30, "Received: 1000"),
        (range(0), "The number of ids must be from 1 to"),
        (range(10**30), "The number of ids must be from 1 to"),
        (range(1, 4), r"a range that starts at 0, with step 1. Received: range\(1, 4\)"),
        (range(0, 4, 2), r"Received: range\(0, 4, 2\)"),
        (range(3, 0, -1), r"Received: range\(3, 0, -1\)"),
    ],
)
def test_refused_ids_without_strings(source, message):
    with pytest.raises(VocabularyError, match=message):
        read_vocabulary(source)
