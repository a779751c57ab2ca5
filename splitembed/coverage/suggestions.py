"""What a token without a vector may mean: tokens and all words that have one enter; the likeliest word for each leaves.

A word that a fallback would have found comes first, else the nearest spelling, by rapidfuzz.
"""

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.coverage.records import Suggestion
from splitembed.matching.rules import read_rules, spellings_of
from splitembed.matching.spellings import RULES

MOST_EDITS = 3
NUM_DISTANCES = 1 << 22  # that are held at once, a byte each


def suggest_words(tokens: Sequence[str], words: Sequence[str]) -> tuple[Suggestion | None, ...]:
    """Finds for each token the word that it may stand for.

    >>> suggest_words(["Usr", "teh", "zzzzz"], ["the", "of", "usr"])
    (Suggestion(word='usr', fallback='lower'), Suggestion(word='the', fallback=None), None)

    Spellings are compared without regard to case, by the number of letters put in, left out, changed or swapped with
    their neighbour (optimal string alignment): 1 for tokens of up to 4 letters, 2 up to 8, 3 beyond. Of words that are
    equally near the first counts, which is the most frequent one in files that are sorted so.

    Args:
        tokens: a few.
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
    """Gives rapidfuzz's `process` and its distance by optimal string alignment.

    Raises:
        ImportError: it is missing; the message says how to install it.
    """
    try:
        from rapidfuzz import process
        from rapidfuzz.distance import OSA
    except ImportError as error:
        raise ImportError(
            "Suggestions are made by the library rapidfuzz, which is missing: "
            f'pip install "splitembed[suggestions]". ({error})',
            name="rapidfuzz",
        ) from error
    return process, OSA.distance


def _found_by_fallbacks(tokens: Sequence[str], words: Sequence[str]) -> list[Suggestion | None]:
    """What the first of the named rules that finds a word would match, for each token."""
    rules = read_rules(list(RULES))
    tried = [[(each, rule.name) for rule in rules for each in spellings_of(rule, token)] for token in tokens]
    present = {each for spellings in tried for each, _ in spellings}.intersection(words)
    return [next((Suggestion(*each) for each in spellings if each[0] in present), None) for spellings in tried]


def _nearest(tokens: Sequence[str], words: Sequence[str]) -> list[Suggestion | None]:
    best = np.full(len(tokens), MOST_EDITS + 1)
    place = np.zeros(len(tokens), np.int64)
    for start, distances in _distances(tokens, words):
        nearest = distances.argmin(axis=1)
        distance = distances[np.arange(len(tokens)), nearest]
        closer = distance < best
        best[closer], place[closer] = distance[closer], start + nearest[closer]
    near_enough = best <= [_most_edits(token) for token in tokens]
    return [
        Suggestion(words[at]) if near else None for at, near in zip(place.tolist(), near_enough.tolist(), strict=True)
    ]


def _distances(tokens: Sequence[str], words: Sequence[str]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """`(num_tokens, num_words)` distances of some words from a place on; more than MOST_EDITS are one more."""
    process, distance = load_rapidfuzz()
    queries = [token.lower() for token in tokens]
    num_words = max(1, NUM_DISTANCES // max(1, len(tokens)))
    for start in range(0, len(words) if queries else 0, num_words):
        choices = [word.lower() for word in words[start : start + num_words]]
        yield start, process.cdist(queries, choices, scorer=distance, score_cutoff=MOST_EDITS, dtype=np.uint8)


def _most_edits(token: str) -> int:
    return min(MOST_EDITS, 1 + (len(token) - 1) // 4)
