"""Checks of the arguments of `SplitTable`, which also convert them to the arrays that a split holds."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed.arrays import as_read_only
from splitembed.errors import SplitError
from splitembed.paths import holds_bytes
from splitembed.split.protocol import Remap, Rows
from splitembed.tables.storage import STORAGES, storage_named, storage_of
from splitembed.vocabulary import Vocabulary, check_ids, read_vocabulary
from splitembed.vocabulary.labels import refuse_labels
from splitembed.vocabulary.tokens import as_text
from splitembed.words import Words


def checked_frozen(frozen: ArrayLike, scale: ArrayLike | None, dtype: str | None) -> tuple[NDArray[Any], Rows | None]:
    """Return the frozen rows as they are stored, and their scale if the storage has one."""
    array = as_plain_array("frozen", frozen)
    storage = None if dtype is None else storage_named(dtype)
    if scale is not None or (storage is not None and storage.has_scale):
        return _with_scale(array, [] if scale is None else scale)
    # Integers without a storage are plain numbers, which become float32.
    stored = [each.stored_dtype for each in STORAGES.values() if each.is_numpy_float or each is storage]
    is_stored = array.ndim == 2 and array.shape[1] and array.dtype in stored
    rows = array if is_stored else as_float32("frozen", array)
    if storage is not None and storage_of(rows.dtype) is not storage:
        raise SplitError(f"`frozen_dtype` is {dtype!r}, but the rows are {array.dtype}. Use with_frozen_dtype instead.")
    return rows, None


def _with_scale(rows: NDArray[Any], scale: ArrayLike) -> tuple[NDArray[Any], Rows]:
    factors = np.asarray(scale, np.float32)
    scaled = [each for each in STORAGES.values() if each.has_scale]
    is_stored = rows.ndim == 2 and rows.shape[1] and any(rows.dtype == each.stored_dtype for each in scaled)
    if not is_stored or factors.shape != rows.shape[:1]:
        raise SplitError(
            f"`frozen` with a `scale` must be {' or '.join(each.name for each in scaled)} `(num_frozen, dim)` with one "
            f"factor a row. Received: shape {rows.shape} and dtype {rows.dtype}, and a scale of shape {factors.shape}."
        )
    return rows, as_read_only(factors)


def checked_trainable(trainable: ArrayLike, dim: int) -> Rows:
    """Return the trainable rows as float32 `(num_trainable, dim)`."""
    array = as_plain_array("trainable", trainable)
    if array.size == 0 and array.shape in ((0,), (0, dim)):
        return np.empty((0, dim), np.float32)
    rows = as_float32("trainable", array)
    if rows.shape[1] != dim:
        raise SplitError(f"`trainable` must have the {dim} columns of `frozen`. Received: {rows.shape[1]} columns.")
    return rows


def as_plain_array(name: str, rows: ArrayLike) -> NDArray[Any]:
    """Return rows as an array.

    Raises:
        VocabularyError: the rows have labels, which an array would drop.
    """
    refuse_labels(name, rows)
    return np.asarray(rows)


def as_float32(name: str, rows: ArrayLike) -> Rows:
    """Return a float32 matrix, without a copy where possible.

    Args:
        name: of the argument, for messages.
        rows: a matrix of real numbers.

    Raises:
        SplitError: another shape or dtype, or a number beyond float32's range.
        VocabularyError: the rows have labels.
    """
    array = as_plain_array(name, rows)
    if array.ndim != 2 or array.shape[1] == 0 or array.dtype.kind not in "iuf":
        raise SplitError(
            f"`{name}` must be a matrix of numbers with at least one column. "
            f"Received: shape {array.shape} and dtype {array.dtype}."
        )
    if array.dtype == np.float32:
        return array
    with np.errstate(over="ignore"):
        result = array.astype(np.float32)
    lost = np.isinf(result) & np.isfinite(array)
    if lost.any():
        raise SplitError(f"`{name}` holds numbers beyond float32's range, such as {array[lost][0]!r}.")
    return result


def checked_remap(remap: ArrayLike, num_frozen: int, num_trainable: int) -> Remap:
    """Return the remap as int32, after checking that each entry names a row."""
    array = np.asarray(remap)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise SplitError(
            f"`remap` must be integers `(num_tokens,)` for at least one token. "
            f"Received: shape {array.shape} and dtype {array.dtype}."
        )
    if array.max() >= num_frozen or array.min() < -num_trainable:
        token_id = int(np.flatnonzero((array >= num_frozen) | (array < -num_trainable))[0])
        raise SplitError(
            f"`remap[{token_id}]` is {array[token_id]}, which is not a row: rows of `frozen` are numbered from 0 to "
            f"{num_frozen - 1}, rows of `trainable` from ~0 to ~{num_trainable - 1} (there are {num_trainable})."
        )
    return array.astype(np.int32, copy=False)


def as_tokens(vocabulary: Any) -> Any:
    """Return the tokens of a vocabulary in id order: lists as they are, anything else as `read_vocabulary` reads it.

    >>> as_tokens(["the", "of"]), as_tokens({"red": 1, "sky": 2})
    (['the', 'of'], ('', 'red', 'sky'))
    """
    is_read = holds_bytes(vocabulary) or isinstance(vocabulary, (Vocabulary, Mapping))
    return read_vocabulary(vocabulary).tokens if is_read or hasattr(vocabulary, "get_vocabulary") else vocabulary


def checked_vocabulary(vocabulary: Sequence[str] | None, num_tokens: int) -> Words | None:
    """Return the tokens, after checking that there is one for each id."""
    if vocabulary is None:
        return None
    if len(vocabulary) != num_tokens:
        raise SplitError(
            f"`vocabulary` must have one token for each id. Received: {len(vocabulary)} tokens, {num_tokens} ids."
        )
    return vocabulary if isinstance(vocabulary, Words) else Words.from_list(as_text(vocabulary))


def checked_padding(padding: int | None, remap: Remap, frozen: NDArray[Any]) -> int | None:
    """Return the padding id, after checking that its row is frozen and zero."""
    if padding is None:
        return None
    check_ids(np.asarray(padding), len(remap))
    row = remap[padding]
    if row < 0 or frozen[row].any():
        state = "is trainable" if row < 0 else "is not zero"
        raise SplitError(f"The row of the padding id {padding} must be frozen and zero, but it {state}.")
    return int(padding)


def checked_lookup_ids(ids: ArrayLike, num_tokens: int) -> NDArray[Any]:
    """Return ids to look up as an array of integers, after checking their range."""
    array = np.asarray(ids)
    # NumPy makes [] float64.
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise SplitError(f"`ids` must be integers. Received: an array of dtype {array.dtype}.")
    check_ids(array, num_tokens)
    return array


def protected(array: NDArray[Any], given: ArrayLike) -> NDArray[Any]:
    """Return the array as read-only, copied if the caller could still write to its memory through `given`."""
    is_shared = isinstance(given, np.ndarray) and given.flags.writeable and np.may_share_memory(array, given)
    return as_read_only(array.copy() if is_shared else array)
