"""The door to all readers: any source of vectors enters, `WordVectors` or a stream of `Block`s leaves."""

import itertools
import os
import reprlib
from collections.abc import Iterable, Iterator
from typing import Any

from splitembed.errors import VectorFormatError
from splitembed.tables import FrozenTable, open_frozen
from splitembed.vectors.blocks import Block, WordVectors, gather_blocks, stack_blocks
from splitembed.vectors.frozen import HDF5_MAGIC, table_blocks, table_vectors
from splitembed.vectors.intake import Intake
from splitembed.vectors.memory import Pair, as_pair, pair_blocks
from splitembed.vectors.sniff import AUTO, TEXT_FORMAT, sniff
from splitembed.vectors.streams import open_stream
from splitembed.vectors.text import text_blocks
from splitembed.vectors.word2vec_binary import binary_blocks

Found = FrozenTable | Pair | str | os.PathLike[str]


def read_vectors(
    source: Any,
    vocabulary: Iterable[str] | None = None,
    *,
    dim: int | None = None,
    format: str = AUTO,  # noqa: A002
    strict: bool = False,
    non_finite: str = "error",
    progress: bool | None = None,
) -> WordVectors:
    r"""Reads pretrained vectors, or of a file only the rows that a vocabulary can use.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "glove.txt"
    ...     written = path.write_text("the 0.5 -0.75\nof 0.25 0.5\nand 1.0 2e-1\n")
    ...     vectors = read_vectors(path, ["of", "unheard"])
    >>> vectors.words, vectors.vectors.tolist()
    (['of'], [[0.25, 0.5]])

    A file is read once, from front to back, and memory follows what is kept. A frozen.h5 is not read but mapped: all
    its words are given, whatever the vocabulary, and its rows are not copied.

    Doubts (a header that counts wrong, words that come again, words that are not UTF-8, blank lines, replaced values)
    are counted and told in one VectorFileWarning. With a vocabulary, doubts about words and values are those about rows
    that are kept, and lines of other words are not checked.

    Args:
        source: the path of a GloVe text, word2vec text, fastText .vec or word2vec binary file, plain or compressed by
            gzip, bzip2 or xz, whatever its name; the path of a frozen.h5, or its `FrozenTable`; a dict word -> row;
            (words, matrix); gensim's KeyedVectors; `WordVectors`.
        vocabulary: the tokens whose rows are wanted; None wants all.
        dim: numbers a row, to be checked, or to be known where words end in numbers; None finds it out.
        format: "text" or "word2vec-binary" to refuse any other file; "auto" goes by content.
        strict: make each doubt an error.
        non_finite: "error", or "zero" to replace NaN, infinities and what float32 cannot hold, which is then a doubt.
        progress: show a bar of bytes read; None shows it where a terminal watches.

    Returns:
        Distinct words in the source's order with their rows, float32 `(num_words, dim)`: `float32(float(text))` of each
        number.

    Raises:
        VectorFormatError: (a ValueError) the source is something else, by name, or damaged: with path, line or byte.
        TableFormatError: an HDF5 file that is no frozen.h5.
        VocabularyError: a vocabulary that is not an iterable of strings.
        OSError: as `open` raises it.
    """
    found = _recognise(source)
    intake = Intake(_name(source, found), vocabulary=vocabulary, dim=dim, strict=strict, non_finite=non_finite)
    if isinstance(found, FrozenTable):
        return table_vectors(found, intake)
    blocks = _blocks(found, intake, format, progress)
    first = next(blocks)  # then `most_rows` is known, if it can be
    blocks = itertools.chain((first,), blocks)
    most_rows = intake.most_rows
    words, vectors = gather_blocks(list(blocks)) if most_rows is None else stack_blocks(blocks, most_rows)
    intake.doubts.tell()
    return WordVectors(words, vectors, intake.source)


def iter_vectors(
    source: Any,
    vocabulary: Iterable[str] | None = None,
    *,
    dim: int | None = None,
    format: str = AUTO,  # noqa: A002
    strict: bool = False,
    non_finite: str = "error",
    progress: bool | None = None,
) -> Iterator[Block]:
    """Reads pretrained vectors block by block; memory holds one block, and of the rest the words.

    >>> for words, vectors in iter_vectors({"the": [1.0, 2.0], "of": [3.0, 4.0]}):
    ...     print(words, vectors.tolist())
    ['the', 'of'] [[1.0, 2.0], [3.0, 4.0]]

    Args:
        source: as for `read_vectors`.
        vocabulary: the tokens whose rows are wanted, also of a frozen.h5; None wants all.
        dim: as for `read_vectors`.
        format: as for `read_vectors`.
        strict: as for `read_vectors`.
        non_finite: as for `read_vectors`.
        progress: as for `read_vectors`.

    Yields:
        At least one block, so that the dim is known; the warning about doubts comes after the last.

    Raises:
        VectorFormatError, TableFormatError, VocabularyError, OSError: as for `read_vectors`, when it is iterated.
    """
    found = _recognise(source)
    intake = Intake(_name(source, found), vocabulary=vocabulary, dim=dim, strict=strict, non_finite=non_finite)
    yield from _blocks(found, intake, format, progress)
    intake.doubts.tell()


def _recognise(source: Any) -> Found:
    if isinstance(source, FrozenTable):
        return source
    if isinstance(source, (str, os.PathLike)):
        return open_frozen(source) if _is_hdf5(source) else source
    if isinstance(source, WordVectors) and source.table is not None:
        return source.table
    pair = as_pair(source)
    if pair is None:
        hint = " For one dense matrix in id order there is SplitTable.from_matrix." if hasattr(source, "shape") else ""
        raise VectorFormatError(
            "`source` must be a path, a dict word -> row, (words, matrix), KeyedVectors, WordVectors or FrozenTable. "
            f"Received: {reprlib.repr(source)} (of type {type(source).__name__}).{hint}"
        )
    return pair


def _is_hdf5(path: str | os.PathLike[str]) -> bool:
    if not os.path.isfile(path):  # a pipe can be read only once
        return False
    with open(path, "rb") as file:
        return file.read(len(HDF5_MAGIC)) == HDF5_MAGIC


def _name(source: Any, found: Found) -> str:
    """What messages call the source."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    if isinstance(found, FrozenTable):
        return str(found.path or "the frozen table")
    return found.name if isinstance(found, Pair) else os.fspath(found)


def _blocks(found: Found, intake: Intake, format: str, progress: bool | None) -> Iterator[Block]:  # noqa: A002
    if isinstance(found, FrozenTable):
        yield from table_blocks(found, intake)
    elif isinstance(found, Pair):
        yield from pair_blocks(found, intake)
    else:
        with open_stream(found, progress) as stream:
            layout = sniff(stream, intake, format)
            read = text_blocks if layout.format == TEXT_FORMAT else binary_blocks
            yield from read(stream, layout, intake)
