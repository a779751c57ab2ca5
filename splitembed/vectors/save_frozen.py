"""Conversion of any source of vectors into a frozen.h5, which many models can share."""

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from splitembed.errors import TableFormatError
from splitembed.paths import is_path, local_path
from splitembed.tables import (
    TRAINABLE_NAME,
    FrozenTable,
    FrozenWriter,
    encode_rows,
    is_frozen,
    open_frozen,
    open_trainable,
    write_frozen,
)
from splitembed.tables.atomic_files import refuse_foreign
from splitembed.tables.fields import FROZEN_FORMAT
from splitembed.vectors.formats import open_vectors
from splitembed.vectors.open_request import OpenRequest
from splitembed.vectors.opened import read_all, read_blocks, shares_rows
from splitembed.vectors.read import checks_of
from splitembed.vectors.source import VectorSource, with_options
from splitembed.vectors.word_vectors import WordVectors


def save_frozen(
    path: str | os.PathLike[str],
    source: Any,
    *,
    dtype: str = "float32",
    **reading: Any,
) -> FrozenTable:
    """Convert pretrained vectors into a frozen.h5, with an all-zero row at the end for padding ids.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = save_frozen(Path(folder) / "frozen.h5", {"the": [1.0, 2.0], "of": [3.0, 4.0]})
    ...     print(table.vectors.tolist(), list(table.words), table.zero_row)
    [[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]] ['the', 'of', ''] 2

    Memory holds a few blocks of rows and the words. Rows that words share, as in spaCy's vectors, are held in memory as
    a whole, and stored once.

    Args:
        path: the file to write. An existing file is replaced in one step, after the whole file is written.
        source: any source of `read_vectors`.
        dtype: "float32", or "float16", "bfloat16" or "int8" to store rows rounded.
        **reading: options of `read_vectors`, such as `dim` and `allow_pickle`. A text whose words are all decimal
            numbers is an error without `numbers_are_words`.

    Returns:
        The table, opened.

    Raises:
        VectorFormatError, TableFormatError, OSError: the source cannot be read.
        SplitError: a number too large for `dtype`.
        VocabularyError: a word that cannot be stored.
        TableFormatError: `path` is a file that would be lost: not a frozen table of splitembed, or that of a split
            whose trainable.h5 is beside it.
    """
    path = local_path(path)
    refuse_foreign(path, FROZEN_FORMAT)
    _refuse_rows_in_use(path)
    request, name = with_options(source, **reading), _source_name(source)
    # Nobody reads a warning again once the file is used.
    checks = checks_of(request, refuses_numbers_as_words=True)
    with contextlib.ExitStack() as stack:
        opened = open_vectors(OpenRequest(request, checks, stack))
        if shares_rows(opened):
            _write_shared(path, read_all(opened, checks), dtype, name)
        else:
            with FrozenWriter(path, dtype=dtype, source=name, with_zero_row=True) as writer:
                for words, vectors in read_blocks(opened, checks):
                    writer.append(words, vectors)
    checks.warnings.emit()
    return open_frozen(path)


def _refuse_rows_in_use(path: Path) -> None:
    """Refuse to replace the frozen table of a split, whose trainable table is useless without it."""
    trainable = path.with_name(TRAINABLE_NAME)
    if path.exists() and trainable.exists() and is_frozen(path, open_trainable(trainable).frozen_fingerprint):
        raise TableFormatError(
            f"{path} holds the frozen rows of the split in {trainable}; that split would be lost. Pass another name, "
            f"or remove {trainable} first."
        )


def _write_shared(path: str | os.PathLike[str], vectors: WordVectors, dtype: str, name: str) -> None:
    matrix, zero_row = vectors.matrix, None if vectors.table is None else vectors.table.zero_row
    if zero_row is None:
        zero_row, matrix = len(matrix), np.vstack([matrix, np.zeros((1, vectors.dim), np.float32)])
    rows, scale = encode_rows(matrix, dtype)
    write_frozen(path, rows, words=vectors.words, source=name, zero_row=zero_row, scale=scale, row_of=vectors.row_of)


def _source_name(source: Any) -> str:
    """Return the name of the file without its folders, or of the type of the object."""
    if isinstance(source, (VectorSource, WordVectors)):
        source = source.source
    if isinstance(source, (tuple, list)) and len(source) == 2 and is_path(source[1]):
        source = source[1]
    return os.path.basename(source) if is_path(source) else type(source).__name__
