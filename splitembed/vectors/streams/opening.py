"""Open a file of vectors, plain, compressed or in a zip archive, and read its first bytes."""

import contextlib
import io
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from tqdm import tqdm

from splitembed.errors import VectorFormatError
from splitembed.paths import name_source, open_bytes
from splitembed.vectors.streams import compressions
from splitembed.vectors.streams.archives import ZIP_MAGIC, open_member
from splitembed.vectors.streams.compressions import (
    MAGIC_BYTES,
    Counted,
    Head,
    damage_named,
    decompressed,
    read_head,
)


@dataclass
class Stream(Head):
    """The content of a file, and its first bytes.

    Args:
        reader: the content from its first byte on, including the head.
        is_sealed: whether a compression or an archive marks the end of the content, so that a file that is cut short
            is noticed.
    """

    reader: BinaryIO
    is_sealed: bool


@contextlib.contextmanager
def open_stream(
    source: Any, progress: bool | None = None, *, member: str | None = None, dim: int | None = None
) -> Iterator[Stream]:
    """Open a file, plain, compressed or in a zip archive. Its content decides which, not its name.

    >>> from splitembed.data import sample_vectors_path
    >>> with open_stream(sample_vectors_path()) as stream:
    ...     stream.head[:4], stream.size
    (b'the ', None)
    >>> with open_stream(io.BytesIO(b"the 1 2")) as stream:
    ...     stream.path, stream.reader.read()
    ('the open file', b'the 1 2')

    Args:
        source: a path; "-" for standard input; or a file opened in binary mode, which is read from its current
            position and left open. Each may be a pipe, except for zip archives.
        progress: whether to show a progress bar of the bytes read; None shows it where standard error is a terminal.
        member: the name of the file inside a zip archive; None takes the only file of vectors.
        dim: the dim of the vectors, to choose a file inside a zip archive.

    Yields:
        The stream.

    Raises:
        OSError: the file cannot be opened or read.
        VectorFormatError: the content is damaged or cut short; an archive holds no file of vectors or several; `member`
            is given without an archive.
        SplitError: the file was opened as text, or is remote.
        ImportError: the library that decompresses Zstandard is not installed.
    """
    path = name_source(source)
    with contextlib.ExitStack() as stack:
        file: Any = stack.enter_context(open_bytes(source))
        size = _size_left(file)
        counted = Counted(file)
        content: Any = io.BufferedReader(counted, MAGIC_BYTES)
        is_zip = ZIP_MAGIC.match(content.peek(MAGIC_BYTES)) is not None
        if is_zip:
            found = stack.enter_context(open_member(_seekable(file, path), path, member, dim))
            path, size, counted = f"{path}: {found.name}", found.size, Counted(found.content)
            content = counted
        elif member is not None:
            raise VectorFormatError(
                f"{path}: found no zip archive; expected one, because of member={member!r}. Leave `member` out."
            )
        compression, content = decompressed(content, path, "zip" if is_zip else "")
        bar = stack.enter_context(_bar(os.path.basename(path), size, progress))
        raw = _Content(path, compression, content, counted, bar)
        head, is_all = read_head(raw)
        raw.unread(head)
        reader: Any = io.BufferedReader(raw, compressions.CHUNK_BYTES)
        yield Stream(path, head, is_all, None if compression else size, reader, bool(compression))


def _size_left(file: Any) -> int | None:
    """Return the bytes from a file's position to its end; None unless it is a regular file or held in memory.

    Other objects with a `fileno`, such as `gzip.GzipFile`, may hold other bytes than the file on disk.
    """
    if isinstance(getattr(file, "raw", file), io.FileIO):
        status = os.fstat(file.fileno())
        return status.st_size - file.tell() if stat.S_ISREG(status.st_mode) else None
    return len(file.getbuffer()) - file.tell() if isinstance(file, io.BytesIO) else None


def _seekable(file: Any, path: str) -> Any:
    if hasattr(file, "seekable") and file.seekable():
        return file
    raise VectorFormatError(
        f"{path}: found a zip archive in a stream; expected a file, because the list of members is at the end of an "
        "archive. Save it as a file, or pipe one member: unzip -p ARCHIVE MEMBER."
    )


def _bar(name: str, size: int | None, progress: bool | None) -> Any:
    is_shown = progress if progress is not None else sys.stderr is not None and sys.stderr.isatty()
    return tqdm(total=size, desc=name, unit="B", unit_scale=True, disable=not is_shown)


class _Content(io.RawIOBase):
    """The decompressed bytes, which update the progress bar; errors of decompression become VectorFormatError."""

    def __init__(self, path: str, compression: str, content: Any, counted: Counted, bar: Any) -> None:
        self._path, self._compression, self._content = path, compression, content
        self._counted, self._bar = counted, bar
        self._num_bytes = 0
        self._unread = memoryview(b"")

    def readable(self) -> bool:
        return True

    def unread(self, head: bytes) -> None:
        """Put the first bytes back, to be read a second time."""
        self._unread = memoryview(head)

    def readinto(self, buffer: Any) -> int:
        if self._unread:
            count = min(len(buffer), len(self._unread))
            buffer[:count], self._unread = self._unread[:count], self._unread[count:]
            return count
        with damage_named(self._path, self._compression, self._num_bytes):
            count = int(self._content.readinto(buffer))
        self._num_bytes += count
        if not self._bar.disable:
            self._bar.update(self._counted.num_bytes - self._bar.n)
        return count
