"""What becomes of a split: one and some ids go in; another one leaves, and what its rows were before.

A split never changes, so each operation makes a new one, on the memory of all that it does not alter. Rows that go on
training keep their order, and new ones come after them, so that an optimizer's slots can be carried over.
"""

import itertools
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed import tables
from splitembed.arrays import aligned_empty, as_read_only
from splitembed.errors import SplitError
from splitembed.split.base import SplitBase
from splitembed.split.checks import used_rows
from splitembed.vocabulary import UNKNOWN_TOKEN

Split = TypeVar("Split", bound=SplitBase)
Ids = NDArray[np.int64]
Remap = NDArray[np.int32]
Rows = NDArray[np.float32]
Stored = tuple[NDArray[Any], Rows | None]  # rows as `tables.encode_rows` stores them, with their scale
_NONE = -1  # in place of an id or a row: there is none


def thaw(split: Split, ids: Ids) -> Split:
    """The split in which these ids have a trainable row each, which starts as what their frozen row is."""
    new = np.unique(ids)
    new = new[split.remap[new] >= 0]
    if split.padding is not None and split.padding in new:
        raise SplitError(
            f"The padding id {split.padding} cannot be thawed: its row is zero and stays so. Leave it out of `tokens`."
        )
    if not new.size:
        return split
    remap = split.remap.copy()
    remap[new] = ~np.arange(split.num_trainable, split.num_trainable + len(new))
    return split.with_parts(remap=as_read_only(remap), trainable=joined(split.trainable, split.lookup(new)))


def freeze(split: Split, ids: Ids) -> Split:
    """The split in which these ids are frozen as they are, on a frozen table of its own."""
    frozen = np.unique(ids)
    frozen = frozen[split.remap[frozen] < 0]
    if not frozen.size:
        return split
    rows, first, place = np.unique(~split.remap[frozen], return_index=True, return_inverse=True)
    stored = _stored_exactly(split, split.trainable[rows], frozen[first])
    remap = split.remap.copy()
    remap[frozen] = split.num_frozen + place
    remap, trainable = without_unused(remap, split.trainable)
    return split.with_parts(trainable=trainable, **own_table(split, remap, stored))


def compact(split: Split) -> Split:
    """The split without rows that no id uses, on a frozen table of its own."""
    remap, trainable = without_unused(split.remap, split.trainable)
    used, _ = used_rows(remap[remap >= 0], split.num_frozen)
    if split.table is not None or len(used) < split.num_frozen:
        return split.with_parts(trainable=trainable, **own_table(split, remap))
    return split if trainable is split.trainable else split.with_parts(remap=remap, trainable=trainable)


def shrink(split: Split, ids: Ids, *, drop_reserved: bool = False) -> tuple[Split, Ids]:
    """The split without these ids, and the new id of each old one, or -1."""
    is_kept = np.ones(split.num_tokens, bool)
    is_kept[ids] = False
    new_ids = np.where(is_kept, np.cumsum(is_kept, dtype=np.int64) - 1, _NONE)
    if is_kept.all():
        return split, new_ids
    if not is_kept.any():
        raise SplitError(f"`tokens` names all {split.num_tokens} tokens: at least one must stay.")
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


def _check_reserved(split: SplitBase, is_kept: NDArray[np.bool_]) -> None:
    dropped = [] if split.padding is None or is_kept[split.padding] else [f"the padding id {split.padding}"]
    if split.vocabulary is not None:
        ids = np.flatnonzero(~is_kept).tolist()
        dropped += [
            f"the id {token_id} of {UNKNOWN_TOKEN}" for token_id in ids if split.vocabulary[token_id] == UNKNOWN_TOKEN
        ]
    if dropped:
        raise SplitError(
            f"`tokens` names {' and '.join(dropped)}, which lookup layers send ids to whatever the words are. Leave "
            "out what is meant to stay, or pass drop_reserved=True."
        )


def joined(first: Rows, second: Rows) -> Rows:
    """Both in one read-only table, one after the other."""
    rows: Rows = as_read_only(np.concatenate([first, second]))
    return rows


def without_unused(remap: Remap, trainable: Rows) -> tuple[Remap, Rows]:
    """The trainable rows that the remap uses, in their order, and the remap with their new numbers; both read-only.

    >>> remap, trainable = without_unused(np.array([~2, 7, ~0]), np.array([[0.0], [1.0], [2.0]], np.float32))
    >>> remap.tolist(), trainable.tolist()
    ([-2, 7, -1], [[0.0], [2.0]])
    """
    is_trained = remap < 0
    used, place_of = used_rows(~remap[is_trained], len(trainable))
    if len(used) == len(trainable):
        return as_read_only(remap), trainable
    remap = remap.copy()
    remap[is_trained] = ~place_of[~remap[is_trained]]
    return as_read_only(remap), as_read_only(trainable[used])


