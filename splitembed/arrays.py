"""NumPy arrays in memory: aligned for TensorFlow, read-only for readers, and copied only where necessary."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

# In bytes: TensorFlow aborts the process on a DLPack tensor whose address is not a multiple of this.
ALIGNMENT = 64
# Marks a token without a row, a word or a new id, in arrays of row numbers, word numbers or ids.
NO_ROW = -1


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an uninitialised C-contiguous array whose address is a multiple of 64 bytes.

    >>> aligned_empty((3, 5), np.float32).ctypes.data % 64
    0

    Args:
        shape: the shape of the array.
        dtype: its dtype.

    Returns:
        The array; its values are arbitrary, as with `numpy.empty`.
    """
    num_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    memory = np.empty(num_bytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + num_bytes].view(dtype).reshape(shape)


def is_aligned(array: NDArray[Any]) -> bool:
    """Return whether TensorFlow can use the array's memory: contiguous, native byte order, 64-byte aligned.

    >>> is_aligned(aligned_empty((2, 3), np.float32)), is_aligned(aligned_empty((2, 3), np.float32)[:, :2])
    (True, False)
    """
    return bool(array.flags.c_contiguous and array.dtype.isnative and array.ctypes.data % ALIGNMENT == 0)


def as_aligned(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array itself if TensorFlow can use its memory, else an aligned copy.

    >>> as_aligned(np.arange(6, dtype=">i4").reshape(2, 3)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    if is_aligned(array):
        return array
    copy = aligned_empty(array.shape, array.dtype.newbyteorder("="))
    copy[...] = array
    return copy


def as_read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of the array.

    >>> as_read_only(np.zeros(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view


class _Memory:
    """The memory of an array, exposed as writable through NumPy's array interface."""

    def __init__(self, array: NDArray[Any]) -> None:
        # The reference keeps the memory, or the memory map, alive.
        self.array = array
        self.__array_interface__ = dict(array.__array_interface__, data=(array.ctypes.data, False))


def without_read_only_flag(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array on the same memory that DLPack accepts: NumPy refuses to export read-only arrays.

    The result keeps the memory alive. The caller must not write to it.

    >>> rows = as_read_only(np.ones(3, np.float32))
    >>> alias = without_read_only_flag(rows)
    >>> alias.flags.writeable, np.shares_memory(rows, alias)
    (True, True)
    """
    return np.asarray(_Memory(array))


def is_count(value: Any, smallest: int) -> bool:
    """Return whether a value is an integer, but not a boolean, of at least `smallest`.

    >>> is_count(np.int64(2), 1), is_count(0, 1), is_count(2.0, 1), is_count(True, 1)
    (True, False, False, False)
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= smallest
