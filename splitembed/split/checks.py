"""The parts of a split: arrays and words go in as given; they come out as a split holds them, or are refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed import tables
from splitembed.arrays import as_read_only
from splitembed.errors import SplitError, TokenIdError
from splitembed.vocabulary import out_of_range
from splitembed.words import Words


def frozen_rows(
    frozen: ArrayLike, scale: ArrayLike | None, dtype: str | None
) -> tuple[NDArray[Any], NDArray[np.float32] | None]:
    """The rows as they are to be stored, and with int8 their scale."""
    array = np.asarray(frozen)
    if scale is not None or dtype == "int8":
        return _int8_rows(array, scale)
    if array.ndim == 2 and array.shape[1] and (array.dtype == np.float16 or dtype == "bfloat16"):
        rows = array
    else:
        rows = as_float32("frozen", array)
    if dtype is not None and tables.dtype_name(rows.dtype) != dtype:
        raise SplitError(
            f"`frozen_dtype` is {dtype!r}, but the rows are {array.dtype}: call with_frozen_dtype instead."
        )
    return rows, None


def _int8_rows(rows: NDArray[Any], scale: ArrayLike | None) -> tuple[NDArray[Any], NDArray[np.float32]]:
    factors = np.asarray([] if scale is None else scale, np.float32)
    if rows.dtype != np.int8 or rows.ndim != 2 or not rows.shape[1] or factors.shape != rows.shape[:1]:
        raise SplitError(
            f"`frozen` with a `scale` must be int8 `(num_frozen, dim)` with one factor a row. "
            f"Received: shape {rows.shape} and dtype {rows.dtype}, and a scale of shape {factors.shape}."
        )
    return rows, as_read_only(factors)


def trainable_rows(trainable: ArrayLike, dim: int) -> NDArray[np.float32]:
    """The rows as float32 `(num_trainable, dim)`."""
    array = np.asarray(trainable)
    if array.size == 0 and array.shape in ((0,), (0, dim)):
        return np.empty((0, dim), np.float32)
    rows = as_float32("trainable", array)
    if rows.shape[1] != dim:
        raise SplitError(
            f"`trainable` must have as many columns as `frozen`, {dim}. Received: {rows.shape[1]} columns."
        )
    return rows


def as_float32(name: str, rows: ArrayLike) -> NDArray[np.float32]:
    """A two-dimensional float32 array of what was given, refusing values that float32 cannot hold."""
    array = np.asarray(rows)
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
        raise SplitError(f"`{name}` holds values beyond float32's range, such as {array[lost][0]!r}.")
    return result


def checked_remap(remap: ArrayLike, num_frozen: int, num_trainable: int) -> NDArray[np.int32]:
    """The remap as int32, once each of its entries names a row."""
    array = np.asarray(remap)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise SplitError(
            f"`remap` must be one integer for each token, `(num_tokens,)`, and at least one. "
            f"Received: shape {array.shape} and dtype {array.dtype}."
        )
    if array.max() >= num_frozen or array.min() < -num_trainable:
        token_id = int(np.flatnonzero((array >= num_frozen) | (array < -num_trainable))[0])
        raise SplitError(
            f"`remap[{token_id}]` is {array[token_id]}, which names no row: rows of `frozen` run from 0 to "
            f"{num_frozen - 1}, rows of `trainable` are ~0 to ~{num_trainable - 1} (there are {num_trainable})."
        )
    return array.astype(np.int32, copy=False)


def checked_vocabulary(vocabulary: Sequence[str] | None, num_tokens: int) -> Words | None:
    """The tokens, one for each id, or None."""
    if vocabulary is None:
        return None
    if len(vocabulary) != num_tokens:
        raise SplitError(f"`vocabulary` must have one token for each id: {len(vocabulary)} tokens, {num_tokens} ids.")
    return vocabulary if isinstance(vocabulary, Words) else Words.from_list(vocabulary)


def checked_padding(padding: int | None, remap: NDArray[np.int32], frozen: NDArray[Any]) -> int | None:
    """The padding id, once its row is frozen and zero, or None."""
    if padding is None:
        return None
    if not 0 <= padding < len(remap):
        raise TokenIdError(out_of_range(padding, len(remap)))
    row = remap[padding]
    if row < 0 or frozen[row].any():
        state = "is trainable" if row < 0 else "is not zero"
        raise SplitError(f"The row of the padding id {padding} must be frozen and zero, but it {state}.")
    return int(padding)


def unchanging(array: NDArray[Any], given: ArrayLike) -> NDArray[Any]:
    """The array, read-only, and copied where whoever gave it could still write to its memory."""
    shared = isinstance(given, np.ndarray) and given.flags.writeable and np.may_share_memory(array, given)
    return as_read_only(array.copy() if shared else array)


def index_of(vocabulary: Sequence[str]) -> dict[str, int]:
    """Token to id; of ids with the same token, the first.

    >>> index_of(["a", "b", "a"])
    {'a': 0, 'b': 1}
    """
    return dict(zip(reversed(vocabulary), range(len(vocabulary) - 1, -1, -1), strict=True))


def used_rows(rows: NDArray[Any], num_rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows that occur, ascending, each once; and for each row its place among them, if it occurs.

    >>> used_rows(np.array([4, 1, 4]), 5)[0].tolist(), used_rows(np.array([4, 1, 4]), 5)[1][[4, 1]].tolist()
    ([1, 4], [1, 0])

    Args:
        rows: integers `(num_ids,)`, `0 <= row < num_rows`.
        num_rows: how many there are to name.

    Returns:
        int64 `(num_used,)`, and int64 `(num_rows,)`, whose values at rows that do not occur mean nothing.
    """
    is_used = np.zeros(num_rows, bool)
    is_used[rows] = True
    return np.flatnonzero(is_used), np.cumsum(is_used) - 1
