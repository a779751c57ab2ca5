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
from splitembed.words import Words

PathLike = str | os.PathLike[str]


def save(split: Split, directory: PathLike) -> None:
    """Write both tables into a folder, or only the trainable one; see `SplitTable.save`."""
    folder = local_path(directory)
    if folder.is_file():
        raise SplitError(f"`directory` must be a folder for frozen.h5 and trainable.h5. Received a file: {folder}.")
    folder.mkdir(parents=True, exist_ok=True)
    frozen, trainable = folder / tables.FROZEN_NAME, folder / tables.TRAINABLE_NAME
    shared = frozen_file(split)
    if shared is not None:
        stale = _replaced_frozen(frozen, trainable, shared)
        save_trainable(split, trainable)
        if stale is not None:
            stale.unlink()
        return
    if frozen.exists() and not trainable.exists() and not tables.is_frozen(frozen, split.fingerprint):
        raise SplitError(
            f"{frozen} is another frozen table, without a trainable table beside it, so other models may use it. Save "
            "the split in another folder, or move that file."
        )
    save_frozen(split, frozen)
    save_trainable(split.detached(), trainable)


def _replaced_frozen(frozen: Path, trainable: Path, shared: Path) -> Path | None:
    """Return the frozen table that only the split saved here before has; None if the folder has no such table.

    Beside the new trainable table it would be taken for the frozen rows of that.
    """
    if not frozen.exists() or not trainable.exists() or frozen.samefile(shared):
        return None
    try:
        before = tables.open_trainable(trainable)
    except TableFormatError:
        # It may be the table of anything.
        return None
    return frozen if tables.is_frozen(frozen, before.frozen_fingerprint) else None


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
    split: Split, path: PathLike, *, frozen_path: str | None = None, reverse: Split | None = None
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
        reverse=None if reverse is None else _trainable_table(reverse),
    )


def _trainable_table(split: Split) -> tables.TrainableTable:
    return tables.TrainableTable(split.trainable, split.remap, split.fingerprint, padding=split.padding)


def in_memory(words: Words | None) -> Words | None:
    """Return words that no longer need their file."""
    return None if words is None else Words.from_arrays(*words.packed())


def without_path(table: tables.FrozenTable) -> tables.FrozenTable:
    """Return a table that no longer needs the name of its file; a memory map stays."""
    return dataclasses.replace(table, path=None, words=in_memory(table.words))
