"""Writing of datasets, from arrays or from blocks whose number is not known in advance."""

import math
import tempfile
from typing import Any

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from splitembed.tables.fingerprints import Fingerprint, little_endian, row_blocks

# The default size of HDF5's chunk cache.
_CHUNK_BYTES = 1 << 20


def create_dataset(file: h5py.File, name: str, shape: tuple[int, ...], dtype: DTypeLike, **layout: Any) -> h5py.Dataset:
    """Create a little-endian dataset, contiguous by default."""
    return file.create_dataset(name, shape, np.dtype(dtype).newbyteorder("<"), **layout)


def store_array(file: h5py.File, name: str, array: Any, fingerprint: Fingerprint, *, compressed: bool = False) -> None:
    """Copy an array or a memory map into a new dataset, about 4 MiB at a time, and hash it.

    Args:
        file: open for writing.
        name: of the dataset.
        array: the numbers; with `compressed` one-dimensional and not empty.
        fingerprint: to which the numbers are added.
        compressed: whether to use the filters shuffle and gzip, with which the dataset cannot be mapped.
    """
    layout: dict[str, Any] = {}
    if compressed:
        chunk = min(len(array), _CHUNK_BYTES // array.dtype.itemsize)
        layout = {"chunks": (chunk,), "shuffle": True, "compression": "gzip"}
    stored = create_dataset(file, name, array.shape, array.dtype, **layout)
    for block in row_blocks(len(array), array.dtype.itemsize * math.prod(array.shape[1:])):
        part = little_endian(array[block])
        fingerprint.add(part)
        stored[block] = part


class Spool:
    """A nameless temporary file that collects numbers in bounded memory.

    Args:
        folder: of the final file, which has room, while the system's folder for temporary files may be small.
        dtype: of the numbers.
    """

    def __init__(self, folder: str, dtype: DTypeLike) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._size = 0

    def append(self, numbers: NDArray[Any]) -> None:
        """Append numbers."""
        self._file.write(_as_bytes(little_endian(numbers.astype(self._dtype, copy=False))))
        self._size += numbers.size

    def store(self, file: h5py.File, name: str, row_shape: tuple[int, ...], fingerprint: Fingerprint | None) -> None:
        """Copy all numbers into a new dataset `(num_rows, *row_shape)`, and to a fingerprint if one is given."""
        row_size = math.prod(row_shape)
        num_rows = self._size // row_size if row_size else 0
        stored = create_dataset(file, name, (num_rows, *row_shape), self._dtype)
        self._file.seek(0)
        # Reused for all blocks, of which the first is the longest: new memory for each would double the time.
        memory: NDArray[Any] | None = None
        for block in row_blocks(num_rows, row_size * self._dtype.itemsize):
            if memory is None:
                memory = np.empty((block.stop, *row_shape), self._dtype)
            part = memory[: block.stop - block.start]
            self._file.readinto(_as_bytes(part))
            if fingerprint is not None:
                fingerprint.add(part)
            stored[block] = part

    def close(self) -> None:
        """Delete the file."""
        self._file.close()


def _as_bytes(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data
