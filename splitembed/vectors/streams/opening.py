"""Opening a source of bytes by its content: a path or a file enters; its content leaves, with its first bytes."""

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

STANDARD_INPUT = "-"


@dataclass
class Stream(Head):
    """The content of a file, and what is known of it beforehand."""

    reader: BinaryIO  # from the first byte on, the head included
    is_sealed: bool  # a compression or an archive says where the content ends, so that nothing is missing unnoticed


@contextlib.contextmanager
def open_stream(
    source: Any, progress: bool | None = None, *, member: str | None = None, dim: int | None = None
) -> Iterator[Stream]:
    """Opens a file, plain, compressed or in a zip archive, whatever its name says.

    >>> from splitembed.data import sample_vectors_path
    >>> with open_stream(sample_vectors_path()) as stream:
    ...     stream.head[:4], stream.size
    (b'the ', None)
    >>> with open_stream(io.BytesIO(b"the 1 2")) as stream:
    ...     stream.path, stream.reader.read()
    ('the open file', b'the 1 2')

    Args:
        source: a path; "-" for standard input; or a file opened in binary mode, which is read from where it stands and
            left open. A pipe will do for either, but not for a zip archive.
        progress: whether to show a bar of bytes read; None shows it where a terminal watches.
        member: the name of the file inside a zip archive; None takes the only file of vectors.
        dim: of those vectors, to choose a file inside a zip archive by.

    Yields:
        The stream.

    Raises:
        OSError: as `open` raises it.
        VectorFormatError: content that is damaged or cut short; an archive of none or several files of vectors; a
            `member` of what is no archive; a file that was opened as text.
        ImportError: the library that reads Zstandard is missing.
    """
    path = name_source(source)
    with contextlib.ExitStack() as stack:
        file: Any = stack.enter_context(_open(source))
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


def name_source(source: Any) -> str:
    """What messages call a source of bytes.

    >>> name_source("-"), name_source("glove.txt"), name_source(io.BytesIO())
    ('standard input', 'glove.txt', 'the open file')

    Args:
        source: as for `open_stream`.
    """
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        return "standard input" if path == STANDARD_INPUT else path
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "the open file"


def _open(source: Any) -> contextlib.AbstractContextManager[Any]:
    if isinstance(source, (str, os.PathLike)) and os.fspath(source) != STANDARD_INPUT:
        return open(source, "rb")
    file = getattr(sys.stdin, "buffer", None) if isinstance(source, (str, os.PathLike)) else source
    name = name_source(source)
    if file is None:
        raise VectorFormatError(f"{name} is closed; expected bytes of vectors. Pass a path, or a file that is open.")
    if isinstance(file, io.TextIOBase):
        raise VectorFormatError(
            f"{name}: found a file that was opened as text; expected bytes. Open it with open(path, 'rb')."
        )
    return contextlib.nullcontext(file)


def _size_left(file: Any) -> int | None:
    """Bytes from where the file stands to its end, if it is a regular one: what else has a `fileno` may be decoded."""
    if isinstance(getattr(file, "raw", file), io.FileIO):
        status = os.fstat(file.fileno())
        return status.st_size - file.tell() if stat.S_ISREG(status.st_mode) else None
    return len(file.getbuffer()) - file.tell() if isinstance(file, io.BytesIO) else None


def _seekable(file: Any, path: str) -> Any:
    if hasattr(file, "seekable") and file.seekable():
        return file
    raise VectorFormatError(
        f"{path}: found a zip archive in a stream; expected a file, because the list of its members stands at its end. "
        "Save it as a file, or pipe one member: unzip -p ARCHIVE MEMBER."
    )


def _bar(name: str, size: int | None, progress: bool | None) -> Any:
    is_shown = progress if progress is not None else sys.stderr is not None and sys.stderr.isatty()
    return tqdm(total=size, desc=name, unit="B", unit_scale=True, disable=not is_shown)


class _Content(io.RawIOBase):
    """The decompressed bytes; damage becomes a VectorFormatError, and the bar follows the file's own bytes."""

    def __init__(self, path: str, compression: str, content: Any, counted: Counted, bar: Any) -> None:
        self._path, self._compression, self._content = path, compression, content
        self._counted, self._bar = counted, bar
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
        with damage_named(self._path, self._compression, self._num_bytes):
            count = int(self._content.readinto(buffer))
        self._num_bytes += count
        if not self._bar.disable:
            self._bar.update(self._counted.num_bytes - self._bar.n)
        return count
