"""The checks of the `verify` command: every byte of our files, in the view of their head and in that of HDF5."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from splitembed.errors import SplitEmbedError, TableFormatError
from splitembed.foreign.hdf5_file import ForeignHdf5
from splitembed.tables import FROZEN_NAME, TRAINABLE_NAME, format_of, open_frozen, open_pair, open_trainable
from splitembed.tables.fields import TRAINABLE_FORMAT
from splitembed.tables.fingerprints import row_blocks
from splitembed.tables.head import Head, StoredArray, read_head
from splitembed.tables.table_file import open_regular


def verify(path: Path) -> dict[str, Any]:
    """Check a frozen.h5, a trainable.h5, or a directory with one or both.

    Args:
        path: the file or directory.

    Returns:
        `{"ok": ..., "files": [{"path": ..., "format": ..., "fault": a message or None}, ...]}`. The fault of a
        trainable.h5 in a directory can be that its frozen table is missing or another one.
    """
    files = list(_faults(path))
    return {"ok": all(each["fault"] is None for each in files), "files": files}


def as_text(found: dict[str, Any]) -> str:
    """Return the lines that the command prints: one for each file."""
    return "\n".join(each["fault"] or f"{each['path']}: whole, {each['format']}" for each in found["files"])


def _faults(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_dir():
        yield _described(path, functools.partial(_check_file, path))
        return
    frozen, trainable = path / FROZEN_NAME, path / TRAINABLE_NAME
    if not trainable.exists():
        yield _described(frozen, functools.partial(_check_file, frozen))
        return

    def check_pair() -> None:
        _check_file(trainable)
        if open_trainable(trainable).reverse is None:
            pairs.append(open_pair(path)[1].path)

    pairs: list[Path | None] = []
    yield _described(trainable, check_pair)
    for found in pairs:
        if found is not None:
            yield _described(found, functools.partial(_check_file, found))


def _described(path: Path, check: Callable[[], None]) -> dict[str, Any]:
    fault = None
    try:
        check()
    except (SplitEmbedError, OSError) as error:
        fault = str(error)
    return {"path": str(path), "format": format_of(path), "fault": fault}


def _check_file(path: Path) -> None:
    if format_of(path) == TRAINABLE_FORMAT:
        words = open_trainable(path, verify=True).vocabulary
    else:
        words = open_frozen(path, verify=True).words
    # Their bytes are checked on first use.
    list(words or [])
    with open_regular(path) as stream:
        head = read_head(stream)
    _compare_views(path, head)


def _compare_views(path: Path, head: Head) -> None:
    """Refuse a file in which HDF5 finds other attributes or arrays than the head names."""
    with contextlib.ExitStack() as stack:
        file = ForeignHdf5(str(path), stack)
        attributes = {"format": head.format, **head.attributes}
        found = file.ask(do="attributes")[0]["attributes"]
        for name in sorted({*attributes, *found}):
            if attributes.get(name) != found.get(name):
                raise _differ(path, f"attribute `{name}`", attributes.get(name), found.get(name))
        for name, place in head.arrays.items():
            described, _ = file.ask(do="describe", name=name)
            ours, theirs = (list(place.shape), place.dtype), (described.get("shape"), described.get("dtype"))
            if ours != theirs:
                raise _differ(path, f"array `{name}`", ours, theirs)
            if not _are_equal(path, place, file):
                raise _differ(path, f"array `{name}`", "some numbers", "others")


def _are_equal(path: Path, place: StoredArray, file: ForeignHdf5) -> bool:
    if not place.size:
        return True
    ours = np.memmap(path, place.dtype, "r", place.offset, place.shape)
    blocks = row_blocks(place.shape[0], place.size // place.shape[0])
    return all(ours[block].tobytes() == file.slice(place.name, block.start, block.stop).tobytes() for block in blocks)  # type: ignore[union-attr]


def _differ(path: Path, what: str, ours: Any, theirs: Any) -> TableFormatError:
    return TableFormatError(
        f"{path} has two views that differ: the {what} is {ours!r} in its head, and {theirs!r} for HDF5. Another tool "
        "changed it. Write the table again, or use another copy."
    )
