"""Datasets as arrays: a memory map where the layout of the file allows it, else a copy.

TensorFlow aborts the process on memory that does not start at a multiple of 64 bytes. A map beyond the end of its file
kills the process with SIGBUS when the page is read. So position and size are checked before mapping.
"""

import mmap
import os
import platform
import sys
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import ALIGNMENT, aligned_empty, as_read_only
from splitembed.tables.fields import damaged

# Without this flag Linux refuses a copy-on-write map larger than memory and swap. Python has its name from 3.13 on.
_COMMON_LINUX = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if _COMMON_LINUX else 0)


def map_or_read(
    file: h5py.File, rows: h5py.Dataset, memory_map: bool = True, *, scattered: bool = True
) -> tuple[NDArray[Any], bool]:
    """Map a dataset copy-on-write if its bytes are contiguous in the file; read it otherwise.

    Args:
        file: the open file that holds the dataset.
        rows: the dataset.
        memory_map: False always reads it.
        scattered: whether rows are read in random order, as lookups do; False if they are read one after the other.

    Returns:
        A read-only C-contiguous array in native byte order at a multiple of 64 bytes, and whether it is a map.

    Raises:
        TableFormatError: the file ends before the dataset.
    """
    num_bytes = rows.size * rows.dtype.itemsize
    offset = _offset_of_plain_bytes(file, rows)
    if offset is None:
        return as_read_only(read(rows)), False
    # The path may name another file by now.
    descriptor = file.id.get_vfd_handle()
    size = os.fstat(descriptor).st_size
    if offset + num_bytes > size:
        raise damaged(file, f"`vectors` ends at byte {offset + num_bytes}, but the file at {size}.")
    if not memory_map or offset % ALIGNMENT or not rows.dtype.isnative:
        return as_read_only(read(rows)), False
    return as_read_only(_map(descriptor, offset, rows.shape, rows.dtype, scattered)), True


def read(rows: h5py.Dataset) -> NDArray[Any]:
    """Read a whole dataset into aligned memory, in native byte order."""
    array = aligned_empty(rows.shape, rows.dtype.newbyteorder("="))
    if array.size:
        rows.read_direct(array)
    return array


def _offset_of_plain_bytes(file: h5py.File, rows: h5py.Dataset) -> int | None:
    """Return the offset of the rows in the file, or None if they are not contiguous there."""
    contiguous = rows.id.get_create_plist().get_layout() == h5py.h5d.CONTIGUOUS
    if not contiguous or file.userblock_size or file.driver != "sec2":
        return None
    offset = rows.id.get_offset()
    return None if offset is None else int(offset)


def _map(descriptor: int, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any], scattered: bool) -> NDArray[Any]:
    start = offset - offset % mmap.ALLOCATIONGRANULARITY
    count = int(np.prod(shape, dtype=np.int64))
    length = offset - start + count * dtype.itemsize
    memory = _private_map(descriptor, start, length)
    # Reading ahead would load pages that lookups in random order do not need.
    if scattered and hasattr(memory, "madvise"):
        memory.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(memory, dtype, count, offset - start).reshape(shape)


def _private_map(descriptor: int, start: int, length: int) -> mmap.mmap:
    """Return a copy-on-write map, although nothing writes to it, because DLPack refuses read-only memory."""
    if hasattr(mmap, "MAP_PRIVATE"):
        writable = mmap.PROT_READ | mmap.PROT_WRITE
        return mmap.mmap(descriptor, length, flags=mmap.MAP_PRIVATE | _NO_RESERVE, prot=writable, offset=start)
    return mmap.mmap(descriptor, length, access=mmap.ACCESS_COPY, offset=start)
