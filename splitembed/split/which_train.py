"""Choice of the known tokens that train, and of the rare tokens that share the row of `[UNK]`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import is_count
from splitembed.errors import SplitError
from splitembed.vocabulary import Vocabulary

# Both have shape (num_tokens,).
Mask = NDArray[np.bool_]
Counts = NDArray[Any] | None


def chosen_tokens(
    tokens: Vocabulary, is_known: Mask, counts: Counts, trainable_tokens: Any, train_most_frequent: int
) -> Mask:
    """Return a mask of the tokens chosen to train, known or not.

    >>> from splitembed.vocabulary import read_vocabulary
    >>> vocabulary, known = read_vocabulary(["the", "of", "usr"]), np.array([True, True, False])
    >>> chosen_tokens(vocabulary, known, np.array([9, 4, 7]), ["of"], 1).tolist()
    [True, True, False]

    Args:
        tokens: the vocabulary.
        is_known: whether a token has a pretrained vector.
        counts: the frequency of each token, or None.
        trainable_tokens: tokens, ids or a mask.
        train_most_frequent: number of the most frequent known tokens that train too.

    Raises:
        SplitError: the padding id is named, the number is negative, or counts are missing.
        TokenIdError, UnknownTokenError: `trainable_tokens` names an id or token outside the vocabulary.
    """
    chosen = np.zeros(tokens.num_tokens, bool)
    chosen[tokens.ids(trainable_tokens)] = True
    if tokens.padding is not None and chosen[tokens.padding]:
        raise SplitError(
            f"`trainable_tokens` names the padding id {tokens.padding}, whose row is always zero. Leave it out."
        )
    if not is_count(train_most_frequent, 0):
        raise SplitError(f"`train_most_frequent` must be an integer, 0 or more. Received: {train_most_frequent}.")
    if train_most_frequent:
        candidates = np.flatnonzero(is_known)
        order = np.argsort(-_needed(counts, "train_most_frequent")[candidates], kind="stable")
        chosen[candidates[order[:train_most_frequent]]] = True
    return chosen


def rare_tokens(tokens: Vocabulary, is_known: Mask, counts: Counts, min_count: float) -> Mask:
    """Return a mask of the OOV tokens that are too rare for a trainable row each.

    >>> from splitembed.vocabulary import read_vocabulary
    >>> vocabulary, known = read_vocabulary(["[UNK]", "of", "usr"]), np.array([False, True, False])
    >>> rare_tokens(vocabulary, known, np.array([0, 1, 1]), min_count=2).tolist()
    [False, False, True]

    Args:
        tokens: the vocabulary.
        is_known: whether a token has a pretrained vector.
        counts: the frequency of each token, or None.
        min_count: OOV tokens with a lower frequency are rare; with 1 or less, none are.

    Raises:
        SplitError: counts are missing, or the vocabulary has no `[UNK]` whose row rare tokens could share.
    """
    if not isinstance(min_count, (int, float, np.number)):
        raise SplitError(f"`min_count` must be a number. Received: {min_count!r}.")
    if min_count <= 1:
        return np.zeros(tokens.num_tokens, bool)
    rare: Mask = ~is_known & tokens.is_ordinary & (_needed(counts, "min_count") < min_count)
    if rare.any() and tokens.unknown is None:
        raise SplitError(
            f"`min_count`={min_count} makes {np.count_nonzero(rare)} rare tokens share the row of [UNK], but the "
            f"vocabulary has no [UNK]. Add it, or name another token for it with `unknown`."
        )
    return rare


def _needed(counts: Counts, option: str) -> NDArray[Any]:
    if counts is None:
        raise SplitError(f"`{option}` needs `counts`, the frequency of each token.")
    return counts
