"""Align counts of tokens with a vocabulary."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed.errors import VocabularyError
from splitembed.vocabulary.labels import labels_of
from splitembed.vocabulary.vocabulary import Vocabulary


def align_counts(
    counts: Mapping[str, float] | ArrayLike, vocabulary: Vocabulary
) -> NDArray[np.int64] | NDArray[np.float64]:
    """Return the counts of tokens in id order.

    >>> from collections import Counter
    >>> from splitembed.vocabulary import read_vocabulary
    >>> align_counts(Counter("a rose is a rose".split()), read_vocabulary(["a", "rose", "sky"]))
    array([2, 2, 0])

    Args:
        counts: a dict (or a `Counter`, or a pandas Series) token -> count, where missing tokens count 0 and tokens
            outside the vocabulary are ignored; or an array `(num_tokens,)` in id order. Integers as keys are tokens,
            and need a vocabulary of integers.
        vocabulary: the tokens.

    Returns:
        `(num_tokens,)`, int64 for integer counts and float64 for weights.

    Raises:
        VocabularyError: counts are negative, not finite, not numbers, of another length, or not by token.
    """
    if isinstance(counts, str):
        raise VocabularyError(
            f"`counts` must be a dict token -> count, or an array in id order. Received: {counts!r}. Count the tokens "
            "of a text with collections.Counter."
        )
    # The index of a Series in id order only numbers the counts.
    in_order = hasattr(counts, "iloc") and labels_of(counts) is None
    table = counts.to_dict() if hasattr(counts, "to_dict") and not in_order else counts
    array = np.asarray(_counts_by_token(table, vocabulary) if isinstance(table, Mapping) else table)
    if array.shape != (vocabulary.num_tokens,):
        raise VocabularyError(
            f"`counts` must have one count for each of the {vocabulary.num_tokens} tokens. "
            f"Received: shape {array.shape}."
        )
    if array.dtype.kind not in "iuf" or (array.dtype.kind == "u" and array.max() > np.iinfo(np.int64).max):
        raise VocabularyError(f"`counts` must be numbers that int64 or float64 hold. Received: dtype {array.dtype}.")
    wrong = ~np.isfinite(array) | (array < 0)
    if wrong.any():
        index = int(np.argmax(wrong))
        token = vocabulary.tokens[index]
        raise VocabularyError(f"The count of token {token!r} (id {index}) must be 0 or more. Received: {array[index]}.")
    _check_sum(array)
    return array.astype(np.float64) if array.dtype.kind == "f" else array.astype(np.int64)


def _check_sum(array: NDArray[Any]) -> None:
    """Raise an error for counts whose sum overflows, because reports add them up."""
    limit = np.inf if array.dtype.kind == "f" else 2.0**63
    with np.errstate(over="ignore"):
        total = array.sum(dtype=np.float64)
    if total >= limit:
        raise VocabularyError(
            f"The sum of `counts` must be below {limit:g}, for {array.dtype}. Received: about {total:g}. Divide them."
        )


def _counts_by_token(counts: Mapping[Any, Any], vocabulary: Vocabulary) -> list[Any]:
    kinds = set(map(type, counts))
    if kinds and all(issubclass(kind, (int, np.integer)) for kind in kinds) and _are_integers(vocabulary):
        counts = {str(int(token)): count for token, count in counts.items()}
    for key_type in set(map(type, counts)):
        if not issubclass(key_type, str):
            raise VocabularyError(
                f"`counts` must have tokens (str) as keys. Received: keys of type {key_type.__name__}. "
                "Pass counts by id as an array in id order."
            )
    if counts and not any(map(counts.__contains__, vocabulary.tokens)):
        raise VocabularyError(
            f"`counts` must hold tokens of the vocabulary. Received: {len(counts)} other tokens, such as "
            f"{next(iter(counts))!r}. Count tokens as the vocabulary spells them."
        )
    return [counts.get(token, 0) for token in vocabulary.tokens]


def _are_integers(vocabulary: Vocabulary) -> bool:
    words = itertools.compress(vocabulary.tokens, vocabulary.is_ordinary.tolist())
    return all(word.removeprefix("-").isdecimal() for word in words)
