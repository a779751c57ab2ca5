"""Any source of vectors enters; a frozen.h5 that many models can share leaves, in bounded memory."""

import os
from typing import Any

from splitembed.tables import FrozenTable, FrozenWriter, open_frozen
from splitembed.vectors import WordVectors, iter_vectors
from splitembed.vectors.sniff import AUTO


def save_frozen(
    path: str | os.PathLike[str],
    source: Any,
    *,
    dim: int | None = None,
    format: str = AUTO,  # noqa: A002
    strict: bool = False,
    non_finite: str = "error",
    dtype: str = "float32",
    progress: bool | None = None,
) -> FrozenTable:
    """Streams pretrained vectors into a frozen.h5, with an all-zero row at the end for padding ids.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = save_frozen(Path(folder) / "frozen.h5", {"the": [1.0, 2.0], "of": [3.0, 4.0]})
    ...     print(table.vectors.tolist(), list(table.words), table.zero_row)
    [[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]] ['the', 'of', ''] 2

    Memory holds a few blocks of rows and the words.

    Args:
        path: the file to make or replace, as a whole and at once.
        source: whatever `read_vectors` takes.
        dim: as for `read_vectors`.
        format: as for `read_vectors`.
        strict: as for `read_vectors`.
        non_finite: as for `read_vectors`.
        dtype: "float32", or "float16", "bfloat16" or "int8" to store rows rounded.
        progress: as for `read_vectors`.

    Returns:
        The table, opened.

    Raises:
        VectorFormatError, TableFormatError, OSError: the source cannot be read.
        SplitError: a number too large for `dtype`.
        VocabularyError: a word that cannot be stored.
    """
    blocks = iter_vectors(source, dim=dim, format=format, strict=strict, non_finite=non_finite, progress=progress)
    with FrozenWriter(path, dim, dtype=dtype, source=_source_name(source), with_zero_row=True) as writer:
        for words, vectors in blocks:
            writer.append(words, vectors)
    return open_frozen(path)


def _source_name(source: Any) -> str:
    """The name of the file, without the folders of this machine, or of the type of object."""
    if isinstance(source, WordVectors):
        source = source.source
    return os.path.basename(source) if isinstance(source, (str, os.PathLike)) else type(source).__name__
