"""The frozen rows of a new split: those of a shared table, or copies of the rows that its ids use."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from splitembed.arrays import NO_ROW, aligned_empty, as_read_only
from splitembed.errors import SplitError
from splitembed.split.protocol import Ids, Mask, Remap, Rows, Split
from splitembed.tables.fingerprints import row_blocks
from splitembed.vectors import WordVectors

# Rows as `encode_rows` returns them, with their scale.
Stored = tuple[NDArray[Any], Rows | None]
# A function that returns rows by their numbers, and the numbers to gather.
Part = tuple[Callable[[Ids], NDArray[Any]], Ids]
_NO_IDS: Ids = np.empty(0, np.int64)


def number_rows(is_trainable: Mask) -> Remap:
    """Return the remap that numbers the rows of both tables in id order, one row per token.

    >>> number_rows(np.array([False, True, False])).tolist()
    [0, -1, 1]
    """
    frozen_row = np.cumsum(~is_trainable, dtype=np.int32) - 1
    return np.where(is_trainable, -np.cumsum(is_trainable, dtype=np.int32), frozen_row)


def used_rows(rows: NDArray[Any], num_rows: int) -> tuple[Ids, Ids]:
    """Return the distinct rows, and the new number of each row among them.

    >>> used, number_of = used_rows(np.array([4, 1, 4]), 5)
    >>> used.tolist(), number_of[[4, 1]].tolist()
    ([1, 4], [1, 0])

    Args:
        rows: integers `(num_ids,)`, `0 <= row < num_rows`.
        num_rows: number of rows in the table.

    Returns:
        int64 `(num_used,)`, ascending; and int64 `(num_rows,)`, undefined for rows that are not used.
    """
    is_used = np.zeros(num_rows, bool)
    is_used[rows] = True
    return np.flatnonzero(is_used), np.cumsum(is_used) - 1


def stack_rows(dim: int, dtype: DTypeLike, *parts: Part, num_zero: int = 0) -> NDArray[Any]:
    """Gather rows from several sources into one aligned array, about 4 MiB at a time.

    >>> rows = np.array([[1.0], [2.0], [3.0]])
    >>> stack_rows(1, np.float32, (rows.__getitem__, np.array([2, 0])), num_zero=1).tolist()
    [[3.0], [1.0], [0.0]]

    Args:
        dim: length of a row.
        dtype: of the result.
        parts: one for each source.
        num_zero: number of zero rows at the end.
    """
    ends = np.cumsum([0, *(len(numbers) for _, numbers in parts)])
    result = aligned_empty((int(ends[-1]) + num_zero, dim), dtype)
    for (take, numbers), start in zip(parts, ends[:-1].tolist(), strict=True):
        for block in row_blocks(len(numbers), result.itemsize * dim):
            result[start + block.start : start + block.stop] = take(numbers[block])
    result[len(result) - num_zero :] = 0
    return result


def rows_of_vectors(
    remap: Remap,
    words: Ids,
    vectors: WordVectors,
    zero_ids: Ids,
    *,
    split: Split | None = None,
    kept: Ids = _NO_IDS,
) -> dict[str, Any]:
    """Return the frozen parts of a split on pretrained vectors, and write their rows into the remap.

    A frozen.h5 is shared. From any other source the rows in use are copied, followed by one zero row for `zero_ids`.

    Args:
        remap: int32 `(num_tokens,)`; changed in place for ids with a word, for `kept` and for `zero_ids`.
        words: int64 `(num_tokens,)`, the index of each id's word in the vectors, or `NO_ROW`.
        vectors: the pretrained vectors.
        zero_ids: the padding id and ids without a token.
        split: the split whose rows the ids in `kept` have.
        kept: ids that keep their row of `split`; the table of the vectors is then copied, as it cannot be extended.

    Returns:
        The arguments `frozen`, `scale`, `frozen_dtype` and `table` of `SplitTable`, as far as they are set.

    Raises:
        SplitError: a shared table has no zero row, which `zero_ids` need.
    """
    ids = np.flatnonzero(words != NO_ROW)
    rows, table = vectors.rows(words[ids]), vectors.table
    if table is not None and not len(kept):
        remap[ids] = rows
        if len(zero_ids):
            remap[zero_ids] = zero_row_of(vectors)
        return {"frozen": table.vectors, "scale": table.scale, "frozen_dtype": table.dtype, "table": table}
    used, number_of = used_rows(rows, vectors.num_rows)
    remap[ids] = number_of[rows]
    if table is None and len(used) == vectors.num_rows and not len(zero_ids) and not len(kept):
        return {"frozen": vectors.matrix}
    parts: list[Part] = [(vectors.matrix.__getitem__ if table is None else table.take, used)]
    if split is not None and len(kept):
        _, first, number = np.unique(split.remap[kept], return_index=True, return_inverse=True)
        remap[kept] = len(used) + number
        parts.append((split.lookup, kept[first]))
    frozen = stack_rows(vectors.dim, np.float32, *parts, num_zero=int(len(zero_ids) > 0))
    remap[zero_ids] = len(frozen) - 1
    return {"frozen": frozen}


def zero_row_of(vectors: WordVectors) -> int:
    """Return the row of a shared frozen table that is zero and stands for padding and ids without a token.

    Raises:
        SplitError: the table has no such row.
    """
    if vectors.table is None or vectors.table.zero_row is None:
        raise SplitError(
            f"{vectors.source} has no zero row for the padding id or ids without a token, and no row can be added to a "
            "shared table. Convert the vectors with `save_frozen`, which adds a zero row; without such ids and with "
            "padding=None, none is needed."
        )
    return vectors.table.zero_row


def own_rows(split: Split, remap: Remap, added: Stored | None = None) -> dict[str, Any]:
    """Return the parts of a split with a new frozen table: the rows that a remap uses, and rows to add.

    Args:
        split: the split with the present rows.
        remap: `(num_tokens,)`; frozen rows from `split.num_frozen` on are the added ones.
        added: `(num_added, dim)` rows in the precision of the split, with their scale where it has one.

    Returns:
        The arguments `frozen`, `scale`, `frozen_dtype` and `remap` of `SplitTable`.
    """
    more, more_scale = added or (split.frozen[:0], None)
    is_frozen = remap >= 0
    used, number_of = used_rows(remap[is_frozen], split.num_frozen + len(more))
    old, new = used[used < split.num_frozen], used[used >= split.num_frozen] - split.num_frozen
    frozen = stack_rows(split.dim, split.frozen.dtype, (split.frozen.__getitem__, old), (more.__getitem__, new))
    scale = split.scale
    if scale is not None:
        scale = scale[old] if more_scale is None else joined(scale[old], more_scale[new])
    remap = remap.copy()
    remap[is_frozen] = number_of[remap[is_frozen]]
    return {"frozen": frozen, "scale": scale, "frozen_dtype": split.frozen_dtype, "remap": as_read_only(remap)}


def joined(first: Rows, second: Rows) -> Rows:
    """Return both arrays as one read-only array."""
    rows: Rows = as_read_only(np.concatenate([first, second]))
    return rows


def without_unused(remap: Remap, trainable: Rows) -> tuple[Remap, Rows]:
    """Drop the trainable rows that a remap does not use.

    >>> remap, trainable = without_unused(np.array([~2, 7, ~0]), np.array([[0.0], [1.0], [2.0]], np.float32))
    >>> remap.tolist(), trainable.tolist()
    ([-2, 7, -1], [[0.0], [2.0]])

    Returns:
        The remap with the new row numbers, and the remaining rows in their order; both read-only.
    """
    is_trained = remap < 0
    used, number_of = used_rows(~remap[is_trained], len(trainable))
    if len(used) == len(trainable):
        return as_read_only(remap), trainable
    remap = remap.copy()
    remap[is_trained] = ~number_of[~remap[is_trained]]
    return as_read_only(remap), as_read_only(trainable[used])
