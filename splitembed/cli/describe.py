"""Descriptions of split tables for the `inspect` command, as dicts and as text."""

from pathlib import Path
from typing import Any

import numpy as np

from splitembed.split.table import SplitTable
from splitembed.tables import (
    FROZEN_NAME,
    TRAINABLE_NAME,
    FrozenTable,
    TrainableTable,
    format_of,
    open_frozen,
    open_trainable,
)
from splitembed.tables.fields import TRAINABLE_FORMAT


def describe(path: Path) -> dict[str, Any]:
    """Return the sizes, dtypes and fingerprints of a frozen.h5, a trainable.h5, or a directory with one or both.

    Args:
        path: the file or directory.

    Returns:
        A dict with some of the keys "split", "trainable", "logits" (of an embedding whose weights are not tied) and
        "frozen"; each holds strings and numbers.

    Raises:
        SplitEmbedError: the tables are invalid, or `path` holds none.
    """
    if path.is_dir() and (path / FROZEN_NAME).exists() and not (path / TRAINABLE_NAME).exists():
        path = path / FROZEN_NAME
    if path.is_dir():
        return _describe_directory(path)
    if is_trainable(path):
        return _describe_trainable(open_trainable(path))
    return {"frozen": describe_frozen(open_frozen(path))}


def as_text(description: dict[str, Any]) -> str:
    """Return the lines that the `inspect` command prints for a description."""
    parts = []
    if "split" in description:
        sizes = ", ".join(f"{name}={size}" for name, size in description["split"].items())
        parts.append(f"SplitTable({sizes})")
    if "trainable" in description:
        parts.append(_trainable_text(description["trainable"]))
    if "logits" in description:
        parts.append(f"\nuntied logits\n{_trainable_text(description['logits'])}")
    if "frozen" in description:
        parts.append(_frozen_text(description["frozen"]))
    return "\n".join(parts)


def is_trainable(path: Path) -> bool:
    """Return whether a file is a trainable table."""
    return format_of(path) == TRAINABLE_FORMAT


def describe_split(split: SplitTable) -> dict[str, Any]:
    """Return the sizes of a split.

    >>> describe_split(SplitTable([[1.0, 2.0]], [0, 0], []))
    {'num_tokens': 2, 'dim': 2, 'num_frozen': 1, 'num_trainable': 0}
    """
    return {name: getattr(split, name) for name in ("num_tokens", "dim", "num_frozen", "num_trainable")}


def describe_frozen(table: FrozenTable) -> dict[str, Any]:
    """Return the path, sizes, dtype and fingerprint of a frozen table."""
    return {
        "path": None if table.path is None else str(table.path),
        "num_frozen": table.num_frozen,
        "dim": table.dim,
        "dtype": table.dtype,
        "mapped": table.mapped,
        "num_words": None if table.words is None else len(table.words),
        "source": table.source,
        "fingerprint": table.fingerprint,
    }


def _describe_directory(directory: Path) -> dict[str, Any]:
    split = SplitTable.open(directory)
    trainable = _describe_trainable(open_trainable(directory / TRAINABLE_NAME))
    frozen = {} if split.table is None else {"frozen": describe_frozen(split.table)}
    return {"split": describe_split(split), **trainable, **frozen}


def _describe_trainable(table: TrainableTable) -> dict[str, Any]:
    description = {"trainable": _describe_rows(table)}
    return description if table.reverse is None else {**description, "logits": _describe_rows(table.reverse)}


def _describe_rows(table: TrainableTable) -> dict[str, Any]:
    return {
        "num_trainable": len(table.vectors),
        "dim": table.vectors.shape[1],
        "num_tokens": len(table.remap),
        "num_tokens_that_share": len(table.remap) - len(np.unique(table.remap)),
        "padding": table.padding,
        "vocabulary_fingerprint": table.vocabulary_fingerprint or None,
        "frozen_fingerprint": table.frozen_fingerprint,
        "frozen_path": table.frozen_path or None,
    }


def _frozen_text(table: dict[str, Any]) -> str:
    words = "none" if table["num_words"] is None else f"{table['num_words']:,}"
    return (
        f"frozen table   {table['num_frozen']:,} rows x {table['dim']}, {table['dtype']}, "
        f"{'mapped' if table['mapped'] else 'read'}\n"
        f"words          {words}\n"
        f"source         {table['source'] or 'unknown'}\n"
        f"fingerprint    {table['fingerprint']}"
    )


def _trainable_text(table: dict[str, Any]) -> str:
    return (
        f"trainable table  {table['num_trainable']:,} rows x {table['dim']}\n"
        f"tokens           {table['num_tokens']:,}, {table['num_tokens_that_share']:,} of them share another token's "
        f"row; padding {table['padding']}\n"
        f"vocabulary       {table['vocabulary_fingerprint'] or 'none: ids have no strings'}\n"
        f"frozen table     {table['frozen_fingerprint']}\n"
        f"                 {table['frozen_path'] or 'in the same directory'}"
    )
