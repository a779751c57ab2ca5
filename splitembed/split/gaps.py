"""Ids without a token, which share one frozen zero row."""

import numpy as np

from splitembed.split.protocol import Ids, Split
from splitembed.vocabulary.word_index import is_placeholder


def gap_ids(split: Split) -> Ids:
    """Return the ids of a split without a token: placeholders and blank lines with a frozen zero row, not padding.

    >>> from splitembed import SplitTable
    >>> gap_ids(SplitTable([[0.0], [2.0]], [1, 0], [], vocabulary=["a", "[no token 1]"])).tolist()
    [1]

    Returns:
        int64 `(num_gaps,)`, ascending; empty where ids have no strings.
    """
    named = (token_id for token_id, token in enumerate(split.vocabulary or ()) if not token or is_placeholder(token))
    ids = np.fromiter(named, np.int64)
    ids = ids[(split.remap[ids] >= 0) & (ids != split.padding)]
    rows, number = np.unique(split.remap[ids], return_inverse=True)
    gaps: Ids = ids[~split.frozen[rows].any(axis=1)[number]]
    return gaps


def zero_ids(padding: int | None, gaps: Ids) -> Ids:
    """Return the ids whose row is zero and frozen: padding and the ids without a token.

    >>> zero_ids(0, np.array([3])).tolist(), zero_ids(None, np.array([3])).tolist()
    ([0, 3], [3])
    """
    return gaps if padding is None else np.append(np.int64(padding), gaps)
