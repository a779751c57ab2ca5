"""Memory of arrays: aligned for TensorFlow, read-only for readers, never copied where a view will do."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

ALIGNMENT = 64  # bytes: TensorFlow aborts the process on a DLPack tensor whose address is not a multiple of this


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Makes an uninitialised C-contiguous array whose address is a multiple of 64 bytes.

    >>> aligned_empty((3, 5), np.float32).ctypes.data % 64
    0

    Args:
        shape: the shape of the array.
        dtype: its dtype.

    Returns:
        The array; as with `numpy.empty`, its values are whatever the memory held.
    """
    num_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    memory = np.empty(num_bytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + num_bytes].view(dtype).reshape(shape)


def is_aligned(array: NDArray[Any]) -> bool:
    """Says whether TensorFlow can use the array's memory as it is: contiguous, native byte order, 64-byte aligned.

    >>> is_aligned(aligned_empty((2, 3), np.float32)), is_aligned(aligned_empty((2, 3), np.float32)[:, :2])
    (True, False)
    """
    return bool(array.flags.c_contiguous and array.dtype.isnative and array.ctypes.data % ALIGNMENT == 0)


def as_aligned(array: NDArray[Any]) -> NDArray[Any]:
    """Returns the array itself where TensorFlow can use its memory as it is, else an aligned copy.

    >>> as_aligned(np.arange(6, dtype=">i4").reshape(2, 3)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    if is_aligned(array):
        return array
    copy = aligned_empty(array.shape, array.dtype.newbyteorder("="))
    copy[...] = array
    return copy


def as_read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Returns a view of the array that cannot be written through.

    >>> as_read_only(np.zeros(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view


class _Memory:
    """An array's memory under NumPy's array interface, flagged writable whatever the array says."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array  # keeps the memory, or the map, alive
        self.__array_interface__ = dict(array.__array_interface__, data=(array.ctypes.data, False))


def without_read_only_flag(array: NDArray[Any]) -> NDArray[Any]:
    """Returns an array on the same memory that DLPack accepts: NumPy's export refuses read-only ones.

    The caller must not write through it; the result keeps the array's memory alive.

    >>> rows = as_read_only(np.ones(3, np.float32))
    >>> alias = without_read_only_flag(rows)
    >>> alias.flags.writeable, np.shares_memory(rows, alias)
    (True, True)
    """
    return np.asarray(_Memory(array))


def is_count(value: Any, smallest: int) -> bool:
    """Says whether something is an integer, not below the smallest; a boolean is none.

    >>> is_count(np.int64(2), 1), is_count(0, 1), is_count(2.0, 1), is_count(True, 1)
    (True, False, False, False)
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= smallest
