"""Where frozen tables are kept: a fingerprint enters; the files that hold that table leave.

Many small trainable tables stand on one frozen table, which is not always where it was when they were written. The
environment variable SPLITEMBED_PATH lists the folders to look in, separated as in PATH.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from splitembed.errors import TableFormatError
from splitembed.tables import fields as contents
from splitembed.tables.atomic_files import reading
from splitembed.tables.fields import FROZEN_FORMAT, PathLike

SEARCH_PATH = "SPLITEMBED_PATH"


def search_path() -> list[Path]:
    """Returns the folders that the environment variable SPLITEMBED_PATH lists; `~` is the home folder there.

    >>> from unittest import mock
    >>> with mock.patch.dict(os.environ, SPLITEMBED_PATH=os.pathsep.join(["tables", "", "more tables"])):
    ...     [folder.name for folder in search_path()]
    ['tables', 'more tables']
    """
    return [Path(name).expanduser() for name in os.environ.get(SEARCH_PATH, "").split(os.pathsep) if name]


def find_frozen(fingerprint: str, folders: Iterable[PathLike] | None = None) -> Iterator[Path]:
    """Finds the frozen tables of a fingerprint among the `*.h5` files that lie directly in the folders.

    >>> import tempfile
    >>> import numpy as np
    >>> from splitembed.tables import write_frozen
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fingerprint = write_frozen(Path(folder) / "glove.h5", np.eye(2, dtype=np.float32))
    ...     [path.name for path in find_frozen(fingerprint, [folder])]
    ['glove.h5']

    Args:
        fingerprint: `sha256:...` of the rows.
        folders: where to look; by default `search_path()`. One that is not there holds nothing.

    Returns:
        Paths, folder by folder and by name, each found when it is asked for. A file that is foreign, damaged or being
        written is passed over; of the others only attributes are read.
    """
    for folder in search_path() if folders is None else folders:
        yield from (path for path in sorted(Path(folder).glob("*.h5")) if is_frozen(path, fingerprint))


def is_frozen(path: PathLike, fingerprint: str) -> bool:
    """Says whether a file is there and is the frozen table of a fingerprint.

    >>> is_frozen("no such file.h5", "sha256:...")
    False

    Args:
        path: the file; anything may be there.
        fingerprint: `sha256:...` of the rows, which are not read: the file's own word is taken for it.
    """
    if not os.path.isfile(path):  # opening a pipe would wait for its writer
        return False
    try:
        with reading(path, FROZEN_FORMAT) as file:
            return contents.text_attribute(file, "fingerprint") == fingerprint
    except (OSError, TableFormatError):
        return False
