"""A temporary file for blocks of numbers whose total is not known in advance."""

import math
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from splitembed.tables.fingerprints import little_endian, row_blocks


class Spool:
    """A nameless temporary file that collects numbers in bounded memory.

    Args:
        folder: of the final file, which has room, while the system's folder for temporary files may be small.
        dtype: of the numbers.
    """

    def __init__(self, folder: str, dtype: DTypeLike) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.size = 0

    def append(self, numbers: NDArray[Any]) -> None:
        """Append numbers."""
        self._file.write(_as_bytes(little_endian(numbers.astype(self.dtype, copy=False))))
        self.size += numbers.size

    def blocks(self, row_shape: tuple[int, ...]) -> Iterator[NDArray[Any]]:
        """Yield all numbers as blocks `(num_rows, *row_shape)`; the memory of each is used again for the next."""
        row_size = math.prod(row_shape)
        self._file.seek(0)
        memory: NDArray[Any] | None = None
        for block in row_blocks(self.size // row_size if row_size else 0, row_size * self.dtype.itemsize):
            # The first block is the longest. New memory for each would double the time.
            if memory is None:
                memory = np.empty((block.stop, *row_shape), self.dtype)
            part = memory[: block.stop - block.start]
            self._file.readinto(_as_bytes(part))
            yield part

    def close(self) -> None:
        """Delete the file."""
        self._file.close()


def _as_bytes(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data
