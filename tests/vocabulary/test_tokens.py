"""The checks that all sources share: text alone, text that files can hold, a token once."""

import pytest

from splitembed.errors import VocabularyError
from splitembed.vocabulary.found import Found, as_text, check_distinct, check_writable, with_defaults


@pytest.mark.parametrize(
    ("tokens", "given", "expected"),
    [
        (("", "a"), {}, Found(("", "a"), 0, None)),
        (("a", "", "[UNK]"), {}, Found(("a", "", "[UNK]"), None, 2)),
        (("", "[UNK]"), {"padding": 1, "unknown": 0}, Found(("", "[UNK]"), 1, 0)),
        (("a", "b"), {"slots": frozenset([1])}, Found(("a", "b"), None, None, frozenset([1]))),
    ],
)
def test_defaults_stand_in_for_what_a_source_leaves_open(tokens, given, expected):
    assert with_defaults(tokens, **given) == expected


def test_a_vocabulary_without_tokens_is_none():
    with pytest.raises(VocabularyError, match="The vocabulary is empty: at least one token is needed"):
        with_defaults(())


def test_text_is_kept_and_what_is_none_is_named_with_its_place():
    assert as_text(["a", ""]) == ("a", "")
    with pytest.raises(
        VocabularyError, match="Tokens must be str. Received: None of type NoneType at place 1; for ids"
    ):
        as_text(["a", None])


@pytest.mark.parametrize("token", ["\ud800", "a\udcc3\udca9"])
def test_text_that_would_not_come_back_is_refused(token):
    check_writable(["a", "\udcff", "é"])
    with pytest.raises(VocabularyError, match="The word "):
        check_writable(["a", token])


def test_a_token_twice_is_named_with_both_places():
    check_distinct(["a", "A", "á"], "id {}", first=0)
    with pytest.raises(VocabularyError, match="^line 4: the token 'b' again, first at 2. Remove one of them"):
        check_distinct(["a", "b", "c", "b", "b"], "line {}", first=1)
