"""Open the one file of vectors in a zip archive.

Source of the format: PKWARE, APPNOTE.TXT.
"""

import contextlib
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from splitembed.errors import VectorFormatError
from splitembed.vectors.layouts import find_layout
from splitembed.vectors.read_checks import ReadChecks
from splitembed.vectors.streams.compressions import Head, decompressed, read_head
from splitembed.vectors.unreadable import ARCHIVES, ZIP, refusal

ZIP_MAGIC = re.compile(ZIP)
MAX_LISTED = 20

# Files that systems and authors put beside the vectors.
_EXTRA_FILES = re.compile(
    r"(?i)(.*/)?(__MACOSX/.*|\.[^/]*|(read_?me|licen[cs]e|copying|notice|changelog|thumbs\.db)[^/]*)"
)
# An archive may name a position before its first byte: OSError.
_UNREADABLE = (
    IndexError,
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    ValueError,
    EOFError,
    struct.error,
    zlib.error,
    OSError,
)


class Member(NamedTuple):
    """A file in an archive.

    Args:
        name: its name in the archive.
        content: its bytes, which may be compressed by a format inside the archive.
        size: bytes of content according to the archive.
    """

    name: str
    content: IO[bytes]
    size: int


@contextlib.contextmanager
def open_member(file: Any, path: str, member: str | None = None, dim: int | None = None) -> Iterator[Member]:
    """Open the one file of vectors in a zip archive.

    >>> import io
    >>> with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
    ...     archive.writestr("v.2d.txt", "the 1 2")
    ...     archive.writestr("v.3d.txt", "the 1 2 3")
    >>> with open_member(file, "v.zip", dim=3) as found:
    ...     found.name, found.content.read()
    ('v.3d.txt', b'the 1 2 3')

    Args:
        file: the archive, seekable.
        path: its name in messages.
        member: the file's name, with or without its folders; None takes the only file, apart from read-me files and
            files that systems add, or else the only one that holds vectors.
        dim: the dim of the vectors; None takes any.

    Yields:
        The member.

    Raises:
        VectorFormatError: no file or several files match (the message lists them); the archive is damaged,
            encrypted, or packed by a method that Python does not support.
    """
    with _archive(file, path) as archive:
        info = _choose(archive, path, member, dim)
        with _open(archive, info, path) as content:
            yield Member(info.filename, content, info.file_size)


def _archive(file: Any, path: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except _UNREADABLE as error:
        raise VectorFormatError(
            f"{path}: found a zip archive that is damaged or cut short ({error}); expected its list of files at its "
            "end. Download or copy the file again."
        ) from error


def _open(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str) -> IO[bytes]:
    if info.flag_bits & 1:
        raise VectorFormatError(
            f"{path}: found {info.filename} encrypted; expected a file without a password. Unpack the archive first."
        )
    try:
        return archive.open(info)
    except _UNREADABLE as error:
        raise VectorFormatError(
            f"{path}: found {info.filename} damaged, or packed by a method that Python cannot read ({error}); expected "
            "a zip archive of stored, deflate, bzip2 or LZMA data. Download the archive again, or "
            "unpack it with another tool."
        ) from error


def _choose(archive: zipfile.ZipFile, path: str, member: str | None, dim: int | None) -> zipfile.ZipInfo:
    # Python 3.10 and 3.11 cannot tell whether a member without a name is a folder.
    files = [info for info in archive.infolist() if info.filename and not info.is_dir()]
    if member is not None:
        return _named(files, path, member)
    names = {info.filename for info in files}
    for is_kind, foreign in ARCHIVES:
        if is_kind(names):
            raise refusal(path, foreign)
    candidates = [info for info in files if not _EXTRA_FILES.fullmatch(info.filename)]
    if len(candidates) == 1:
        return candidates[0]
    dims = {info: _dim(archive, info, path, dim) for info in candidates}
    fitting = [info for info, found in dims.items() if found]
    if len(fitting) == 1:
        return fitting[0]
    expected = "one file of vectors" if dim is None else f"one file of vectors of dim {dim}"
    found = [_describe(info, dims.get(info)) for info in files]
    raise _refusal(path, f"{len(fitting)} in a zip archive of {len(files)} files", expected, found)


def _named(files: list[zipfile.ZipInfo], path: str, member: str) -> zipfile.ZipInfo:
    whole = [info for info in files if info.filename == member]
    matches = whole or [info for info in files if info.filename.rpartition("/")[2] == member]
    if len(matches) == 1:
        return matches[0]
    found = f"{len(matches)} of {len(files)} files in a zip archive called {member!r}"
    raise _refusal(path, found, "one", [_describe(info) for info in files])


def _dim(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str, dim: int | None) -> int | None:
    """Return the dim of the vectors in a member; None if it holds no vectors, or vectors of another dim than `dim`."""
    name = f"{path}: {info.filename}"
    try:
        with _open(archive, info, path) as member:
            _, content = decompressed(member, name, "zip")
            head, is_all = read_head(content)
            return find_layout(Head(name, head, is_all, None), ReadChecks(name, dim=dim)).dim
    # Opening the member by its name reports what is wrong with it.
    except _UNREADABLE:
        return None


def _describe(info: zipfile.ZipInfo, dim: int | None = None) -> str:
    return f"{info.filename!r} ({info.file_size} bytes{f', dim {dim}' if dim else ''})"


def _refusal(path: str, found: str, expected: str, files: list[str]) -> VectorFormatError:
    if not files:
        return VectorFormatError(
            f"{path}: found {found}; expected {expected}. Pass an archive that holds a file of vectors."
        )
    rest = f"; and {len(files) - MAX_LISTED} others" if len(files) > MAX_LISTED else ""
    return VectorFormatError(
        f"{path}: found {found}; expected {expected}. Pass the name of one as `member`: "
        f"{'; '.join(files[:MAX_LISTED])}{rest}."
    )
