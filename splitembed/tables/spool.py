"""Numbers on their way into a dataset: arrays, or blocks whose number is not known yet, enter; a dataset leaves."""

import math
import tempfile
from typing import Any

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from splitembed.tables.fingerprints import Fingerprint, little_endian, row_blocks

_CHUNK_BYTES = 1 << 20  # what HDF5 holds of a dataset in memory, unless told otherwise


def create_dataset(file: h5py.File, name: str, shape: tuple[int, ...], dtype: DTypeLike, **layout: Any) -> h5py.Dataset:
    """Makes a little-endian dataset, contiguous unless told otherwise."""
    return file.create_dataset(name, shape, np.dtype(dtype).newbyteorder("<"), **layout)


def store_array(file: h5py.File, name: str, array: Any, fingerprint: Fingerprint, *, compressed: bool = False) -> None:
    """Copies an array or a memory map into a new dataset, about 4 MiB at a time, and hashes it on the way.

    Args:
        file: open for writing.
        name: of the dataset.
        array: what to copy; with `compressed` of one axis and not empty.
        fingerprint: that grows by it.
        compressed: by shuffle and gzip, in chunks, which cannot be mapped; every HDF5 reads them.
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
    """A file without a name, beside the one to be written, that gathers numbers in bounded memory.

    Args:
        folder: where it lies: the folder of the final file has room for it, the one for temporary files may not.
        dtype: of the numbers.
    """

    def __init__(self, folder: str, dtype: DTypeLike) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - `close` closes it
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._size = 0

    def append(self, numbers: NDArray[Any]) -> None:
        """Writes numbers behind those that are there."""
        self._file.write(_as_bytes(little_endian(numbers.astype(self._dtype, copy=False))))
        self._size += numbers.size

    def store(self, file: h5py.File, name: str, row_shape: tuple[int, ...], fingerprint: Fingerprint | None) -> None:
        """Copies everything into a new dataset `(..., *row_shape)`, hashing it where it was not hashed before."""
        row_size = math.prod(row_shape)
        num_rows = self._size // row_size if row_size else 0
        stored = create_dataset(file, name, (num_rows, *row_shape), self._dtype)
        self._file.seek(0)
        memory: NDArray[Any] | None = None  # the first block is the longest: fresh memory for each costs as much again
        for block in row_blocks(num_rows, row_size * self._dtype.itemsize):
            if memory is None:
                memory = np.empty((block.stop, *row_shape), self._dtype)
            part = memory[: block.stop - block.start]
            self._file.readinto(_as_bytes(part))
            if fingerprint is not None:
                fingerprint.add(part)
            stored[block] = part

    def close(self) -> None:
        """Drops the file."""
        self._file.close()


def _as_bytes(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data
