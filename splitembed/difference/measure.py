"""Measurement of the rows that moved between two splits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import NO_ROW
from splitembed.difference.moved import Difference, Ids, MovedRow, Name, Numbers
from splitembed.difference.neighbours import nearest_frozen
from splitembed.errors import SplitError
from splitembed.split.table import SplitTable, split_of
from splitembed.split.thaw_freeze import ids_before
from splitembed.tables.fingerprints import row_blocks


def diff(before: Any, after: Any, top: int = 20, nearest: int = 3) -> Difference:
    """Return the rows that moved between two splits, how far, and their nearest frozen tokens before and after.

    >>> before = SplitTable([[1.0, 0.0], [0.0, 1.0]], [0, 1, ~0], [[2.0, 0.1]], vocabulary=["red", "sky", "usr"])
    >>> print(diff(before, before.with_trainable([[0.0, 3.0]]), nearest=1))
    1 of 3 rows moved
    token  distance  cosine  norm before  norm after  nearest before  nearest after
    usr       3.523   0.050        2.002       3.000  red             sky

    Tokens are compared by name if both splits have a vocabulary, else by id. Frozen rows that the splits share are not
    read; the others are read a few MiB at a time.

    Args:
        before: a `SplitTable`, or a layer that has one.
        after: another split of the same dim, such as the same split after training.
        top: number of moved rows to describe, the farthest first.
        nearest: number of nearest frozen tokens of each described row; finding them reads all frozen rows of both
            splits.

    Raises:
        SplitError: the splits have different dims, or `top` or `nearest` is negative.
    """
    old, new = split_of(before, "before"), split_of(after, "after")
    if old.dim != new.dim:
        raise SplitError(f"`before` and `after` must have the same dim. Received: dims {old.dim} and {new.dim}.")
    if top < 0 or nearest < 0:
        raise SplitError(f"`top` and `nearest` must be 0 or more. Received: top={top}, nearest={nearest}.")
    old_ids = ids_before(old, new, np.arange(new.num_tokens))
    common = np.flatnonzero(old_ids != NO_ROW)
    pairs = common[~_share_frozen_row(old, new, old_ids[common], common)]
    measured = _measure(old, new, old_ids[pairs], pairs)
    moved = np.flatnonzero(measured[0] != 0)
    farthest = moved[np.argsort(-np.nan_to_num(measured[0][moved], nan=np.inf, posinf=np.inf), kind="stable")]
    ids, numbers = pairs[farthest], measured[:, farthest]
    return Difference(
        _described(old, new, old_ids[ids[:top]], ids[:top], numbers[:, :top], nearest),
        num_common=len(common),
        num_added=new.num_tokens - len(common),
        num_dropped=old.num_tokens - len(np.unique(old_ids[common])),
        ids=ids,
        distances=numbers[0],
        cosines=numbers[1],
    )


def _share_frozen_row(old: SplitTable, new: SplitTable, old_ids: Ids, new_ids: Ids) -> NDArray[np.bool_]:
    """Return for each pair of ids whether both have the same row of the same frozen table."""
    tables = old.table, new.table
    is_same_file = None not in tables and tables[0].fingerprint == tables[1].fingerprint  # type: ignore[union-attr]
    if old.frozen is not new.frozen and not is_same_file:
        return np.zeros(len(new_ids), bool)
    rows = new.remap[new_ids]
    is_shared: NDArray[np.bool_] = (rows >= 0) & (rows == old.remap[old_ids])
    return is_shared


def _measure(old: SplitTable, new: SplitTable, old_ids: Ids, new_ids: Ids) -> Numbers:
    """Return `(4, num_pairs)`: distance, cosine, old norm and new norm; the distance of equal rows is 0."""
    result = np.empty((4, len(new_ids)))
    for block in row_blocks(len(new_ids), 8 * new.dim):
        first, second = old.lookup(old_ids[block]), new.lookup(new_ids[block])
        # As bits, because NaN does not equal itself.
        is_same = (first.view(np.uint32) == second.view(np.uint32)).all(axis=1)
        a, b = first.astype(np.float64), second.astype(np.float64)
        with np.errstate(all="ignore"):
            norms = np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)
            result[0, block] = np.where(is_same, 0, np.linalg.norm(b - a, axis=1))
            result[1, block] = (a * b).sum(axis=1) / (norms[0] * norms[1])
        result[2:, block] = norms
    return result


def _described(
    old: SplitTable, new: SplitTable, old_ids: Ids, new_ids: Ids, numbers: Numbers, nearest: int
) -> tuple[MovedRow, ...]:
    near_old = nearest_frozen(old, old.lookup(old_ids), nearest, old_ids)
    near_new = nearest_frozen(new, new.lookup(new_ids), nearest, new_ids)
    rows = []
    for index, (distance, cosine, norm_old, norm_new) in enumerate(numbers.T.tolist()):
        near = _names(old, near_old[index]), _names(new, near_new[index])
        rows.append(MovedRow(_names(new, [int(new_ids[index])])[0], distance, cosine, norm_old, norm_new, *near))
    return tuple(rows)


def _names(split: SplitTable, ids: list[int]) -> tuple[Name, ...]:
    return tuple(ids) if split.vocabulary is None else tuple(map(split.vocabulary.__getitem__, ids))