def own_table(split: SplitBase, remap: Remap, added: Stored | None = None) -> dict[str, Any]:
    """The parts of a split on a frozen table of its own: the rows that a remap uses, and some that are added.

    Args:
        split: the split that has the rows so far.
        remap: `(num_tokens,)`; frozen rows from `split.num_frozen` on are those that are added.
        added: `(num_added, dim)` as the rows so far are stored, and with int8 their scale; they follow the others.

    Returns:
        The new `frozen`, with `scale` and `frozen_dtype`, and the `remap` with its new numbers.
    """
    more, more_scale = added or (split.frozen[:0], None)
    is_frozen = remap >= 0
    used, place_of = used_rows(remap[is_frozen], split.num_frozen + len(more))
    old, new = used[used < split.num_frozen], used[used >= split.num_frozen] - split.num_frozen
    frozen = aligned_empty((len(used), split.dim), split.frozen.dtype)
    np.take(split.frozen, old, axis=0, out=frozen[: len(old)], mode="clip")  # other modes copy once more
    frozen[len(old) :] = more[new]
    scale = split.scale
    if scale is not None:
        scale = scale[old] if more_scale is None else joined(scale[old], more_scale[new])
    remap = remap.copy()
    remap[is_frozen] = place_of[remap[is_frozen]]
    return {"frozen": frozen, "scale": scale, "frozen_dtype": split.frozen_dtype, "remap": as_read_only(remap)}


def _stored_exactly(split: SplitBase, rows: Rows, ids: Ids) -> Stored:
    """The rows as the split's frozen ones are stored, if that changes no bit; `ids` names them."""
    try:
        stored = tables.encode_rows(rows, split.frozen_dtype)
        if _same_bits(tables.decode_rows(*stored), rows):
            return stored
    except SplitError:  # out of range; which row it is, is found below
        pass
    inexact = next(token_id for token_id, row in zip(ids, rows, strict=True) if not _is_exact(row, split.frozen_dtype))
    raise SplitError(
        f"The row of {split.name_of(inexact)} is none that {split.frozen_dtype} holds exactly, so it cannot join the "
        f'frozen rows as it is. Call compact() and with_frozen_dtype("float32") first.'
    )


def _is_exact(row: Rows, dtype: str) -> bool:
    try:
        return _same_bits(tables.decode_rows(*tables.encode_rows(row[None], dtype)), row[None])
    except SplitError:
        return False


def _same_bits(first: Rows, second: Rows) -> bool:
    return np.array_equal(first.view(np.uint32), second.view(np.uint32))  # NaN is not equal to itself


def carried_rows(old: SplitBase, new: SplitBase, new_ids: ArrayLike | None = None) -> Ids:
    """Finds what trainable row of one split a trainable row of another was, so that an optimizer's slots can follow.

    >>> old = SplitBase([[0.0]], [0, ~0, ~1], [[1.0], [2.0]], vocabulary=["the", "usr", "lol"])
    >>> new = SplitBase([[0.0]], [~0, ~1, 0], [[2.0], [0.0]], vocabulary=["lol", "the", "usr"])
    >>> carried_rows(old, new).tolist()
    [1, -1]

    Args:
        old: the split as it was.
        new: what became of it.
        new_ids: `(old.num_tokens,)` integers, the new id of each old one or -1, as `shrink` returns them. None goes by
            token where both splits have a vocabulary (a token that both have at the same id is the same, else it is
            the first of its name), and by id where not.

    Returns:
        int64 `(new.num_trainable,)`: the row of `old.trainable` that the same token had, the first token with one where
        several share the row; or -1.

    Raises:
        SplitError: `new_ids` of another shape, or that names ids which `new` does not have.
    """
    ids = new.trainable_ids
    before = ids_before(old, new, ids) if new_ids is None else _inverted(new_ids, old, new)[ids]
    trained = np.flatnonzero(before != _NONE)
    trained = trained[old.remap[before[trained]] < 0][::-1]  # backwards, so that of several ids the first one stays
    rows = np.full(new.num_trainable, _NONE, np.int64)
    rows[~new.remap[ids[trained]]] = ~old.remap[before[trained]]
    return rows


def ids_before(old: SplitBase, new: SplitBase, ids: Ids) -> Ids:
    """The old id of each of these new ids, or -1: by token where both have a vocabulary, else by id.

    >>> old, new = (SplitBase([[0.0]], [0] * 3, [], vocabulary=list(tokens)) for tokens in ("abb", "xab"))
    >>> ids_before(old, new, np.arange(3)).tolist()
    [-1, 0, 2]
    """
    if old.vocabulary is None or new.vocabulary is None or old.vocabulary is new.vocabulary:
        return np.where(ids < old.num_tokens, ids, np.int64(_NONE))
    before, after, find = list(old.vocabulary), list(new.vocabulary), old.index.get
    same = (i if i < len(before) and before[i] == after[i] else find(after[i], _NONE) for i in ids.tolist())
    return np.fromiter(same, np.int64, len(ids))


def _inverted(new_ids: ArrayLike, old: SplitBase, new: SplitBase) -> Ids:
    """The old id of each new one, or -1."""
    array = np.asarray(new_ids)
    if array.shape != (old.num_tokens,) or array.dtype.kind not in "iu" or array.max() >= new.num_tokens:
        raise SplitError(
            f"`new_ids` must be integers ({old.num_tokens},), ids below {new.num_tokens} or -1. Received: "
            f"{array.dtype} {array.shape}{f', up to {array.max()}' if array.size else ''}."
        )
    kept = np.flatnonzero(array >= 0)
    before = np.full(new.num_tokens, _NONE, np.int64)
    before[array[kept]] = kept
    return before
