"""Arrays in an open file: views of one memory map of the file, or copies.

A map beyond the end of its file kills the process with SIGBUS when the page is read. So the size of the file is checked
before it is mapped.
"""

import mmap
import platform
import sys
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import aligned_empty, as_read_only
from splitembed.tables.head import StoredArray

# Without this flag Linux refuses a copy-on-write map larger than memory and swap. Python has its name from 3.13 on.
_COMMON_LINUX = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if _COMMON_LINUX else 0)


def map_file(descriptor: int, size: int) -> mmap.mmap:
    """Return a map of a whole file, copy-on-write, although nothing writes to it: DLPack refuses read-only memory.

    Args:
        descriptor: of the file, open for reading.
        size: of the file, not 0.
    """
    if hasattr(mmap, "MAP_PRIVATE"):
        writable = mmap.PROT_READ | mmap.PROT_WRITE
        return mmap.mmap(descriptor, size, flags=mmap.MAP_PRIVATE | _NO_RESERVE, prot=writable)
    return mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY)


def mapped(memory: mmap.mmap, place: StoredArray) -> NDArray[Any]:
    """Return an array of a mapped file as a read-only view of the map."""
    count = int(np.prod(place.shape, dtype=np.int64))
    found = np.frombuffer(memory, place.dtype, count, place.offset).reshape(place.shape)
    return as_read_only(found.astype(found.dtype.newbyteorder("="), copy=False))


def advise_random(memory: mmap.mmap, place: StoredArray) -> None:
    """Switch off reading ahead, which would load pages that lookups in random order do not need."""
    if hasattr(memory, "madvise"):
        start = place.offset - place.offset % mmap.PAGESIZE
        memory.madvise(mmap.MADV_RANDOM, start, place.offset + place.size - start)


def read(stream: BinaryIO, place: StoredArray) -> NDArray[Any]:
    """Read an array into aligned memory.

    Args:
        stream: the file, open in binary mode.
        place: in the file.

    Raises:
        EOFError: the file ends before the array.
    """
    array = aligned_empty(place.shape, place.dtype)
    into, stop = array.reshape(-1).view(np.uint8).data, 0
    stream.seek(place.offset)
    while stop < len(into):
        num_read = stream.readinto(into[stop:])  # type: ignore[attr-defined]
        if not num_read:
            raise EOFError
        stop += num_read
    return as_read_only(array.astype(array.dtype.newbyteorder("="), copy=False))
