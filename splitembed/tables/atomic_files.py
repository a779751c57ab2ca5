"""Our HDF5 files on disk: written under a temporary name and renamed, and checked when they are opened."""

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
from splitembed.paths import local_path
from splitembed.tables.fields import OPENERS, PathLike, check_format, store_text, text_or_other

if sys.platform != "win32":
    import fcntl

# The oldest format with checksums of its metadata, readable since 2008.
LIBRARY_VERSIONS = ("v108", "v108")
# h5py raises each of them for damaged files.
HDF5_ERRORS = (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError)


@contextlib.contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """Yield a temporary path in the same folder, and rename the file written there once it is on the disk.

    A reader of `path` sees the old file or the new one, never half. An exception leaves only the old one.

    Args:
        path: the file to make or replace; of a symbolic link the target is replaced.

    Raises:
        OSError: `path` is a device or a pipe.
    """
    target = _target(path)
    if target.exists() and not target.is_file() and not target.is_dir():
        raise OSError(errno.EINVAL, "A device or pipe cannot be replaced. Pass the name of a file", str(target))
    writable_folder(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
        _synchronize(temporary)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    # The rename is done, and some systems cannot synchronise a folder.
    with contextlib.suppress(OSError):
        _synchronize(target.parent)


def writable_folder(path: PathLike) -> Path:
    """Return the folder that holds a file to write, of a symbolic link the folder of its target.

    The check comes before any temporary file is made, whose name would mean nothing to the caller.

    >>> writable_folder("no such folder/frozen.h5")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] The folder of this file does not exist. Make it first, or check the path:
    'no such folder/frozen.h5'

    Raises:
        FileNotFoundError, PermissionError: no file can be made there; the message names `path`.
    """
    folder = _target(path).parent
    if not folder.is_dir():
        message = "The folder of this file does not exist. Make it first, or check the path"
        raise FileNotFoundError(errno.ENOENT, message, os.fspath(path))
    if not os.access(folder, os.W_OK | os.X_OK):
        message = "The folder of this file cannot be written. Change its permissions, or pass another path"
        raise PermissionError(errno.EACCES, message, os.fspath(path))
    return folder


def _target(path: PathLike) -> Path:
    return Path(os.path.realpath(local_path(path)))


def refuse_foreign(path: PathLike, format_name: str) -> None:
    """Refuse to replace a file of another format, such as the vectors that a table is made from.

    Args:
        path: the file to make or replace.
        format_name: the format that it will have.

    Raises:
        TableFormatError: `path` is a file of another format, or a table of the other kind.
    """
    path = local_path(path)
    if not path.is_file() or not path.stat().st_size:
        return
    found: object = None
    if h5py.is_hdf5(path):
        # A file that cannot be opened is not worth keeping.
        found = format_name
        with contextlib.suppress(*HDF5_ERRORS), h5py.File(path, "r") as file:
            found = text_or_other(file, "format")
    if found == format_name:
        return
    kind = f"a table of the format {found}" if found in OPENERS else "not a table of splitembed"
    raise TableFormatError(
        f"{path} exists and is {kind}; it would be lost. Pass another name (check the order of the arguments), or "
        "remove that file first."
    )


@contextlib.contextmanager
def publishing(path: PathLike, format_name: str, *, alignment: int = 1, version: int = 1) -> Iterator[h5py.File]:
    """Write one of our files as `replacing` does.

    Args:
        path: the file to make or replace.
        format_name: its attribute `format`.
        alignment: every object in the file starts at a multiple of so many bytes.
        version: of the format, the oldest that can hold the data.

    Raises:
        TableFormatError: `path` is a file of another format.
    """
    path = local_path(path)
    refuse_foreign(path, format_name)
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
    """Open one of our files for reading; errors of HDF5 become a TableFormatError.

    Args:
        path: the file.
        format_name: the expected attribute `format`.

    Raises:
        FileNotFoundError, PermissionError, IsADirectoryError: as `open` raises them.
        TableFormatError: the file is foreign, damaged, too new, or being written.
    """
    path = local_path(path)
    with open(path, "rb") as stream:
        _refuse_while_written(stream.fileno(), path)
        try:
            with h5py.File(path, "r") as file:
                check_format(file, format_name)
                yield file
        except TableFormatError:
            raise
        except HDF5_ERRORS as error:
            raise TableFormatError(_fault(path, stream, error)) from error


def _refuse_while_written(descriptor: int, path: PathLike) -> None:
    """Take the lock of HDF5, which HDF5 itself does not check between a reader and a writer of one process."""
    # Windows has only the lock that HDF5 takes itself.
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise TableFormatError(
            f"{os.fspath(path)} is open for writing elsewhere, so it may be incomplete. Open it again when the writer "
            "has closed it. (splitembed itself never writes into an existing file, but replaces it.)"
        ) from None
    # The file system has no locks; HDF5 goes on without them too.
    except OSError:
        pass


def _fault(path: PathLike, stream: BinaryIO, error: Exception) -> str:
    where, size = os.fspath(path), os.fstat(stream.fileno()).st_size
    stream.seek(0)
    head = stream.read(16)
    if not size:
        return f"{where} is empty (0 bytes); expected a table written by splitembed. Copy or write it again."
    if "signature not found" in str(error):
        return (
            f"{where} is not an HDF5 file: it starts with {head!r}; expected a table written by splitembed. Use "
            "read_vectors for other files of vectors."
        )
    if "truncated" in str(error):
        return f"{where} is cut short: only {size} bytes are left ({error}). Copy or write it again."
    return f"{where} cannot be read as a table: {type(error).__name__}: {error}. Copy or write it again."
