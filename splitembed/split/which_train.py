"""Which tokens train although they are known, and which share the row of [UNK]: counts enter, masks leave."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import is_count
from splitembed.errors import SplitError
from splitembed.vocabulary import Vocabulary

Mask = NDArray[np.bool_]  # (num_tokens,)
Counts = NDArray[Any] | None  # (num_tokens,)


def chosen_tokens(
    tokens: Vocabulary, is_known: Mask, counts: Counts, trainable_tokens: Any, train_most_frequent: int
) -> Mask:
    """Marks the tokens that were asked to train, known or not.

    >>> from splitembed.vocabulary import read_vocabulary
    >>> vocabulary, known = read_vocabulary(["the", "of", "usr"]), np.array([True, True, False])
    >>> chosen_tokens(vocabulary, known, np.array([9, 4, 7]), ["of"], 1).tolist()
    [True, True, False]

    Args:
        tokens: the vocabulary.
        is_known: whether a token has a pretrained vector.
        counts: how often each token occurs, or None.
        trainable_tokens: tokens, ids or a mask.
        train_most_frequent: how many of the most frequent known tokens.

    Raises:
        SplitError: the padding id is named, a negative number, or counts are missing.
        TokenIdError, UnknownTokenError: `trainable_tokens` names what the vocabulary does not hold.
    """
    chosen = np.zeros(tokens.num_tokens, bool)
    chosen[tokens.ids(trainable_tokens)] = True
    if tokens.padding is not None and chosen[tokens.padding]:
        raise SplitError(f"`trainable_tokens` names the padding id {tokens.padding}, whose row is zero and frozen.")
    if not is_count(train_most_frequent, 0):
        raise SplitError(f"`train_most_frequent` must be an integer, 0 or more. Received: {train_most_frequent}.")
    if train_most_frequent:
        candidates = np.flatnonzero(is_known)
        order = np.argsort(-_needed(counts, "train_most_frequent")[candidates], kind="stable")
        chosen[candidates[order[:train_most_frequent]]] = True
    return chosen


def rare_tokens(tokens: Vocabulary, is_known: Mask, counts: Counts, min_count: float) -> Mask:
    """Marks the OOV tokens that are too rare for a row of their own.

    >>> from splitembed.vocabulary import read_vocabulary
    >>> vocabulary, known = read_vocabulary(["[UNK]", "of", "usr"]), np.array([False, True, False])
    >>> rare_tokens(vocabulary, known, np.array([0, 1, 1]), min_count=2).tolist()
    [False, False, True]

    Args:
        tokens: the vocabulary.
        is_known: whether a token has a pretrained vector.
        counts: how often each token occurs, or None.
        min_count: OOV tokens that occur less often are rare; 1 or less makes none rare.

    Raises:
        SplitError: counts are missing, or there is no `[UNK]` whose row rare tokens could share.
    """
    if not isinstance(min_count, (int, float, np.number)):
        raise SplitError(f"`min_count` must be a number. Received: {min_count!r}.")
    if min_count <= 1:
        return np.zeros(tokens.num_tokens, bool)
    rare: Mask = ~is_known & tokens.is_ordinary & (_needed(counts, "min_count") < min_count)
    if rare.any() and tokens.unknown is None:
        raise SplitError(
            f"`min_count`={min_count} makes {np.count_nonzero(rare)} rare tokens share the row of [UNK], but the "
            f"vocabulary has none: add it, or name the token that plays its part with `unknown`."
        )
    return rare


def _needed(counts: Counts, option: str) -> NDArray[Any]:
    if counts is None:
        raise SplitError(f"`{option}` needs `counts`: how often each token occurs.")
    return counts
