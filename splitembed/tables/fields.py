"""What our files must hold: an open file and a name enter; the attribute or dataset leaves, or is refused by name."""

import math
import os
from typing import Any

import h5py
import numpy as np

from splitembed.errors import SplitError, TableFormatError
from splitembed.tables.chunks import fault_of_chunks

PathLike = str | os.PathLike[str]

FORMAT_VERSION = 3  # the newest that is read; files are written in the oldest that can hold them
FROZEN_NAME, TRAINABLE_NAME = "frozen.h5", "trainable.h5"
FROZEN_FORMAT, TRAINABLE_FORMAT = "splitembed.frozen", "splitembed.trainable"
OPENERS = {FROZEN_FORMAT: "open_frozen", TRAINABLE_FORMAT: "open_trainable"}


def damaged(file: h5py.File, what: str) -> TableFormatError:
    """Makes the error for one of our files that is not as it was written."""
    return TableFormatError(f"{file.filename} is damaged: {what} Write it again, or take another copy.")


def check_format(file: h5py.File, format_name: str) -> None:
    """Refuses a file of another format, or of a version that came after this code."""
    found = text_or_other(file, "format")
    if not isinstance(found, str) or found not in OPENERS:
        names = ", ".join(list(file)[:5]) or "nothing"
        raise TableFormatError(
            f"{file.filename} is an HDF5 file of something else: its attribute `format` is {found!r}, its top level "
            f"holds {names}. Expected {format_name!r}, as splitembed writes it."
        )
    if found != format_name:
        raise TableFormatError(
            f"{file.filename} has the format {found!r}; expected {format_name!r}. Open it with {OPENERS[found]}."
        )
    version = integer_attribute(file, "format_version")
    if not 1 <= version <= FORMAT_VERSION:
        raise TableFormatError(
            f"{file.filename} has format version {version}; this splitembed reads 1 to {FORMAT_VERSION}. Install a "
            "newer splitembed, or write the file again with this one."
        )


def store_text(file: h5py.File, **attributes: str) -> None:
    """Writes text attributes of fixed length: HDF5 hangs on a damaged heap, where variable ones lie unchecked.

    File names that are not UTF-8 keep their bytes.
    """
    for name, text in attributes.items():
        if "\0" in text:
            raise SplitError(f"`{name}` must not hold a NUL character; found {text!r}.")
        raw = text.encode("utf-8", "surrogateescape")
        file.attrs.create(name, raw, dtype=h5py.string_dtype("utf-8", max(1, len(raw))))  # "" is one NUL


def text_attribute(file: h5py.File, name: str) -> str:
    """Returns an attribute that must be text."""
    value = text_or_other(file, name)
    if not isinstance(value, str):
        raise damaged(file, f"its attribute `{name}` must be text; found {value!r}.")
    return value


def text_or_other(file: h5py.File, name: str) -> Any:
    """Returns an attribute as text where it is text, else as it is, or None."""
    value = file.attrs.get(name)
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def integer_attribute(file: h5py.File, name: str) -> int:
    """Returns an attribute that must be one integer."""
    value = file.attrs.get(name)
    if not isinstance(value, np.integer):
        raise damaged(file, f"its attribute `{name}` must be an integer; found {value!r}.")
    return int(value)


def index_attribute(file: h5py.File, name: str, size: int) -> int | None:
    """Returns an optional attribute that must lie in `0 <= value < size`."""
    if name not in file.attrs:
        return None
    value = integer_attribute(file, name)
    if not 0 <= value < size:
        raise damaged(file, f"its attribute `{name}` is {value}; expected 0 to {size - 1}.")
    return value


def dataset(file: h5py.File, name: str, dtypes: tuple[np.dtype[Any], ...], ndim: int) -> h5py.Dataset:
    """Returns a dataset that must be there, whole and in this file itself, with one of the dtypes in any byte order.

    Args:
        file: the open file.
        name: of the dataset, such as `words/utf8`.
        dtypes: native NumPy dtypes that it may have.
        ndim: number of axes that it must have.
    """
    found = file[name] if name in file else None  # noqa: SIM401 - `get` hides why HDF5 cannot open it
    if not isinstance(found, h5py.Dataset) or _lies_elsewhere(found, file):
        raise damaged(file, f"it holds no dataset `{name}` of its own.")
    if found.ndim != ndim or found.dtype.newbyteorder("=") not in dtypes:
        expected = f"{ndim} axes and dtype {' or '.join(map(str, dtypes))}"
        raise damaged(file, f"`{name}` must have {expected}; found shape {found.shape} and dtype {found.dtype}.")
    fault = _fault_of_bytes(found)
    if fault:
        raise damaged(file, f"`{name}` has shape {found.shape}: {fault}")
    return found


def _fault_of_bytes(found: h5py.Dataset) -> str:
    if found.chunks and found.id.get_create_plist().get_nfilters():
        return fault_of_chunks(found)
    num_bytes, stored = math.prod(found.shape) * found.dtype.itemsize, found.id.get_storage_size()
    return f"{num_bytes} bytes; {stored} of them were written." if stored < num_bytes else ""


def _lies_elsewhere(found: h5py.Dataset, file: h5py.File) -> bool:
    """HDF5 lets one file show what lies in another one, anywhere."""
    return bool(found.is_virtual or found.external or found.file.filename != file.filename)


def check_length(file: h5py.File, name: str, found: int, expected: int) -> None:
    """Refuses a dataset that is longer or shorter than what it belongs to."""
    if found != expected:
        raise damaged(file, f"`{name}` must have length {expected}; found {found}.")


def check_fingerprint(file: h5py.File, name: str, found: str) -> None:
    """Refuses data whose fingerprint is not the one that the attribute `name` records."""
    recorded = text_attribute(file, name)
    if found != recorded:
        raise damaged(file, f"its attribute `{name}` records {recorded}; what it holds has {found}.")
