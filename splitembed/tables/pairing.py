"""Pairs of a trainable table and its frozen table."""

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

from splitembed.errors import FingerprintError, TableFormatError
from splitembed.paths import local_path
from splitembed.tables.fields import FROZEN_NAME, TRAINABLE_NAME, PathLike
from splitembed.tables.find_frozen import SEARCH_PATH, find_frozen, search_path
from splitembed.tables.read_frozen import FrozenTable, open_frozen
from splitembed.tables.read_trainable import TrainableTable, open_trainable
from splitembed.tables.table_file import MemoryMap


def check_pair(frozen: FrozenTable, trainable: TrainableTable) -> None:
    """Refuse tables that do not match.

    >>> import numpy as np
    >>> frozen = FrozenTable(np.zeros((2, 1), np.float32), "sha256:one")
    >>> check_pair(frozen, TrainableTable(np.zeros((1, 1), np.float32), np.array([1, ~0]), "sha256:one"))
    >>> check_pair(frozen, TrainableTable(np.zeros((1, 1), np.float32), np.array([1, ~0]), "sha256:two"))
    Traceback (most recent call last):
    splitembed.errors.FingerprintError: the trainable table was made for the frozen table sha256:two; ...

    Args:
        frozen: the expected target of `trainable.remap`.
        trainable: the table that records the fingerprint of its frozen table.

    Raises:
        FingerprintError: another frozen table; the message names both fingerprints.
        TableFormatError: equal fingerprints, but another dim or a remap out of range.
    """
    ours, theirs = _name(trainable, "the trainable table"), _name(frozen, "the frozen table")
    if frozen.fingerprint != trainable.frozen_fingerprint:
        raise FingerprintError(
            f"{ours} was made for the frozen table {trainable.frozen_fingerprint}; {theirs} is {frozen.fingerprint}. "
            "Pass the frozen table that it was made for."
        )
    if trainable.vectors.shape[1] != frozen.dim:
        raise TableFormatError(f"{ours} has dim {trainable.vectors.shape[1]}; expected {frozen.dim}, as {theirs}.")
    last = int(trainable.remap.max(initial=-1))
    if last >= frozen.num_frozen:
        token_id = int(trainable.remap.argmax())
        raise TableFormatError(
            f"{ours} is damaged: `remap[{token_id}]` is row {last}; {theirs} has {frozen.num_frozen} rows."
        )


def open_pair(
    directory: PathLike,
    frozen: FrozenTable | PathLike | None = None,
    *,
    verify: bool = False,
    memory_map: MemoryMap = True,
    within: Path | None = None,
) -> tuple[TrainableTable, FrozenTable]:
    """Open a trainable table and its frozen table.

    >>> import tempfile
    >>> import numpy as np
    >>> from splitembed.tables import write_frozen, write_trainable
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fingerprint = write_frozen(Path(folder) / "frozen.h5", np.eye(2, dtype=np.float32))
    ...     _ = write_trainable(Path(folder) / "trainable.h5", [[5, 6]], [1, ~0], frozen_fingerprint=fingerprint)
    ...     trainable, frozen = open_pair(folder)
    >>> frozen.vectors[trainable.remap[0]].tolist(), trainable.vectors[~trainable.remap[1]].tolist()
    ([0.0, 1.0], [5.0, 6.0])

    Args:
        directory: the folder that holds trainable.h5, or the path of the trainable table itself.
        frozen: the frozen table, or its path; by default the frozen.h5 beside the trainable table, else the path that
            the trainable table records, else the file with its fingerprint in a folder of `search_path`.
        verify: recompute the fingerprints of everything that is read.
        memory_map: as of `open_frozen`, for the frozen rows.
        within: a folder; a recorded path outside it is not opened. None opens any.

    Returns:
        The trainable and the frozen table.

    Raises:
        TableFormatError: a file that is foreign, cut short, damaged, too new or being written, or has two tables.
        FingerprintError: tables that do not match.
        FileNotFoundError: a table is missing.
    """
    path = local_path(directory)
    if path.is_dir():
        path = _trainable_in(path, directory)
    while True:
        before = _state(path)
        try:
            return _open_pair(path, frozen, verify, memory_map, within)
        except (FingerprintError, FileNotFoundError):
            # Otherwise a writer replaced one of the files in between.
            if _state(path) == before:
                raise


