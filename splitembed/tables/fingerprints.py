"""Fingerprints of arrays, the same on every machine.

All numbers are hashed as little-endian bytes in C order, independent of the byte order and layout of the array.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.tables.storage import storage_of
from splitembed.words import Packed, pack_words

# Large enough to hash and copy at full speed, and small compared with a table.
BLOCK_BYTES = 1 << 22


def row_blocks(num_rows: int, row_bytes: int) -> Iterator[slice]:
    """Return consecutive blocks of `num_rows` rows, of about 4 MiB and at least one row each.

    >>> list(row_blocks(10, 1_000_000))
    [slice(0, 4, None), slice(4, 8, None), slice(8, 10, None)]
    """
    step = max(1, BLOCK_BYTES // max(1, row_bytes))
    return (slice(start, min(start + step, num_rows)) for start in range(0, num_rows, step))


def little_endian(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array as C-contiguous and little-endian, without a copy if it is.

    >>> little_endian(np.array([1, 2], ">u2")).tobytes()
    b'\\x01\\x00\\x02\\x00'
    """
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


class Fingerprint:
    """A fingerprint computed block by block, so that a table need not fit into memory.

    >>> whole, parts = Fingerprint(), Fingerprint()
    >>> whole.add(np.arange(4.0)); parts.add(np.arange(2.0)); parts.add(np.arange(2.0, 4.0))
    >>> whole.finish("float64 4x1") == parts.finish("float64 4x1")
    True
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, array: NDArray[Any]) -> None:
        """Hash one block of numbers."""
        self._hash.update(little_endian(array).reshape(-1).view(np.uint8).data)

    def add_in_blocks(self, array: Any) -> None:
        """Hash an array, a memory map or a dataset of a file, about 4 MiB at a time."""
        row_bytes = array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
        for block in row_blocks(len(array), row_bytes):
            self.add(array[block])

    def finish(self, description: str = "") -> str:
        """Hash an ASCII description and return the fingerprint.

        The description comes last, because a streaming writer does not know the number of rows before.
        """
        self._hash.update(description.encode("ascii"))
        return "sha256:" + self._hash.hexdigest()


def describe_rows(dtype: str, num_rows: int, dim: int) -> str:
    """Return the description of rows that completes their fingerprint.

    >>> describe_rows("float32", 400_000, 50)
    'float32 400000x50'
    """
    return f"{dtype} {num_rows}x{dim}"


def fingerprint_rows(vectors: Any, scale: Any = None) -> str:
    """Return the fingerprint of stored rows: of their bytes, the bytes of the scale, and `describe_rows`.

    >>> fingerprint_rows(np.zeros((2, 3), np.float32))[:20]
    'sha256:d11139ec5297e'

    Args:
        vectors: `(num_rows, dim)` float32, float16, uint16 (bfloat16) or int8; an array, a memory map or a dataset.
        scale: float32 `(num_rows,)` with int8, else None.

    Returns:
        `sha256:` and 64 hexadecimal digits.
    """
    fingerprint = Fingerprint()
    fingerprint.add_in_blocks(vectors)
    if scale is not None:
        fingerprint.add_in_blocks(scale)
    return fingerprint.finish(describe_rows(storage_of(vectors.dtype).name, *vectors.shape))


def fingerprint_words(words: Iterable[str]) -> str:
    """Return the fingerprint of words: of their bytes, then their offsets as uint64.

    >>> fingerprint_words(["the", "of"])[:20]
    'sha256:87f0e00d4fcad'

    Args:
        words: strings, or `Words`, which are not decoded for this.

    Returns:
        `sha256:` and 64 hexadecimal digits.
    """
    return fingerprint_packed(pack_words(words))


def fingerprint_packed(packed: Packed) -> str:
    """Return the fingerprint of packed words, as `fingerprint_words` does."""
    fingerprint = Fingerprint()
    for array in packed:
        fingerprint.add(array)
    return fingerprint.finish()


def fingerprint_remap(remap: NDArray[Any]) -> str:
    """Return the fingerprint of a remap: of its int32 bytes.

    >>> fingerprint_remap(np.array([0, -1, 1]))[:20]
    'sha256:4e65c75c0db60'

    Args:
        remap: `(num_tokens,)` integers that fit int32.

    Returns:
        `sha256:` and 64 hexadecimal digits.
    """
    fingerprint = Fingerprint()
    fingerprint.add(np.asarray(remap).astype(np.int32, copy=False))
    return fingerprint.finish()
