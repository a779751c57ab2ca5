"""Suggestions for OOV tokens: the word that a fallback would match, else the word with the nearest spelling."""

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import load_library
from splitembed.matching.rules import read_rules, spellings_of
from splitembed.matching.spellings import RULES

MOST_EDITS = 3
# Distances held in memory at a time, one byte each.
NUM_DISTANCES = 1 << 22


class Suggestion(NamedTuple):
    """A word with a pretrained vector that an OOV token may stand for.

    Args:
        word: the word.
        fallback: the name of the fallback that would match it, if there is one.
    """

    word: str
    fallback: str | None = None


def suggest_words(tokens: Sequence[str], words: Sequence[str]) -> tuple[Suggestion | None, ...]:
    """Return for each token a similar word, or None.

    >>> suggest_words(["Usr", "teh", "zzzzz"], ["the", "of", "usr"])
    (Suggestion(word='usr', fallback='lower'), Suggestion(word='the', fallback=None), None)

    Spellings are compared case-insensitively by optimal string alignment: the number of letters inserted, deleted,
    replaced or swapped with their neighbour. At most 1 edit is allowed for tokens of up to 4 letters, 2 for up to 8,
    and 3 for longer ones. Among equally near words the first is returned, which is the most frequent one in files
    sorted by frequency.

    Args:
        tokens: OOV tokens.
        words: all words that have a vector.

    Raises:
        ImportError: rapidfuzz is missing.
    """
    load_rapidfuzz()
    by_fallback = _found_by_fallbacks(tokens, words)
    others = [token for token, found in zip(tokens, by_fallback, strict=True) if found is None]
    nearest = dict(zip(others, _nearest(others, words), strict=True))
    return tuple(nearest[token] if found is None else found for token, found in zip(tokens, by_fallback, strict=True))


def load_rapidfuzz() -> tuple[ModuleType, Any]:
    """Return rapidfuzz's `process` module and its optimal string alignment distance.

    Raises:
        ImportError: rapidfuzz is missing.
    """
    process, distance = (
        load_library(f"rapidfuzz.{name}", "The suggestion of words", "suggestions") for name in ("process", "distance")
    )
    return process, distance.OSA.distance


def _found_by_fallbacks(tokens: Sequence[str], words: Sequence[str]) -> list[Suggestion | None]:
    """Return for each token the word that the first successful named rule matches, or None."""
    rules = read_rules(list(RULES))
    tried = [[(each, rule.name) for rule in rules for each in spellings_of(rule, token)] for token in tokens]
    present = {each for spellings in tried for each, _ in spellings}.intersection(words)
    return [next((Suggestion(*each) for each in spellings if each[0] in present), None) for spellings in tried]


def _nearest(tokens: Sequence[str], words: Sequence[str]) -> list[Suggestion | None]:
    best = np.full(len(tokens), MOST_EDITS + 1)
    position = np.zeros(len(tokens), np.int64)
    for start, distances in _distances(tokens, words):
        nearest = distances.argmin(axis=1)
        distance = distances[np.arange(len(tokens)), nearest]
        closer = distance < best
        best[closer], position[closer] = distance[closer], start + nearest[closer]
    near_enough = best <= [_most_edits(token) for token in tokens]
    return [
        Suggestion(words[index]) if is_near else None
        for index, is_near in zip(position.tolist(), near_enough.tolist(), strict=True)
    ]


def _distances(tokens: Sequence[str], words: Sequence[str]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield `(num_tokens, num_words)` distances of each block of words, capped at MOST_EDITS + 1, and its start."""
    process, distance = load_rapidfuzz()
    queries = [token.lower() for token in tokens]
    num_words = max(1, NUM_DISTANCES // max(1, len(tokens)))
    for start in range(0, len(words) if queries else 0, num_words):
        choices = [word.lower() for word in words[start : start + num_words]]
        yield start, process.cdist(queries, choices, scorer=distance, score_cutoff=MOST_EDITS, dtype=np.uint8)


def _most_edits(token: str) -> int:
    return min(MOST_EDITS, 1 + (len(token) - 1) // 4)