def _open_pair(
    path: Path, frozen: FrozenTable | PathLike | None, verify: bool, memory_map: MemoryMap, within: Path | None
) -> tuple[TrainableTable, FrozenTable]:
    trainable = open_trainable(path, verify=verify)
    if trainable.reverse is not None:
        raise TableFormatError(
            f"{path} holds two trainable tables, of an embedding whose weights are not tied; expected one. Use "
            "load_trainable to load it into its model."
        )
    if frozen is None:
        frozen = _find_frozen(path, trainable, verify, memory_map, within)
    elif not isinstance(frozen, FrozenTable):
        frozen = open_frozen(frozen, verify=verify, memory_map=memory_map)
    check_pair(frozen, trainable)
    return trainable, frozen


def _state(path: Path) -> list[tuple[int, int] | None]:
    """Return which files are at the two names that each `SplitTable.save` replaces."""
    return [_identity(path), _identity(path.with_name(FROZEN_NAME))]


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _trainable_in(folder: Path, typed: PathLike) -> Path:
    path = folder / TRAINABLE_NAME
    if not path.exists():
        message = f"Found no {TRAINABLE_NAME} in the folder; expected the folder of a saved split. Check the path"
        raise FileNotFoundError(errno.ENOENT, message, os.fspath(typed))
    return path


def _find_frozen(
    path: Path, trainable: TrainableTable, verify: bool, memory_map: MemoryMap, within: Path | None
) -> FrozenTable:
    """Return the first candidate with the right fingerprint, else the first one, which `check_pair` refuses."""
    other = None
    for candidate in _candidates(path, trainable, within):
        try:
            table = open_frozen(candidate, verify=verify, memory_map=memory_map)
        # A writer may remove it in between.
        except FileNotFoundError:
            continue
        if table.fingerprint == trainable.frozen_fingerprint:
            return table
        other = other or table
    if other is None:
        raise FileNotFoundError(_not_found(path, trainable, within))
    return other


def frozen_name(fingerprint: str) -> str:
    """Return the name under which `SplitTable.save` keeps a frozen table that cannot be the frozen.h5 of its folder.

    >>> frozen_name("sha256:0123456789abcdef0123")
    'frozen-0123456789abcdef.h5'
    """
    return f"frozen-{fingerprint.removeprefix('sha256:')[:16]}.h5"


def beside(path: Path, fingerprint: str) -> list[Path]:
    """Return where the frozen table of a trainable table is, if it is in the same folder.

    Args:
        path: of the trainable table.
        fingerprint: of the frozen table.
    """
    names = [FROZEN_NAME]
    # The fingerprint in a hostile file may be any path.
    if re.fullmatch("sha256:[0-9a-f]{64}", fingerprint):
        names.append(frozen_name(fingerprint))
    return [path.with_name(name) for name in names]


def _recorded(path: Path, trainable: TrainableTable, within: Path | None) -> list[Path]:
    if not trainable.frozen_path:
        return []
    recorded = path.parent / trainable.frozen_path
    is_allowed = within is None or Path(os.path.realpath(recorded)).is_relative_to(os.path.realpath(within))
    return [recorded] if is_allowed else []


def _candidates(path: Path, trainable: TrainableTable, within: Path | None) -> Iterator[Path]:
    yield from filter(Path.is_file, [*beside(path, trainable.frozen_fingerprint), *_recorded(path, trainable, within)])
    yield from find_frozen(trainable.frozen_fingerprint)


def _not_found(path: Path, trainable: TrainableTable, within: Path | None) -> str:
    recorded = _recorded(path, trainable, within)
    paths = [f"at {candidate}" for candidate in [path.with_name(FROZEN_NAME), *recorded]]
    if search_path():
        paths.append(f"in the folders of {SEARCH_PATH} ({os.environ[SEARCH_PATH]})")
    if trainable.frozen_path and not recorded:
        paths[-1] += f" (the recorded path, {trainable.frozen_path}, is outside {within} and was not opened)"
    return (
        f"The frozen table {trainable.frozen_fingerprint} of {path} was not found {', nor '.join(paths)}. Pass "
        f"its path as `frozen`, or list its folder in the environment variable {SEARCH_PATH}."
    )


def _name(table: FrozenTable | TrainableTable, otherwise: str) -> str:
    return otherwise if table.path is None else os.fspath(table.path)
