"""Paths and open files of the user: the one place that expands `~`, opens "-" and refuses remote storage."""

import contextlib
import os
import re
import sys
from pathlib import Path
from typing import Any

from splitembed.errors import SplitError

STANDARD_INPUT = "-"
# Two letters or more, so that a Windows drive is not a scheme.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def is_path(source: Any) -> bool:
    """Return whether a source is a path or "-", as a string or a pathlib.Path.

    >>> is_path("glove.txt"), is_path(Path("glove.txt")), is_path({"the": [1.0]})
    (True, True, False)
    """
    return isinstance(source, (str, os.PathLike))


def holds_bytes(source: Any) -> bool:
    """Return whether a source is a path, "-" or an open file, not an object in memory.

    >>> holds_bytes("-"), holds_bytes(sys.stdin), holds_bytes(["the"])
    (True, True, False)
    """
    return is_path(source) or hasattr(source, "read")


def local_path(path: str | os.PathLike[str]) -> Path:
    """Return a path of this machine, with `~` and `~user` expanded.

    >>> local_path("tables/glove.h5").as_posix()
    'tables/glove.h5'

    Args:
        path: as the user gave it.

    Raises:
        SplitError: the path has a scheme, such as `gs://` or `https://`, or is not a path.
    """
    if not is_path(path):
        raise SplitError(
            f"Expected a path: a string or a pathlib.Path. Received: {path!r} (of type {type(path).__name__})."
        )
    text = os.fsdecode(path)
    if scheme := _SCHEME.match(text):
        raise SplitError(
            f"{text}: found an address of the scheme {scheme[1]!r}, expected a path of this machine. To read, download "
            "the file first. To write, write a local file and copy it."
        )
    # Path.expanduser would raise for a file such as "~1.txt".
    return Path(os.path.expanduser(text))


def local_source(source: Any) -> Any:
    """Return a source with its path as `local_path` returns it; "-" and other objects are unchanged.

    >>> local_source("-"), local_source({"the": [1.0]}), local_source("glove.txt") == Path("glove.txt")
    ('-', {'the': [1.0]}, True)

    Raises:
        SplitError: as `local_path` raises it.
    """
    if not is_path(source):
        return source
    return STANDARD_INPUT if os.fspath(source) == STANDARD_INPUT else local_path(source)


def name_source(source: Any) -> str:
    """Return the name of a path, of standard input or of an open file, for messages.

    >>> import io
    >>> name_source("-"), name_source("glove.txt"), name_source(io.BytesIO())
    ('standard input', 'glove.txt', 'the open file')
    """
    if is_path(source):
        path = os.fspath(source)
        return "standard input" if path == STANDARD_INPUT else path
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "the open file"


def open_bytes(source: Any) -> contextlib.AbstractContextManager[Any]:
    """Open a path or standard input for reading bytes. An open file stays open afterwards.

    >>> import io
    >>> with open_bytes(io.BytesIO(b"the")) as file:
    ...     file.read()
    b'the'

    Args:
        source: a path, "-", or a file opened in binary mode.

    Raises:
        OSError: the file cannot be opened.
        SplitError: a file that was opened as text, closed standard input, or an address of remote storage.
    """
    source = local_source(source)
    if isinstance(source, Path):
        return source.open("rb")
    name = name_source(source)
    file = getattr(sys.stdin, "buffer", None) if is_path(source) else source
    if file is None:
        raise SplitError(f"{name} is closed; expected an open file. Pass a path, or a file that is open.")
    # Wrappers such as those of `tempfile` are not io.TextIOBase.
    if hasattr(file, "encoding"):
        raise SplitError(
            f"{name}: found a file that was opened as text; expected bytes. Open it with open(path, 'rb')."
        )
    return contextlib.nullcontext(file)
