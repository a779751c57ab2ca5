"""Attributes of our files: their names, their checks, and the error for a damaged file."""

import os
from typing import Any

import h5py
import numpy as np

from splitembed.errors import SplitError, TableFormatError, shortened

PathLike = str | os.PathLike[str]

# The newest version that can be read. Files are written in the oldest version that can hold them.
FORMAT_VERSION = 3
FROZEN_NAME, TRAINABLE_NAME = "frozen.h5", "trainable.h5"
FROZEN_FORMAT, TRAINABLE_FORMAT = "splitembed.frozen", "splitembed.trainable"
OPENERS = {FROZEN_FORMAT: "open_frozen", TRAINABLE_FORMAT: "open_trainable"}


def damaged(file: h5py.File, what: str) -> TableFormatError:
    """Return the error for a damaged file."""
    return TableFormatError(f"{file.filename} is damaged: {what} Write it again, or use another copy.")


def check_format(file: h5py.File, format_name: str) -> None:
    """Refuse a file of another format, or of a newer version."""
    found = text_or_other(file, "format")
    if not isinstance(found, str) or found not in OPENERS:
        names = shortened(list(file), 5, str) or "nothing"
        raise TableFormatError(
            f"{file.filename} is an HDF5 file of another format: its attribute `format` is {found!r}, its top level "
            f"holds {names}; expected the format {format_name!r}, as splitembed writes it."
        )
    if found != format_name:
        raise TableFormatError(
            f"{file.filename} has the format {found!r}; expected {format_name!r}. Open it with {OPENERS[found]}."
        )
    version = integer_attribute(file, "format_version")
    if not 1 <= version <= FORMAT_VERSION:
        raise TableFormatError(
            f"{file.filename} has format version {version}; expected 1 to {FORMAT_VERSION}. Install a newer "
            "splitembed, or write the file again with this one."
        )


def store_text(file: h5py.File, **attributes: str) -> None:
    """Write text attributes of fixed length; file names that are not UTF-8 keep their bytes.

    HDF5 stores text of variable length in a heap without a checksum, and hangs if the heap is damaged.
    """
    for name, text in attributes.items():
        if "\0" in text:
            raise SplitError(f"`{name}` must not contain NUL characters. Received: {text!r}.")
        raw = text.encode("utf-8", "surrogateescape")
        # HDF5 has no text of length 0: "" is one NUL.
        file.attrs.create(name, raw, dtype=h5py.string_dtype("utf-8", max(1, len(raw))))


def text_attribute(file: h5py.File, name: str) -> str:
    """Return a text attribute."""
    value = text_or_other(file, name)
    if not isinstance(value, str):
        raise damaged(file, f"its attribute `{name}` is {value!r}; expected text.")
    return value


def text_or_other(file: h5py.File, name: str) -> Any:
    """Return an attribute, decoded if it is text; None if it is missing."""
    value = file.attrs.get(name)
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def integer_attribute(file: h5py.File, name: str) -> int:
    """Return an integer attribute."""
    value = file.attrs.get(name)
    if not isinstance(value, np.integer):
        raise damaged(file, f"its attribute `{name}` is {value!r}; expected an integer.")
    return int(value)


def index_attribute(file: h5py.File, name: str, size: int) -> int | None:
    """Return an optional integer attribute, after checking `0 <= value < size`."""
    if name not in file.attrs:
        return None
    value = integer_attribute(file, name)
    if not 0 <= value < size:
        raise damaged(file, f"its attribute `{name}` is {value}; expected 0 to {size - 1}.")
    return value


def check_fingerprint(file: h5py.File, name: str, found: str) -> None:
    """Refuse data whose fingerprint differs from the one in the attribute `name`."""
    recorded = text_attribute(file, name)
    if found != recorded:
        raise damaged(file, f"its content has the fingerprint {found}; expected {recorded}, its attribute `{name}`.")
