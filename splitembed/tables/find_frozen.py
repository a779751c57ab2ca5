"""The search for frozen tables by fingerprint.

Many small trainable tables share one frozen table, which may have moved since they were written. The environment
variable SPLITEMBED_PATH lists the folders to search, separated as in PATH.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from splitembed.errors import TableFormatError
from splitembed.tables.fields import FROZEN_FORMAT, PathLike
from splitembed.tables.table_file import reading

SEARCH_PATH = "SPLITEMBED_PATH"


def search_path() -> list[Path]:
    """Return the folders of the environment variable SPLITEMBED_PATH; `~` is the home folder.

    >>> from unittest import mock
    >>> with mock.patch.dict(os.environ, SPLITEMBED_PATH=os.pathsep.join(["tables", "", "more tables"])):
    ...     [folder.name for folder in search_path()]
    ['tables', 'more tables']
    """
    return [Path(name).expanduser() for name in os.environ.get(SEARCH_PATH, "").split(os.pathsep) if name]


def find_frozen(fingerprint: str, folders: Iterable[PathLike] | None = None) -> Iterator[Path]:
    """Find the frozen tables with a fingerprint among the `*.h5` files of folders, without their subfolders.

    >>> import tempfile
    >>> import numpy as np
    >>> from splitembed.tables import write_frozen
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fingerprint = write_frozen(Path(folder) / "glove.h5", np.eye(2, dtype=np.float32))
    ...     [path.name for path in find_frozen(fingerprint, [folder])]
    ['glove.h5']

    Args:
        fingerprint: `sha256:...` of the rows.
        folders: the folders to search; by default `search_path()`. Missing folders are skipped.

    Returns:
        Paths, folder by folder and sorted by name, found one at a time. Files that are foreign, damaged or being
        written are skipped; of the others only attributes are read.
    """
    for folder in search_path() if folders is None else folders:
        yield from (path for path in sorted(Path(folder).glob("*.h5")) if is_frozen(path, fingerprint))


def is_frozen(path: PathLike, fingerprint: str) -> bool:
    """Return whether a file exists and is the frozen table with a fingerprint.

    >>> is_frozen("no such file.h5", "sha256:...")
    False

    Args:
        path: any path.
        fingerprint: `sha256:...` of the rows. It is compared with the file's attribute; the rows are not read.
    """
    try:
        with reading(path, FROZEN_FORMAT) as file:
            return file.text("fingerprint") == fingerprint
    except (OSError, TableFormatError):
        return False
