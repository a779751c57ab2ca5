"""Recognize and remove a file's compression, and read the first bytes of its content."""

import bz2
import contextlib
import gzip
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from splitembed.errors import VectorFormatError
from splitembed.vectors.streams.frames import BUFFER_BYTES, Frames, open_zstd

# Measured: with smaller chunks threads wait for each other, larger ones exceed the processor's cache.
CHUNK_BYTES = 1 << 20
HEAD_BYTES = 1 << 20
# Where the first two lines are longer than HEAD_BYTES. Rows of 80,000 numbers fit. Longer lines are refused, because a
# gzip of 65 kB can hold two lines of 16 million numbers.
LONG_HEAD_BYTES = 1 << 21
MAGIC_BYTES = 16
# Nested compressions. There is a limit because a file can be made that decompresses to itself.
MAX_LAYERS = 2

# Magic numbers of RFC 1952, of bzip2 with its first block or its end, of the .xz format and of RFC 8878.
COMPRESSIONS = (
    (re.compile(rb"\x1f\x8b"), "gzip", lambda file, path: gzip.GzipFile(fileobj=file)),
    (re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), "bzip2", lambda file, path: Frames(file, bz2.BZ2Decompressor)),
    (re.compile(rb"\xfd7zXZ\x00"), "xz", lambda file, path: Frames(file, lzma.LZMADecompressor)),
    (re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), "Zstandard", open_zstd),
)
DAMAGE = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, OSError)


@dataclass
class Head:
    """The first bytes of a file.

    Args:
        path: the file's name in messages: a path, "standard input", "glove.zip: glove.6B.50d.txt".
        head: the first bytes, at least two lines where the file has two.
        head_is_all: whether the file ends with the head.
        size: bytes of content; None where they are unknown: in a stream or in a compressed file.
    """

    path: str
    head: bytes
    head_is_all: bool
    size: int | None


class Counted(io.RawIOBase):
    """A file that counts the bytes read from it; closing it leaves the underlying file open.

    >>> counted = Counted(io.BytesIO(b"the 1 2"))
    >>> counted.read(3), counted.num_bytes
    (b'the', 3)

    Args:
        file: any object with `readinto` or `read`, read from its current position.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._has_readinto = hasattr(file, "readinto")
        self.num_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._read(memoryview(buffer))
        # A pipe may return one byte at first, but the magic number must be read whole.
        while 0 < self.num_bytes < MAGIC_BYTES and (more := self._read(memoryview(buffer)[count:])):
            count += more
        return count

    def _read(self, buffer: memoryview) -> int:
        if self._has_readinto:
            count = int(self._file.readinto(buffer))
        else:
            data = self._file.read(len(buffer))
            count = len(data)
            buffer[:count] = data
        self.num_bytes += count
        return count


def decompressed(file: Any, path: str, archive: str = "") -> tuple[str, io.BufferedReader]:
    """Remove the compression that a file's first bytes name, and a second one inside it.

    >>> name, content = decompressed(io.BytesIO(gzip.compress(b"the 1 2")), "glove.txt")
    >>> name, content.read()
    ('gzip', b'the 1 2')

    Args:
        file: any object with `readinto` or `read`.
        path: its name in messages.
        archive: the name of the archive format around the file; "" for none.

    Returns:
        The name of the compression and archive ("" for none), and the content.

    Raises:
        VectorFormatError: the compressed data is damaged at its start.
        ImportError: the library that decompresses it is not installed.
    """
    names = [archive] if archive else []
    content: Any = io.BufferedReader(Counted(file), BUFFER_BYTES)
    for _ in range(MAX_LAYERS):
        with damage_named(path, " in ".join(names), 0):
            magic = content.peek(MAGIC_BYTES)
        found = next((each for each in COMPRESSIONS if each[0].match(magic)), None)
        if found is None:
            break
        _, name, opener = found
        content = io.BufferedReader(Counted(opener(content, path)), BUFFER_BYTES)
        names.insert(0, name)
    return " in ".join(names), content


def read_head(reader: io.RawIOBase | io.BufferedIOBase) -> tuple[bytes, bool]:
    """Read the first bytes of a file: 1 MiB, or more until they hold two lines.

    >>> read_head(io.BytesIO(b"the 1 2"))
    (b'the 1 2', True)

    Args:
        reader: positioned at its first byte.

    Returns:
        The bytes, and whether the file ends with them.
    """
    head = bytearray()
    num_bytes = HEAD_BYTES
    while chunk := reader.read(num_bytes - len(head)):
        head += chunk
        if len(head) == num_bytes:
            if num_bytes == LONG_HEAD_BYTES or head.count(b"\n") >= 2:
                break
            num_bytes *= 2
    return bytes(head), not chunk


@contextlib.contextmanager
def damage_named(path: str, compression: str, position: int) -> Iterator[None]:
    """Convert the errors of a decompressor to VectorFormatError; errors of the disk are raised as they are.

    >>> with damage_named("glove.txt", "gzip", 7):
    ...     raise EOFError("no end mark")
    Traceback (most recent call last):
    splitembed.errors.VectorFormatError: glove.txt, byte 7 after decompression: found gzip data that is damaged or cut
    short (no end mark); expected it up to its end mark. Download or copy the file again.
    """
    try:
        yield
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise VectorFormatError(
            f"{path}, byte {position} after decompression: found {compression or 'compressed'} data that is damaged or "
            f"cut short ({error}); expected it up to its end mark. Download or copy the file again."
        ) from error
