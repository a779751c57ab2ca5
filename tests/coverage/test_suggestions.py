"""Suggestions compared with a plain search by dynamic programming."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.coverage import suggestions
from splitembed.coverage.suggestions import Suggestion, suggest_words

pytest.importorskip("rapidfuzz")


def words_for(tokens, words):
    return [found and found.word for found in suggest_words(tokens, words)]


@pytest.mark.parametrize(
    ("token", "word"),
    [
        ("teh", "the"),
        ("recieve", "receive"),
        ("qqq", None),
        ("a", None),
    ],
)
def test_the_word_of_a_misspelled_token_is_suggested(token, word):
    assert words_for([token], ["the", "word", "receive", "definitely"]) == [word]


def test_the_fallback_that_would_match_is_named():
    found = suggest_words(["Usr", "Café", "co-op", "usrr"], ["usr", "café", "cafe", "coop"])
    assert found == (
        Suggestion("usr", "lower"),
        Suggestion("café", "lower"),
        Suggestion("coop", "hyphens"),
        Suggestion("usr"),
    )


def test_a_fallback_comes_before_a_nearer_spelling():
    assert suggest_words(["1990"], ["1991", "0000"]) == (Suggestion("0000", "digits-0"),)


def test_the_first_of_equally_near_words_counts():
    assert words_for(["cut"], ["cat", "cot", "CUB"]) == ["cat"]
    assert words_for(["cut"], ["cot", "cat"]) == ["cot"]
    assert words_for(["abcdef"], ["abcdxy", "abcdxf"]) == ["abcdxf"]


@pytest.mark.parametrize(("tokens", "words"), [([], ["a"]), (["ab"], []), ([], [])])
def test_without_tokens_or_words_nothing_is_suggested(tokens, words):
    assert suggest_words(tokens, words) == (None,) * len(tokens)


def plain_distance(left, right):
    """Return the optimal string alignment distance by its recurrence.

    Source: Boytsov, "Indexing methods for approximate dictionary searching", JEA 2011.
    """
    table = np.add.outer(np.arange(len(left) + 1), np.arange(len(right) + 1))
    for i in range(1, len(left) + 1):
        for j in range(1, len(right) + 1):
            change = table[i - 1, j - 1] + (left[i - 1] != right[j - 1])
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, change)
            if min(i, j) > 1 and left[i - 2 : i] == right[j - 2 : j][::-1]:
                table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return int(table[-1, -1])


def plain_nearest(token, words):
    limit = 1 if len(token) <= 4 else 2 if len(token) <= 8 else 3
    distances = [plain_distance(token.lower(), word.lower()) for word in words]
    return words[int(np.argmin(distances))] if distances and min(distances) <= limit else None


SPELLINGS = st.text(st.sampled_from("abcA"), min_size=1, max_size=10)


@given(st.lists(SPELLINGS, min_size=1, max_size=4, unique=True), st.lists(SPELLINGS, max_size=12), st.integers(1, 20))
def test_the_nearest_word_is_that_of_a_plain_search_for_any_block_size(tokens, words, num_distances):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suggestions, "NUM_DISTANCES", num_distances)
        found = suggest_words(tokens, words)
    for token, suggestion in zip(tokens, found, strict=True):
        if suggestion is None or suggestion.fallback is None:
            assert (suggestion and suggestion.word) == plain_nearest(token, words)


def test_a_missing_rapidfuzz_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidfuzz.process", None)
    with pytest.raises(ImportError, match=r'needs the library rapidfuzz, .*pip install "splitembed\[suggestions\]"'):
        suggest_words(["teh"], ["the"])
