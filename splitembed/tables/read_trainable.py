"""Trainable tables, opened from a trainable.h5."""

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import as_read_only
from splitembed.paths import local_path
from splitembed.tables import atomic_files as files
from splitembed.tables import fields as contents
from splitembed.tables.datasets import check_length, dataset
from splitembed.tables.fields import TRAINABLE_FORMAT, PathLike
from splitembed.tables.fingerprints import fingerprint_remap, fingerprint_rows
from splitembed.tables.mapping import map_or_read, read
from splitembed.tables.stored_words import open_words
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
    fingerprint: str = ""
    remap_fingerprint: str = ""
    vocabulary_fingerprint: str = ""
    path: Path | None = None
    mapped: bool = False
    reverse: "TrainableTable | None" = None


def fault_of_remap(remap: NDArray[np.int32], num_trainable: int, name: str = "remap") -> str:
    """Return which entry of a remap names a missing trainable row; "" if there is none."""
    if remap.min(initial=0) >= -num_trainable:
        return ""
    token_id = int(np.argmax(remap < -num_trainable))
    return f"`{name}[{token_id}]` is trainable row {~int(remap[token_id])}; expected less than {num_trainable}."


def open_trainable(path: PathLike, *, verify: bool = False) -> TrainableTable:
    """Open a trainable.h5; its rows are memory-mapped if they are contiguous in the file, and read otherwise.

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
    with files.reading(path, TRAINABLE_FORMAT) as file:
        table = _table(file, "", verify)
        return dataclasses.replace(
            table,
            vocabulary=open_words(file, "vocabulary", len(table.remap), verify),
            vocabulary_fingerprint=contents.text_attribute(file, "vocabulary_fingerprint"),
            frozen_path=contents.text_attribute(file, "frozen_path"),
            path=local_path(path).absolute(),
            reverse=_reverse(file, table, verify),
        )


def _table(file: h5py.File, of: str, verify: bool) -> TrainableTable:
    """Read rows, remap and padding, under names with the given prefix."""
    group, prefix = (f"{of}/", f"{of}_") if of else ("", "")
    rows = dataset(file, f"{group}vectors", (np.dtype(np.float32),), 2)
    vectors, mapped = map_or_read(file, rows, _MAPPED_FILES_CAN_BE_REPLACED, scattered=False)
    remap = read(dataset(file, f"{group}remap", (np.dtype(np.int32),), 1))
    fault = fault_of_remap(remap, len(vectors), f"{group}remap")
    if fault:
        raise contents.damaged(file, fault)
    if verify:
        contents.check_fingerprint(file, f"{prefix}fingerprint", fingerprint_rows(vectors))
        contents.check_fingerprint(file, f"{prefix}remap_fingerprint", fingerprint_remap(remap))
    return TrainableTable(
        vectors,
        as_read_only(remap),
        contents.text_attribute(file, f"{prefix}frozen_fingerprint"),
        padding=contents.index_attribute(file, f"{prefix}padding", len(remap)),
        fingerprint=contents.text_attribute(file, f"{prefix}fingerprint"),
        remap_fingerprint=contents.text_attribute(file, f"{prefix}remap_fingerprint"),
        mapped=mapped,
    )


def _reverse(file: h5py.File, table: TrainableTable, verify: bool) -> TrainableTable | None:
    if REVERSE not in file:
        return None
    reverse = _table(file, REVERSE, verify)
    check_length(file, f"{REVERSE}/remap", len(reverse.remap), len(table.remap))
    if reverse.vectors.shape[1] != table.vectors.shape[1]:
        dims = f"{reverse.vectors.shape[1]}; expected {table.vectors.shape[1]}, as `vectors`"
        raise contents.damaged(file, f"`{REVERSE}/vectors` has dim {dims}.")
    return reverse
