"""Opening a file by its content: a path enters; its bytes leave, decompressed, with the first of them to look at."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from tqdm import tqdm

from splitembed.errors import VectorFormatError

CHUNK_BYTES = 1 << 20  # measured: smaller ones make threads wait for each other, larger ones leave the cache
HEAD_BYTES = 1 << 20
LONG_HEAD_BYTES = 1 << 26  # where the first two lines are longer than HEAD_BYTES
KEPT_BYTES = 1 << 22

COMPRESSIONS = (  # magic numbers of RFC 1952, of bzip2 with its first block or end, and of the .xz format
    (re.compile(rb"\x1f\x8b"), "gzip", lambda file: gzip.GzipFile(fileobj=file)),
    (re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), "bzip2", bz2.BZ2File),
    (re.compile(rb"\xfd7zXZ\x00"), "xz", lzma.LZMAFile),
)


@dataclass
class Stream:
    """The content of a file, and what is known of it beforehand."""

    path: str
    reader: BinaryIO  # from the first byte on, the head included
    head: bytes  # the first bytes, at least two lines of them where there are two
    head_is_all: bool  # nothing comes after the head
    size: int | None  # bytes of content where the file tells: an uncompressed, regular one


@contextlib.contextmanager
def open_stream(path: str | os.PathLike[str], progress: bool | None = None) -> Iterator[Stream]:
    """Opens a file, plain or compressed, whatever its name says.

    >>> from splitembed.data import sample_vectors_path
    >>> with open_stream(sample_vectors_path()) as stream:
    ...     stream.head[:4], stream.size
    (b'the ', None)

    Args:
        path: the file; a pipe will do.
        progress: whether to show a bar of bytes read; None shows it where a terminal watches.

    Raises:
        OSError: as `open` raises it.
        VectorFormatError: compressed content that is damaged or cut short.
    """
    name = os.fspath(path)
    _keep_freed_memory()
    with open(path, "rb") as file:
        compression, content = _decompressed(file)
        size = _size(file)
        with tqdm(
            total=size, desc=os.path.basename(name), unit="B", unit_scale=True, disable=not _is_shown(progress)
        ) as bar:
            raw = _Content(name, compression, content, file, bar)
            head, is_all = _read_head(raw)
            reader = io.BufferedReader(raw, CHUNK_BYTES)
            yield Stream(name, reader, head, is_all, None if compression else size)


def _keep_freed_memory() -> None:
    """Keeps the C library from handing the arrays of each chunk back to the system and fetching their pages anew.

    glibc learns from one large block that is freed, untouched as it may be: from then on it keeps that much, see
    M_MMAP_THRESHOLD in mallopt(3). Measured: chunks are parsed up to four times as fast. Elsewhere it does nothing.
    """
    np.empty(KEPT_BYTES - 4096, np.uint8)


def _decompressed(file: io.BufferedReader) -> tuple[str, Any]:
    """The name of the compression, "" for none, and a file object on the content."""
    magic = file.peek(16)
    for pattern, name, opener in COMPRESSIONS:
        if pattern.match(magic):
            return name, opener(file)
    return "", file


def _size(file: BinaryIO) -> int | None:
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _is_shown(progress: bool | None) -> bool:
    return progress if progress is not None else sys.stderr is not None and sys.stderr.isatty()


class _Content(io.RawIOBase):
    """The decompressed bytes; damage becomes a VectorFormatError, and the bar follows the file's own bytes."""

    def __init__(self, path: str, compression: str, content: Any, file: io.BufferedReader, bar: Any) -> None:
        self._path, self._compression, self._content, self._bar = path, compression, content, bar
        self._file, self._has_place = file, file.seekable()
        self._num_bytes = 0
        self._again = memoryview(b"")

    def readable(self) -> bool:
        return True

    def unread(self, head: bytes) -> None:
        """Lets the first bytes be read once more."""
        self._again = memoryview(head)

    def readinto(self, buffer: Any) -> int:
        if self._again:
            count = min(len(buffer), len(self._again))
            buffer[:count], self._again = self._again[:count], self._again[count:]
            return count
        count = self._read_content(buffer)
        self._num_bytes += count
        if not self._bar.disable:
            self._bar.update((self._file.tell() if self._has_place else self._num_bytes) - self._bar.n)
        return count

    def _read_content(self, buffer: Any) -> int:
        try:
            return int(self._content.readinto(buffer))
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the disk's fault, not the content's
            raise VectorFormatError(
                f"{self._path}, byte {self._num_bytes} after decompression: found {self._compression} data that is "
                f"damaged or cut short ({error}); expected it up to its end mark. Download or copy the file again."
            ) from error


def _read_head(raw: _Content) -> tuple[bytes, bool]:
    head = bytearray()
    enough = HEAD_BYTES
    while chunk := raw.read(enough - len(head)):
        head += chunk
        if len(head) == enough:
            if enough == LONG_HEAD_BYTES or head.count(b"\n") >= 2:
                break
            enough *= 2
    raw.unread(bytes(head))
    return bytes(head), not chunk
