"""Thawing, freezing, compacting and shrinking a split, and the mapping of its trainable rows.

Trainable rows that remain keep their order, and new ones follow them, so that an optimizer's slots can be carried over.
"""

import itertools
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed import tables
from splitembed.arrays import NO_ROW, as_read_only
from splitembed.errors import SplitError
from splitembed.split.frozen_rows import Stored, joined, own_rows, used_rows, without_unused
from splitembed.split.protocol import Ids, Mask, Rows, Split
from splitembed.tables.storage import Storage
from splitembed.vocabulary import UNKNOWN_TOKEN

AnySplit = TypeVar("AnySplit", bound=Split)


def thaw(split: AnySplit, ids: Ids) -> AnySplit:
    """Return the split in which these ids have a trainable row each; see `SplitTable.thaw`."""
    new = np.unique(ids)
    new = new[split.remap[new] >= 0]
    if split.padding is not None and split.padding in new:
        raise SplitError(
            f"The padding id {split.padding} cannot be thawed: its row is always zero. Leave it out of `tokens`."
        )
    if not new.size:
        return split
    remap = split.remap.copy()
    remap[new] = ~np.arange(split.num_trainable, split.num_trainable + len(new))
    return split.with_parts(remap=as_read_only(remap), trainable=joined(split.trainable, split.lookup(new)))


def freeze(split: AnySplit, ids: Ids) -> AnySplit:
    """Return the split in which these ids are frozen, on a new frozen table; see `SplitTable.freeze`."""
    frozen = np.unique(ids)
    frozen = frozen[split.remap[frozen] < 0]
    if not frozen.size:
        return split
    rows, first, number = np.unique(~split.remap[frozen], return_index=True, return_inverse=True)
    stored = _stored_exactly(split, split.trainable[rows], frozen[first])
    remap = split.remap.copy()
    remap[frozen] = split.num_frozen + number
    remap, trainable = without_unused(remap, split.trainable)
    return split.with_parts(trainable=trainable, **own_rows(split, remap, stored))


def compact(split: AnySplit) -> AnySplit:
    """Return the split without unused rows, on a new frozen table; see `SplitTable.compact`."""
    remap, trainable = without_unused(split.remap, split.trainable)
    used, _ = used_rows(remap[remap >= 0], split.num_frozen)
    if split.table is not None or len(used) < split.num_frozen:
        return split.with_parts(trainable=trainable, **own_rows(split, remap))
    return split if trainable is split.trainable else split.with_parts(remap=remap, trainable=trainable)


def shrink(split: AnySplit, ids: Ids, *, drop_reserved: bool = False) -> tuple[AnySplit, Ids]:
    """Return the split without these ids, and the new id of each old one, or -1; see `SplitTable.shrink`."""
    is_kept = np.ones(split.num_tokens, bool)
    is_kept[ids] = False
    new_ids = np.where(is_kept, np.cumsum(is_kept, dtype=np.int64) - 1, NO_ROW)
    if is_kept.all():
        return split, new_ids
    if not is_kept.any():
        raise SplitError(f"`tokens` must leave at least one token. Received: all {split.num_tokens} tokens.")
    if not drop_reserved:
        _check_reserved(split, is_kept)
    padding = None if split.padding is None or not is_kept[split.padding] else int(new_ids[split.padding])
    remap, trainable = without_unused(split.remap[is_kept], split.trainable)
    return split.with_parts(
        remap=remap,
        trainable=trainable,
        vocabulary=None if split.vocabulary is None else list(itertools.compress(split.vocabulary, is_kept.tolist())),
        padding=padding,
        coverage=None,
    ), new_ids


def _check_reserved(split: Split, is_kept: Mask) -> None:
    dropped = [] if split.padding is None or is_kept[split.padding] else [f"the padding id {split.padding}"]
    if split.vocabulary is not None:
        ids = np.flatnonzero(~is_kept).tolist()
        dropped += [
            f"the id {token_id} of {UNKNOWN_TOKEN}" for token_id in ids if split.vocabulary[token_id] == UNKNOWN_TOKEN
        ]
    if dropped:
        raise SplitError(
            f"`tokens` names {' and '.join(dropped)}, which lookup layers use for any input. Leave it out, or pass "
            "drop_reserved=True."
        )


