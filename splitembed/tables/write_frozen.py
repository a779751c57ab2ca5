"""Writing a frozen.h5 from an array or a memory map."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import FingerprintError, SplitError
from splitembed.tables.fields import FROZEN_FORMAT, PathLike
from splitembed.tables.fingerprints import Fingerprint, describe_rows
from splitembed.tables.storage import STORAGES, Storage, storage_of
from splitembed.tables.stored_words import store_word_rows, store_words
from splitembed.tables.write_table import TableWriter, publishing
from splitembed.words import Words, pack_words

# In bytes: a page, so that mapped rows start at a multiple of 64 bytes.
ALIGNMENT_IN_FILE = 4096


def write_frozen(
    path: PathLike,
    vectors: NDArray[Any],
    *,
    words: Iterable[str] | None = None,
    source: str = "",
    zero_row: int | None = None,
    scale: NDArray[np.float32] | None = None,
    fingerprint: str | None = None,
    row_of: NDArray[np.int64] | None = None,
) -> str:
    """Write rows as a frozen.h5, in blocks, so that a memory map is never read as a whole.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from splitembed.tables import open_frozen
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "frozen.h5"
    ...     found = write_frozen(path, np.eye(2, 3, dtype=np.float32), words=["the", "of"])
    ...     table = open_frozen(path)
    ...     print(table.vectors.tolist(), list(table.words), table.fingerprint == found)
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]] ['the', 'of'] True

    Args:
        path: the file to make or replace, in one step.
        vectors: `(num_frozen, dim)` float32, float16, uint16 (bfloat16) or int8.
        words: one for each row, or for each number in `row_of`; or None.
        source: a description of the origin of the rows.
        zero_row: a row that is all zero, for padding ids, or None.
        scale: float32 `(num_frozen,)`, only with int8.
        fingerprint: the expected fingerprint of the rows, or None; nothing is written if it differs.
        row_of: integers `(num_words,)`, the row of each word, where words share rows; None where word `i` has row `i`.

    Returns:
        The fingerprint of the rows.

    Raises:
        SplitError: arguments that do not match.
        FingerprintError: the rows do not have `fingerprint`.
        VocabularyError: a word that cannot be stored.
    """
    _check_arguments(vectors, scale, zero_row)
    packed = None if words is None else _packed(words, len(vectors) if row_of is None else len(row_of))
    with publishing(path, FROZEN_FORMAT, alignment=ALIGNMENT_IN_FILE, source=source) as writer:
        storage = storage_of(vectors.dtype)
        store_sizes(writer, storage, vectors.shape[1], zero_row)
        store_words(writer, "words", packed)
        if row_of is not None:
            store_word_rows(writer, _checked_rows(row_of, len(vectors), packed))
        of_rows = Fingerprint()
        writer.array("vectors", vectors, of_rows)
        if scale is not None:
            writer.array("scale", scale, of_rows)
        finished = of_rows.finish(describe_rows(storage.name, *vectors.shape))
        if fingerprint not in (None, finished):
            raise FingerprintError(
                f"{path}: the rows have the fingerprint {finished}; expected {fingerprint}. They were changed in "
                f"place, in memory or in the file that they are mapped from. Read them from their source again."
            )
        writer.text(fingerprint=finished)
    return finished


def _check_arguments(vectors: NDArray[Any], scale: NDArray[Any] | None, zero_row: int | None) -> None:
    if np.ndim(vectors) != 2:
        raise SplitError(f"`vectors` must have shape (num_frozen, dim). Received: shape {np.shape(vectors)}.")
    storage = storage_of(vectors.dtype)
    if storage.has_scale != (scale is not None):
        scaled = ", ".join(each.name for each in STORAGES.values() if each.has_scale)
        raise SplitError(
            f"`scale` must be given with {scaled} rows, and only with them. Received: {storage.name} rows."
        )
    if scale is not None and (scale.shape != vectors.shape[:1] or scale.dtype != np.float32):
        raise SplitError(f"`scale` must be float32 {vectors.shape[:1]}. Received: {scale.dtype} {scale.shape}.")
    if zero_row is not None and (not 0 <= zero_row < len(vectors) or storage.decode(vectors[zero_row], None).any()):
        raise SplitError(f"`zero_row` must be a row of `vectors` that is all zero. Received: {zero_row}.")


def _checked_rows(row_of: NDArray[np.int64], num_rows: int, words: Words | None) -> NDArray[np.int64]:
    rows = np.asarray(row_of)
    if words is None or rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise SplitError(
            f"`row_of` must be integers (num_words,), given with `words`. Received: {rows.dtype} {rows.shape}."
        )
    outside = (rows < 0) | (rows >= num_rows)
    if outside.any():
        raise SplitError(
            f"`row_of` must be from 0 to {num_rows - 1}, as there are {num_rows} rows. Received: {rows[outside][0]}."
        )
    return rows


def _packed(words: Iterable[str], num_rows: int) -> Words:
    utf8, offsets = pack_words(words)
    if len(offsets) != num_rows + 1:
        raise SplitError(
            f"`words` must have one word for each row, or for each number in `row_of`. Received: "
            f"{len(offsets) - 1} words, {num_rows} rows."
        )
    return Words.from_arrays(utf8, offsets)


def store_sizes(writer: TableWriter, storage: Storage, dim: int, zero_row: int | None) -> None:
    """Write the attributes that do not depend on the rows."""
    writer.text(dtype=storage.name)
    writer.integer("dim", dim)
    if zero_row is not None:
        writer.integer("zero_row", zero_row)
