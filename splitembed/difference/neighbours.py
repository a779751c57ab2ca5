"""The frozen words beside a row: rows and a split go in; the ids of its nearest frozen tokens leave."""

import numpy as np
from numpy.typing import NDArray

from splitembed.split.table import SplitTable
from splitembed.tables.fingerprints import row_blocks

Ids = NDArray[np.int64]
Rows = NDArray[np.float32]


def nearest_frozen(split: SplitTable, rows: Rows, count: int, without: Ids) -> list[list[int]]:
    """Finds the frozen tokens whose rows have the largest cosine to each of some rows.

    Frozen rows are read a few MiB at a time; the time is that of `num_rows * num_frozen * dim` multiplications.

    >>> split = SplitTable([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 2], [])
    >>> nearest_frozen(split, np.array([[0.0, 2.0]], np.float32), 2, np.array([-1]))
    [[1, 2]]

    Args:
        split: its frozen tokens are looked at, all but the padding id.
        rows: float32 `(num_rows, dim)`.
        count: how many to find for each row, at most.
        without: `(num_rows,)`, for each row an id that is not to be found, such as its own, or -1.

    Returns:
        For each row the ids, the nearest first, equal ones in id order. Rows that are zero or not finite have no
        direction: they are near to none, and none to them.
    """
    if not count:
        return [[] for _ in rows]
    wanted = _unit(rows)
    ids = np.empty((len(rows), 0), np.int64)
    cosines = np.empty((len(rows), 0), np.float32)
    is_frozen = split.remap >= 0
    if split.padding is not None:
        is_frozen[split.padding] = False
    frozen = np.flatnonzero(is_frozen)
    for block in row_blocks(len(frozen), rows.itemsize * split.dim):
        found = wanted @ _unit(split.lookup(frozen[block])).T
        found[np.isnan(found) | (without[:, None] == frozen[None, block])] = -np.inf
        cosines = np.concatenate([cosines, found], axis=1)
        ids = np.concatenate([ids, np.broadcast_to(frozen[block], found.shape)], axis=1)
        cosines, ids = _best(cosines, ids, count)
    return [row[near > -np.inf].tolist() for row, near in zip(ids, cosines, strict=True)]


def _best(cosines: Rows, ids: Ids, count: int) -> tuple[Rows, Ids]:
    if count < cosines.shape[1]:
        places = np.argpartition(-cosines, count, axis=1)[:, :count]
        cosines, ids = np.take_along_axis(cosines, places, 1), np.take_along_axis(ids, places, 1)
    order = np.lexsort((ids, -cosines), axis=1)
    return np.take_along_axis(cosines, order, 1), np.take_along_axis(ids, order, 1)


def _unit(rows: Rows) -> Rows:
    """Rows of length 1; of a zero row or one that is not finite NaN, so that its cosines are."""
    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
        return np.where(np.isfinite(lengths) & (lengths > 0), rows / lengths, np.nan).astype(np.float32)
