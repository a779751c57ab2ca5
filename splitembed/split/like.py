"""The first rows of tokens that start as the mean of the rows of other tokens: a description, or another spelling."""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from splitembed.errors import SplitError
from splitembed.split.protocol import Split

AnySplit = TypeVar("AnySplit", bound=Split)


def start_like(split: AnySplit, like: Mapping[Any, Any] | None) -> AnySplit:
    """Return the split in which the rows of some tokens are the mean of the present rows of others.

    Args:
        split: a split.
        like: for a token or an id, the tokens or ids, at least one, of whose rows it gets the mean. A row of several
            occurrences counts that often.

    Raises:
        SplitError: not such a dict, a token whose row is frozen or shared, or no token to start like.
        UnknownTokenError, TokenIdError: a token or an id that the split does not have.
    """
    if like is None:
        return split
    if not isinstance(like, Mapping):
        raise SplitError(f"`like` must be a dict from a token to other tokens. Received: {type(like).__name__}.")
    rows, num_ids = split.trainable.copy(), np.bincount(~split.remap[split.remap < 0], minlength=split.num_trainable)
    for token, others in like.items():
        row = ~int(split.remap[split.ids([token])[0]])
        if row < 0 or num_ids[row] > 1:
            raise SplitError(
                f"`like` must name tokens with a trainable row of their own. Received: {token!r}, whose row "
                f"{'is frozen' if row < 0 else 'is shared with other tokens'}."
            )
        ids = split.ids(others)
        if not len(ids):
            raise SplitError(f"`like` must name at least one token for {token!r}. Received: {others!r}.")
        rows[row] = split.lookup(ids).mean(axis=0)
    return split.with_trainable(rows)
