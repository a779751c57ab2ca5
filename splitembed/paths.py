"""Paths of the user: `~` is expanded, and addresses of remote storage are refused."""

import os
import re
from pathlib import Path

from splitembed.errors import SplitError

# Two letters or more, so that a Windows drive is not a scheme.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def local_path(path: str | os.PathLike[str]) -> Path:
    """Return a path of this machine, with `~` and `~user` expanded.

    >>> local_path("tables/glove.h5").as_posix()
    'tables/glove.h5'

    Args:
        path: as the user gave it.

    Raises:
        SplitError: the path has a scheme, such as `gs://` or `https://`, or is not a path.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise SplitError(
            f"Expected a path: a string or a pathlib.Path. Received: {path!r} (of type {type(path).__name__})."
        )
    text = os.fsdecode(path)
    if scheme := _SCHEME.match(text):
        raise SplitError(
            f"{text}: found an address of the scheme {scheme[1]!r}, expected a path of this machine. To read, download "
            "the file first. To write, write a local file and copy it."
        )
    return Path(text).expanduser()
