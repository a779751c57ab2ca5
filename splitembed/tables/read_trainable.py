"""Trainable tables, opened from a trainable.h5."""

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from splitembed.paths import local_path
from splitembed.tables.fields import TRAINABLE_FORMAT, PathLike, damaged
from splitembed.tables.fingerprints import fingerprint_remap, fingerprint_rows
from splitembed.tables.remap import open_remap
from splitembed.tables.stored_words import open_words
from splitembed.tables.table_file import TableFile, reading
from splitembed.words import Words

# Group of the second of two tables in one file.
REVERSE = "reverse"
# On other systems a model could not be saved to the file that it was opened from.
_MAPPED_FILES_CAN_BE_REPLACED = os.name == "posix"


@dataclass(frozen=True, eq=False)
class TrainableTable:
    """The trainable rows of one model, and the remap from its tokens to rows.

    Args:
        vectors: `(num_trainable, dim)` float32, read-only.
        remap: `(num_tokens,)` int32, read-only: `>= 0` is a row of the frozen table, `< 0` is row `~remap[id]` here.
        frozen_fingerprint: of the frozen table that `remap` points into.
        vocabulary: the tokens in id order, read on first use; None where ids have no strings.
        padding: the padding id, or None.
        frozen_path: the recorded path of the frozen table, a hint; "" if it is beside this file.
        owned_frozen: fingerprints of the frozen tables that `SplitTable.save` wrote beside this file, for this folder
            alone.
        fingerprint: of `vectors`, see `fingerprint_rows`.
        remap_fingerprint: of `remap`.
        vocabulary_fingerprint: of `vocabulary`; "" without one.
        path: the file, absolute; None for a table in memory.
        mapped: whether `vectors` is a memory map of the file, so that only a model's weight takes memory.
        reverse: the table of the logits, for the same tokens, if weights are not tied: its rows, remap, padding and the
            fingerprint of its frozen table.
    """

    vectors: NDArray[np.float32]
    remap: NDArray[np.int32]
    frozen_fingerprint: str
    vocabulary: Words | None = None
    padding: int | None = None
    frozen_path: str = ""
    owned_frozen: tuple[str, ...] = ()
    fingerprint: str = ""
    remap_fingerprint: str = ""
    vocabulary_fingerprint: str = ""
    path: Path | None = None
    mapped: bool = False
    reverse: "TrainableTable | None" = None


def open_trainable(path: PathLike, *, verify: bool = False) -> TrainableTable:
    """Open a trainable.h5; its rows and tokens are memory-mapped, except on Windows.

    The file is closed again. The map keeps its content, also after `path` is replaced or deleted.

    >>> import tempfile
    >>> from splitembed.tables import write_trainable
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "trainable.h5"
    ...     fingerprint = write_trainable(path, [[0.5]], [~0, 0], padding=1, frozen_fingerprint="sha256:...")
    ...     table = open_trainable(path, verify=True)
    >>> table.vectors.dtype.name, table.padding, table.vocabulary, table.fingerprint == fingerprint
    ('float32', 1, None, True)

    Args:
        path: the file.
        verify: also read the vocabulary now, and compare all fingerprints.

    Returns:
        The table; its remap is read into memory.

    Raises:
        TableFormatError: a file that is foreign, cut short, damaged, too new, or being written.
    """
    with reading(path, TRAINABLE_FORMAT, _MAPPED_FILES_CAN_BE_REPLACED) as file:
        table = _table(file, "", verify)
        return dataclasses.replace(
            table,
            vocabulary=open_words(file, "vocabulary", len(table.remap), verify),
            vocabulary_fingerprint=file.text("vocabulary_fingerprint"),
            frozen_path=file.text("frozen_path"),
            owned_frozen=tuple(file.text("owned_frozen").split()),
            path=local_path(path).absolute(),
            reverse=_reverse(file, table, verify),
        )


def _table(file: TableFile, of: str, verify: bool) -> TrainableTable:
    """Read rows, remap and padding, under names with the given prefix."""
    group, prefix = (f"{of}/", f"{of}_") if of else ("", "")
    vectors, mapped = file.array(f"{group}vectors", (np.dtype(np.float32),), 2, can_map=True)
    remap = open_remap(file, f"{group}remap", prefix, len(vectors))
    if verify:
        file.check_fingerprint(f"{prefix}fingerprint", fingerprint_rows(vectors))
        file.check_fingerprint(f"{prefix}remap_fingerprint", fingerprint_remap(remap))
    return TrainableTable(
        vectors,
        remap,
        file.text(f"{prefix}frozen_fingerprint"),
        padding=file.index(f"{prefix}padding", len(remap)),
        fingerprint=file.text(f"{prefix}fingerprint"),
        remap_fingerprint=file.text(f"{prefix}remap_fingerprint"),
        mapped=mapped,
    )


def _reverse(file: TableFile, table: TrainableTable, verify: bool) -> TrainableTable | None:
    if f"{REVERSE}/vectors" not in file:
        return None
    reverse = _table(file, REVERSE, verify)
    file.check_length(f"{REVERSE}/remap", len(reverse.remap), len(table.remap))
    if reverse.vectors.shape[1] != table.vectors.shape[1]:
        dims = f"{reverse.vectors.shape[1]}; expected {table.vectors.shape[1]}, as `vectors`"
        raise damaged(file.name, f"`{REVERSE}/vectors` has dim {dims}.")
    return reverse
