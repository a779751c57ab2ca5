"""Descriptions of split tables for the `inspect` command."""

from pathlib import Path

import h5py
import numpy as np

from splitembed.split.table import SplitTable
from splitembed.tables import TRAINABLE_NAME, TrainableTable, open_frozen, open_trainable
from splitembed.tables.fields import TRAINABLE_FORMAT, text_or_other


def describe(path: Path, verify: bool) -> str:
    """Return lines of text about a frozen.h5, a trainable.h5, or a directory with both.

    Args:
        path: the file or directory.
        verify: read every byte and check the fingerprints.

    Raises:
        SplitEmbedError: the tables are invalid, or `path` holds none.
    """
    if path.is_dir():
        return "\n".join(_directory_parts(path, verify))
    return _trainable(path, verify) if is_trainable(path) else _frozen(path, verify)


def is_trainable(path: Path) -> bool:
    """Return whether a file is a trainable table."""
    if not h5py.is_hdf5(path):
        return False
    with h5py.File(path) as file:
        return bool(text_or_other(file, "format") == TRAINABLE_FORMAT)


def _directory_parts(directory: Path, verify: bool) -> list[str]:
    split = SplitTable.open(directory, verify=verify)
    # Opening the split has verified both files.
    parts = [str(split), _trainable(directory / TRAINABLE_NAME, verify=False)]
    if split.table is not None and split.table.path is not None:
        parts.append(_frozen(split.table.path, verify=False))
    return parts


def _frozen(path: Path, verify: bool) -> str:
    table = open_frozen(path, verify=verify)
    words = "none" if table.words is None else f"{len(table.words):,}"
    held = "mapped" if table.mapped else "read"
    return (
        f"frozen table   {table.num_frozen:,} rows x {table.dim}, {table.dtype}, {held}\n"
        f"words          {words}\n"
        f"source         {table.source or 'unknown'}\n"
        f"fingerprint    {table.fingerprint}"
    )


def _trainable(path: Path, verify: bool) -> str:
    table = open_trainable(path, verify=verify)
    logits = "" if table.reverse is None else f"\n\nuntied logits\n{_trainable_rows(table.reverse)}"
    return _trainable_rows(table) + logits


def _trainable_rows(table: TrainableTable) -> str:
    num_shared = len(table.remap) - len(np.unique(table.remap))
    return (
        f"trainable table  {len(table.vectors):,} rows x {table.vectors.shape[1]}\n"
        f"tokens           {len(table.remap):,}, {num_shared:,} of them share another token's row; "
        f"padding {table.padding}\n"
        f"vocabulary       {table.vocabulary_fingerprint or 'none: ids have no strings'}\n"
        f"frozen table     {table.frozen_fingerprint}\n"
        f"                 {table.frozen_path or 'in the same directory'}"
    )
