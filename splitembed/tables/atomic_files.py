"""Our HDF5 files on disk: a path enters; an open file leaves, published whole when written, checked when read."""

import contextlib
import errno
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import h5py

from splitembed.errors import TableFormatError
from splitembed.tables.fields import OPENERS, PathLike, check_format, store_text, text_or_other

if sys.platform != "win32":
    import fcntl

LIBRARY_VERSIONS = ("v108", "v108")  # HDF5 1.8 of 2008 reads it, and its metadata carries checksums
HDF5_ERRORS = (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError)  # h5py raises each of them


@contextlib.contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """Gives a temporary name in the same folder, and renames what was written there once it is on the disk.

    Whoever opens `path` sees the old file or the new one, never half; an exception leaves the old one and nothing else.

    Args:
        path: the file to make or replace; a symbolic link stays, its target is replaced.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        raise OSError(errno.EINVAL, "A device or pipe, which a file would replace. Give the file a name", str(target))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
        _synchronize(temporary)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):  # the rename is done; some systems cannot synchronise the folder that holds it
        _synchronize(target.parent)


def refuse_foreign(path: PathLike) -> None:
    """Refuses to put a table in the place of a file that is none, such as the vectors it is made from.

    Raises:
        TableFormatError: there is such a file.
    """
    if not os.path.isfile(path) or not os.path.getsize(path):
        return
    is_foreign = not h5py.is_hdf5(path)
    if not is_foreign:
        with contextlib.suppress(*HDF5_ERRORS), h5py.File(path, "r") as file:  # what cannot be opened is no loss
            is_foreign = text_or_other(file, "format") not in OPENERS
    if is_foreign:
        raise TableFormatError(
            f"{os.fspath(path)} is there already, and is no table of splitembed: it would be lost. Give the table "
            "another name (is the order of arguments right?), or remove that file first."
        )


@contextlib.contextmanager
def publishing(path: PathLike, format_name: str, *, alignment: int = 1, version: int = 1) -> Iterator[h5py.File]:
    """Writes one of our files as `replacing` does.

    Args:
        path: the file to make or replace.
        format_name: what its attribute `format` says.
        alignment: multiple of bytes at which every object in the file starts.
        version: of the format, the oldest that can hold what will be written.

    Raises:
        TableFormatError: `path` is a file that is no table of ours.
    """
    refuse_foreign(path)
    layout = {"alignment_threshold": 1, "alignment_interval": alignment, "libver": LIBRARY_VERSIONS}
    with replacing(path) as temporary, h5py.File(temporary, "x", **layout) as file:
        store_text(file, format=format_name)
        file.attrs["format_version"] = version
        yield file


def _synchronize(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def reading(path: PathLike, format_name: str) -> Iterator[h5py.File]:
    """Opens one of our files for reading, and closes it; what goes wrong inside becomes a TableFormatError.

    Args:
        path: the file.
        format_name: what its attribute `format` must say.

    Raises:
        FileNotFoundError, PermissionError, IsADirectoryError: as `open` raises them.
        TableFormatError: not one of our files, damaged, too new, or being written.
    """
    with open(path, "rb") as stream:
        _refuse_while_written(stream.fileno(), path)
        try:
            with h5py.File(path, "r") as file:
                check_format(file, format_name)
                yield file
        except TableFormatError:
            raise
        except HDF5_ERRORS as error:
            raise TableFormatError(_what_is_wrong(path, stream, error)) from error


def _refuse_while_written(descriptor: int, path: PathLike) -> None:
    """Takes the lock that HDF5 takes: HDF5 itself lets a reader in beside a writer of the same process."""
    if sys.platform == "win32":  # HDF5's own lock has to do
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise TableFormatError(
            f"{os.fspath(path)} is open for writing elsewhere, so what it holds now may be half of a table. Open it "
            "again when the writer has closed it. (splitembed itself writes beside a file and replaces it whole.)"
        ) from None
    except OSError:  # a file system without locks: HDF5 goes on without them as well
        pass


def _what_is_wrong(path: PathLike, stream: BinaryIO, error: Exception) -> str:
    where, size = os.fspath(path), os.fstat(stream.fileno()).st_size
    stream.seek(0)
    head = stream.read(16)
    if not size:
        return f"{where} is empty (0 bytes); expected a table written by splitembed."
    if "signature not found" in str(error):
        return (
            f"{where} is not an HDF5 file: it starts with {head!r}. Expected a table written by splitembed; "
            "foreign files of vectors are for read_vectors."
        )
    if "truncated" in str(error):
        return f"{where} is cut short: {size} bytes are left of it ({error}). Copy or write it again."
    return f"{where} cannot be read as a table: {type(error).__name__}: {error}. Copy or write it again."