def _stored_exactly(split: Split, rows: Rows, ids: Ids) -> Stored:
    """Return rows in the precision of the split's frozen rows, unless that changes a bit; `ids` names the rows."""
    try:
        stored = tables.encode_rows(rows, split.frozen_dtype)
        if _same_bits(split.storage.decode(*stored), rows):
            return stored
    # A number is out of range; its row is found below.
    except SplitError:
        pass
    inexact = next(token_id for token_id, row in zip(ids, rows, strict=True) if not _is_exact(row, split.storage))
    raise SplitError(
        f"The row of {split.name_of(inexact)} cannot join the frozen rows: {split.frozen_dtype} does not hold it "
        f'exactly. Call compact() and with_frozen_dtype("float32") first.'
    )


def _is_exact(row: Rows, storage: Storage) -> bool:
    try:
        return _same_bits(storage.decode(*tables.encode_rows(row[None], storage.name)), row[None])
    except SplitError:
        return False


def _same_bits(first: Rows, second: Rows) -> bool:
    # Bits are compared, because NaN is not equal to itself.
    return np.array_equal(first.view(np.uint32), second.view(np.uint32))


def carried_rows(old: Split, new: Split, new_ids: ArrayLike | None = None) -> Ids:
    """Return the old number of each trainable row, so that an optimizer's slots can be carried over.

    >>> from splitembed import SplitTable
    >>> old = SplitTable([[0.0]], [0, ~0, ~1], [[1.0], [2.0]], vocabulary=["the", "usr", "lol"])
    >>> new = SplitTable([[0.0]], [~0, ~1, 0], [[2.0], [0.0]], vocabulary=["lol", "the", "usr"])
    >>> carried_rows(old, new).tolist()
    [1, -1]

    Args:
        old: the split before a change.
        new: the split after it.
        new_ids: integers `(old.num_tokens,)`, the new id of each old one or -1, the `id_mapping` of a shrunk split. By
            default ids are matched by token where both splits have a vocabulary (duplicates by id if possible, else to
            the first), otherwise by id.

    Returns:
        int64 `(new.num_trainable,)`: the row of `old.trainable` that the same token had, or -1. Where several tokens
        share the new row, the first one with an old row counts.

    Raises:
        SplitError: `new_ids` has another shape, or names ids outside `new`.
    """
    ids = new.trainable_ids
    before = ids_before(old, new, ids) if new_ids is None else _inverted(new_ids, old, new)[ids]
    trained = np.flatnonzero(before != NO_ROW)
    # Reversed, so that the first of several tokens is written last.
    trained = trained[old.remap[before[trained]] < 0][::-1]
    rows = np.full(new.num_trainable, NO_ROW, np.int64)
    rows[~new.remap[ids[trained]]] = ~old.remap[before[trained]]
    return rows


def ids_before(old: Split, new: Split, ids: Ids) -> Ids:
    """Return the old id of each new id, or -1: by token where both splits have a vocabulary, otherwise by id.

    >>> from splitembed import SplitTable
    >>> old, new = (SplitTable([[0.0]], [0] * 3, [], vocabulary=list(tokens)) for tokens in ("abb", "xab"))
    >>> ids_before(old, new, np.arange(3)).tolist()
    [-1, 0, 2]
    """
    if old.vocabulary is None or new.vocabulary is None or old.vocabulary is new.vocabulary:
        return np.where(ids < old.num_tokens, ids, np.int64(NO_ROW))
    before, after, find = list(old.vocabulary), list(new.vocabulary), old.index.get
    same = (i if i < len(before) and before[i] == after[i] else find(after[i], NO_ROW) for i in ids.tolist())
    return np.fromiter(same, np.int64, len(ids))


def _inverted(new_ids: ArrayLike, old: Split, new: Split) -> Ids:
    """Return the old id of each new one, or -1."""
    array: NDArray[np.int64] = np.asarray(new_ids)
    if array.shape != (old.num_tokens,) or array.dtype.kind not in "iu" or array.max() >= new.num_tokens:
        raise SplitError(
            f"`new_ids` must be integers ({old.num_tokens},), ids below {new.num_tokens} or -1. Received: "
            f"{array.dtype} {array.shape}{f', up to {array.max()}' if array.size else ''}."
        )
    kept = np.flatnonzero(array >= 0)
    before = np.full(new.num_tokens, NO_ROW, np.int64)
    before[array[kept]] = kept
    return before
