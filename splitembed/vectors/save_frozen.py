"""Conversion of any source of vectors into a frozen.h5, which many models can share."""

import contextlib
import os
from typing import Any

import numpy as np

from splitembed.tables import FrozenTable, FrozenWriter, encode_rows, open_frozen, write_frozen
from splitembed.tables.atomic_files import refuse_foreign
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
    progress: bool | None = None,
    **options: Any,
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
        progress: as for `read_vectors`.
        **options: options for reading the source: `dim`, `format`, `member`, `datasets`, `allow_pickle`, `strict`,
            `non_finite`, `skip_bad_lines` and `numbers_are_words`, as for `read_vectors`. A text whose words are all
            decimal numbers is an error without `numbers_are_words`.

    Returns:
        The table, opened.

    Raises:
        VectorFormatError, TableFormatError, OSError: the source cannot be read.
        SplitError: a number too large for `dtype`.
        VocabularyError: a word that cannot be stored.
        TableFormatError: `path` is a file that is not a table of splitembed, and would be lost.
    """
    refuse_foreign(path)
    request, name = with_options(source, **options), _source_name(source)
    # Nobody reads a warning again once the file is used.
    checks = checks_of(request, refuses_numbers_as_words=True)
    with contextlib.ExitStack() as stack:
        opened = open_vectors(OpenRequest(request, checks, stack, progress))
        if shares_rows(opened):
            _write_shared(path, read_all(opened, checks), dtype, name)
        else:
            with FrozenWriter(path, dtype=dtype, source=name, with_zero_row=True) as writer:
                for words, vectors in read_blocks(opened, checks):
                    writer.append(words, vectors)
    checks.warnings.emit()
    return open_frozen(path)


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
    if isinstance(source, (tuple, list)) and len(source) == 2 and isinstance(source[1], (str, os.PathLike)):
        source = source[1]
    return os.path.basename(source) if isinstance(source, (str, os.PathLike)) else type(source).__name__
