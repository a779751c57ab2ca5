"""Compressed data told by its content: a file enters; its content leaves, decompressed, and the compression's name."""

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

# measured: smaller ones make threads wait for each other, larger ones leave the cache
CHUNK_BYTES = 1 << 20
HEAD_BYTES = 1 << 20
# where the first two lines are longer than HEAD_BYTES
LONG_HEAD_BYTES = 1 << 26
MAGIC_BYTES = 16
MOST_LAYERS = 2  # of compression around each other: a file can be made that decompresses to itself

COMPRESSIONS = (  # magic numbers of RFC 1952, of bzip2 with its first block or end, of the .xz format and of RFC 8878
    (re.compile(rb"\x1f\x8b"), "gzip", lambda file, path: gzip.GzipFile(fileobj=file)),
    (re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), "bzip2", lambda file, path: Frames(file, bz2.BZ2Decompressor)),
    (re.compile(rb"\xfd7zXZ\x00"), "xz", lambda file, path: Frames(file, lzma.LZMADecompressor)),
    (re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), "Zstandard", open_zstd),
)
DAMAGE = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, OSError)


@dataclass
class Head:
    """How a file begins, and what is known of it beforehand."""

    path: str  # what messages call it: a path, "standard input", "glove.zip: glove.6B.50d.txt"
    head: bytes  # the first bytes, at least two lines of them where there are two
    head_is_all: bool  # nothing comes after the head
    size: int | None  # bytes of content where the file tells: an uncompressed, regular one


class Counted(io.RawIOBase):
    """A file's bytes from where it stands, counted; closing it leaves the file open.

    >>> counted = Counted(io.BytesIO(b"the 1 2"))
    >>> counted.read(3), counted.num_bytes
    (b'the', 3)

    Args:
        file: anything with `readinto` or `read`.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._has_readinto = hasattr(file, "readinto")
        self.num_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._read(memoryview(buffer))
        # A pipe may give one byte at first; the magic number is to be seen whole.
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
    """Looks at a file's first bytes and takes its compression off, and one more inside.

    >>> name, content = decompressed(io.BytesIO(gzip.compress(b"the 1 2")), "glove.txt")
    >>> name, content.read()
    ('gzip', b'the 1 2')

    Args:
        file: anything with `readinto` or `read`.
        path: what messages call it.
        archive: the name of what the file is in.

    Returns:
        The name of the compression and archive, "" for none, and the content.

    Raises:
        VectorFormatError: the compressed data is damaged at its start.
        ImportError: a library to read it is missing.
    """
    names = [archive] if archive else []
    content: Any = io.BufferedReader(Counted(file), BUFFER_BYTES)
    for _ in range(MOST_LAYERS):
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
    """Reads the first bytes.

    >>> read_head(io.BytesIO(b"the 1 2"))
    (b'the 1 2', True)

    Args:
        reader: at its first byte.

    Returns:
        The bytes, and whether they are all that there are.
    """
    head = bytearray()
    enough = HEAD_BYTES
    while chunk := reader.read(enough - len(head)):
        head += chunk
        if len(head) == enough:
            if enough == LONG_HEAD_BYTES or head.count(b"\n") >= 2:
                break
            enough *= 2
    return bytes(head), not chunk


@contextlib.contextmanager
def damage_named(path: str, compression: str, place: int) -> Iterator[None]:
    """Makes one error of whatever a decompressor raises, but for what is the disk's fault.

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
            f"{path}, byte {place} after decompression: found {compression or 'compressed'} data that is damaged or "
            f"cut short ({error}); expected it up to its end mark. Download or copy the file again."
        ) from error
