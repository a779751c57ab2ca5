"""The files of a split: frozen.h5 and trainable.h5."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from splitembed import tables
from splitembed.errors import SplitError, TableFormatError
from splitembed.paths import local_path
from splitembed.split.gaps import gap_ids, zero_ids
from splitembed.split.protocol import Split

PathLike = str | os.PathLike[str]


def save(split: Split, directory: PathLike) -> None:
    """Write both tables into a folder, or only the trainable one; see `SplitTable.save`.

    The folder is what its trainable.h5 says. So a new frozen table gets a name of its own first, then one rename of
    trainable.h5 changes the split, then the new frozen table replaces the one that only the old split had. A process
    that is killed in between leaves a frozen table under its own name, where readers find it.
    """
    folder = local_path(directory)
    if folder.is_file():
        raise SplitError(f"`directory` must be a folder for frozen.h5 and trainable.h5. Received a file: {folder}.")
    folder.mkdir(parents=True, exist_ok=True)
    with tables.locked_folder(folder):
        _save(split, folder / tables.FROZEN_NAME, folder / tables.TRAINABLE_NAME)


def _save(split: Split, plain: Path, trainable: Path) -> None:
    owned, new = _owned_files(trainable), frozen_file(split)
    if new is None and not owned and tables.is_frozen(plain, split.fingerprint):
        new = plain
    is_owned = new is None or any(new.samefile(path) for path in owned)
    if new is None:
        new = plain.with_name(tables.frozen_name(split.fingerprint))
        save_frozen(split, new)
    stale = {path: fingerprint for path, fingerprint in owned.items() if not path.samefile(new)}
    names = [*stale.values(), *([split.fingerprint] if is_owned else [])]
    save_trainable(split, trainable, frozen_path="" if is_owned else None, owned_frozen=names)
    if is_owned and new != plain and (plain in stale or not plain.exists()):
        os.replace(new, plain)
        stale.pop(plain, None)
        tables.synchronize_folder(plain.parent)
    for path in stale:
        path.unlink()


def _owned_files(trainable: Path) -> dict[Path, str]:
    """Return the frozen tables that were saved here for this folder alone, and their fingerprints.

    None is a file of the user's own, which other models may use.
    """
    try:
        before = tables.open_trainable(trainable)
    # It may be the table of anything.
    except (FileNotFoundError, TableFormatError):
        return {}
    pairs = [(path, name) for name in before.owned_frozen for path in tables.beside(trainable, name)]
    return {path: name for path, name in pairs if tables.is_frozen(path, name)}


def frozen_file(split: Split) -> Path | None:
    """Return the file that holds the frozen rows; see `SplitTable.frozen_file`."""
    path = None if split.table is None else split.table.path
    return path if path is not None and tables.is_frozen(path, split.fingerprint) else None


def save_frozen(split: Split, path: PathLike) -> None:
    """Write the frozen rows and their words; see `SplitTable.save_frozen`."""
    if split.table is None:
        words, source, row_of = _words_of_rows(split), "", None
        zeros = zero_ids(split.padding, gap_ids(split))
        zero_row = int(split.remap[zeros[0]]) if len(zeros) else None
    else:
        words, source, zero_row = split.table.words, split.table.source, split.table.zero_row
        row_of = split.table.row_of
    tables.write_frozen(
        path,
        split.frozen,
        words=words,
        source=source,
        zero_row=zero_row,
        scale=split.scale,
        fingerprint=split.fingerprint,
        row_of=row_of,
    )


def _words_of_rows(split: Split) -> Sequence[str] | None:
    """Return the first token of each frozen row; "" for the rows of padding, of no token, and for unused rows."""
    if split.vocabulary is None:
        return None
    words = [""] * split.num_frozen
    tokens = list(split.vocabulary)
    ids = np.flatnonzero(split.remap >= 0)[::-1]
    for token_id, row in zip(ids.tolist(), split.remap[ids].tolist(), strict=True):
        words[row] = tokens[token_id]
    for row in np.unique(split.remap[gap_ids(split)]).tolist():
        words[row] = ""
    return words


def save_trainable(
    split: Split,
    path: PathLike,
    *,
    frozen_path: str | None = None,
    owned_frozen: Sequence[str] = (),
    reverse: Split | None = None,
) -> None:
    """Write the trainable rows, the remap and the vocabulary; see `SplitTable.save_trainable`."""
    if frozen_path is None:
        frozen_path = "" if split.table is None or split.table.path is None else str(split.table.path)
    if reverse is not None and reverse.vocabulary_fingerprint not in ("", split.vocabulary_fingerprint):
        raise SplitError("`reverse` must have the vocabulary of the split, as one file holds one vocabulary.")
    tables.write_trainable(
        path,
        split.trainable,
        split.remap,
        vocabulary=split.vocabulary,
        padding=split.padding,
        frozen_fingerprint=split.fingerprint,
        frozen_path=frozen_path,
        owned_frozen=owned_frozen,
        reverse=None if reverse is None else _trainable_table(reverse),
    )


def _trainable_table(split: Split) -> tables.TrainableTable:
    return tables.TrainableTable(split.trainable, split.remap, split.fingerprint, padding=split.padding)


def without_path(table: tables.FrozenTable) -> tables.FrozenTable:
    """Return a table that no longer needs the name of its file; a memory map stays."""
    return dataclasses.replace(table, path=None)
