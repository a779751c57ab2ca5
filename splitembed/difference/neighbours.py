"""The nearest frozen tokens of a row."""

import numpy as np
from numpy.typing import NDArray

from splitembed.split.table import SplitTable
from splitembed.tables.fingerprints import row_blocks

Ids = NDArray[np.int64]
Rows = NDArray[np.float32]


def nearest_frozen(split: SplitTable, rows: Rows, count: int, without: Ids) -> list[list[int]]:
    """Return for each row the frozen tokens whose rows have the largest cosine to it.

    Frozen rows are read a few MiB at a time. This takes `num_rows * num_frozen * dim` multiplications.

    >>> split = SplitTable([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 2], [])
    >>> nearest_frozen(split, np.array([[0.0, 2.0]], np.float32), 2, np.array([-1]))
    [[1, 2]]

    Args:
        split: the split whose frozen tokens are searched, except the padding id.
        rows: float32 `(num_rows, dim)`.
        count: the largest number of tokens to return for each row.
        without: `(num_rows,)`, for each row an id to leave out, such as its own, or -1.

    Returns:
        For each row the ids, the nearest first, equally near ones in id order. Rows that are zero or not finite have
        no neighbours, and are neighbours of no row.
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
        columns = np.argpartition(-cosines, count, axis=1)[:, :count]
        cosines, ids = np.take_along_axis(cosines, columns, 1), np.take_along_axis(ids, columns, 1)
    order = np.lexsort((ids, -cosines), axis=1)
    return np.take_along_axis(cosines, order, 1), np.take_along_axis(ids, order, 1)


def _unit(rows: Rows) -> Rows:
    """Return the rows scaled to length 1; NaN in place of a row that is zero or not finite."""
    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
        return np.where(np.isfinite(lengths) & (lengths > 0), rows / lengths, np.nan).astype(np.float32)
