"""trainable.h5 read: a path enters; trainable rows, remap and vocabulary leave, to be paired with a frozen table."""

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import as_read_only
from splitembed.tables import atomic_files as files
from splitembed.tables import fields as contents
from splitembed.tables.fields import TRAINABLE_FORMAT, PathLike
from splitembed.tables.fingerprints import fingerprint_remap, fingerprint_rows
from splitembed.tables.mapping import map_or_read, read
from splitembed.tables.stored_words import open_words
from splitembed.words import Words

REVERSE = "reverse"  # what the second of two tables in one file is called
_MAPPED_FILES_CAN_BE_REPLACED = os.name == "posix"  # elsewhere a model could not be saved where it was opened


@dataclass(frozen=True, eq=False)
class TrainableTable:
    """What one model trains, and where each of its tokens finds its row.

    Args:
        vectors: `(num_trainable, dim)` float32, read-only.
        remap: `(num_tokens,)` int32, read-only: `>= 0` is a row of the frozen table, `< 0` is row `~remap[id]` here.
        frozen_fingerprint: of the frozen table that `remap` points into.
        vocabulary: the tokens in id order, read on first use; None where ids have no strings.
        padding: the padding id, or None.
        frozen_path: where the frozen table was, as a hint; "" if beside this file.
        fingerprint: of `vectors`, see `fingerprint_rows`.
        remap_fingerprint: of `remap`.
        vocabulary_fingerprint: of `vocabulary`; "" without one.
        path: the file, absolute; None for a table in memory.
        mapped: whether `vectors` is a map of the file, so that a model's weight is all the memory that they take.
        reverse: of an embedding whose weights are not tied, what its logits train, for the same tokens: another frozen
            table's fingerprint, rows, remap and padding.
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
    """Says which entry of a remap names a trainable row that is not there; "" if none does."""
    if remap.min(initial=0) >= -num_trainable:
        return ""
    token_id = int(np.argmax(remap < -num_trainable))
    return f"`{name}[{token_id}]` names trainable row {~int(remap[token_id])}; there are {num_trainable} of them."


def open_trainable(path: PathLike, *, verify: bool = False) -> TrainableTable:
    """Opens a trainable.h5: its rows are mapped where they lie plain in the file, and read otherwise.

    No handle stays open. The map shows the file as it was opened, also after `path` is replaced or deleted.

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
        verify: also read the vocabulary now, and compare the fingerprints of everything.

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
            path=Path(path).absolute(),
            reverse=_reverse(file, table, verify),
        )


def _table(file: h5py.File, of: str, verify: bool) -> TrainableTable:
    """Rows, remap and padding under their plain names, or under those that begin with `reverse`."""
    group, prefix = (f"{of}/", f"{of}_") if of else ("", "")
    rows = contents.dataset(file, f"{group}vectors", (np.dtype(np.float32),), 2)
    vectors, mapped = map_or_read(file, rows, _MAPPED_FILES_CAN_BE_REPLACED, scattered=False)
    remap = read(contents.dataset(file, f"{group}remap", (np.dtype(np.int32),), 1))
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
    contents.check_length(file, f"{REVERSE}/remap", len(reverse.remap), len(table.remap))
    if reverse.vectors.shape[1] != table.vectors.shape[1]:
        dims = f"{reverse.vectors.shape[1]}; `vectors` have {table.vectors.shape[1]}"
        raise contents.damaged(file, f"`{REVERSE}/vectors` have dim {dims}.")
    return reverse
