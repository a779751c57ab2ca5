"""Files that are written under a temporary name and renamed, so that a reader sees the old file or the new one."""

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from splitembed.errors import TableFormatError
from splitembed.paths import local_path
from splitembed.tables.fields import OPENERS, PathLike
from splitembed.tables.head import MAGIC
from splitembed.tables.table_file import format_of

if sys.platform != "win32":
    import fcntl

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.tmp(\.keras)?")


@contextlib.contextmanager
def replacing(path: PathLike, suffix: str = "") -> Iterator[Path]:
    """Yield an empty temporary file in the same folder, and rename what was written to it once it is on the disk.

    A reader of `path` sees the old file or the new one, never half. An exception leaves only the old one. The new file
    gets the mode and, where allowed, the owner of the old one. What a writer that was killed left in the folder is
    removed.

    Args:
        path: the file to make or replace; of a symbolic link the target is replaced.
        suffix: of the temporary name, "" or ".keras".

    Raises:
        OSError: `path` is a device or a pipe.
    """
    target = _target(path)
    if target.exists() and not target.is_file() and not target.is_dir():
        raise OSError(errno.EINVAL, "A device or pipe cannot be replaced. Pass the name of a file", str(target))
    _remove_leftovers(writable_folder(path))
    temporary, descriptor = _locked_temporary(target, suffix)
    try:
        yield temporary
        _keep_rights(target, temporary)
        _synchronize(temporary)
        if sys.platform == "win32":
            # Open files have no other name there.
            os.close(descriptor)
            descriptor = -1
        os.replace(temporary, target)
    except BaseException:
        if sys.platform == "win32" and descriptor >= 0:
            os.close(descriptor)
            descriptor = -1
        temporary.unlink(missing_ok=True)
        raise
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    synchronize_folder(target.parent)


def synchronize_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    with contextlib.suppress(OSError):
        _synchronize(folder)


def _synchronize(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _locked_temporary(target: Path, suffix: str) -> tuple[Path, int]:
    """Make a temporary file, and hold a lock that says that its writer is alive: a reader's, so that it can be read."""
    while True:
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp{suffix}")
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        if sys.platform == "win32":
            return temporary, descriptor
        # Network file systems may have no locks.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        # Another writer may have taken it for a leftover before it was locked.
        if temporary.exists():
            return temporary, descriptor
        os.close(descriptor)


def _remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of writers that are no longer alive."""
    with contextlib.suppress(OSError):
        for name in filter(_TEMPORARY.fullmatch, os.listdir(folder)):
            with contextlib.suppress(OSError):
                _remove_if_unlocked(folder / name)


def _remove_if_unlocked(path: Path) -> None:
    if sys.platform == "win32":
        # An open file cannot be removed there.
        path.unlink()
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    finally:
        os.close(descriptor)


def _keep_rights(target: Path, temporary: Path) -> None:
    if not target.is_file():
        return
    status = target.stat()
    # Only an administrator can give files away.
    with contextlib.suppress(OSError, AttributeError):
        os.chown(temporary, status.st_uid, status.st_gid)
    with contextlib.suppress(OSError):
        os.chmod(temporary, stat.S_IMODE(status.st_mode))


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
    found = format_of(path)
    # A table whose head cannot be read is not worth keeping.
    if found == format_name or (found is None and _starts_like_ours(path)):
        return
    kind = f"a table of the format {found}" if found in OPENERS else "not a table of splitembed"
    raise TableFormatError(
        f"{path} exists and is {kind}; it would be lost. Pass another name (check the order of the arguments), or "
        "remove that file first."
    )


def _starts_like_ours(path: Path) -> bool:
    with open(path, "rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Wait until no other process or thread writes a pair of tables into a folder; where it has no locks, go on."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
