"""The door to all readers: any source of vectors enters, `WordVectors` or a stream of `Block`s leaves."""

import contextlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from splitembed.tables import FrozenTable
from splitembed.vectors.fasttext.read_bin import fasttext_blocks
from splitembed.vectors.fasttext.subwords import SubwordVectors
from splitembed.vectors.intake import Intake
from splitembed.vectors.pairs.frozen_tables import table_blocks, table_vectors
from splitembed.vectors.pairs.pair import Pair, pair_blocks, shared_vectors
from splitembed.vectors.recognise import Found, name_of, recognise
from splitembed.vectors.source import VectorSource, with_options
from splitembed.vectors.streams.opening import STANDARD_INPUT, Stream, open_stream
from splitembed.vectors.streams.sniff import AUTO, BINARY_FORMAT, FASTTEXT_FORMAT, TEXT_FORMAT, Layout, sniff
from splitembed.vectors.text.read_text import text_blocks
from splitembed.vectors.word2vec.read_binary import binary_blocks
from splitembed.vectors.word_vectors import Block, WordVectors, gather_blocks, stack_blocks

READERS: dict[str, Callable[[Stream, Layout, Intake], Iterator[Block]]] = {
    TEXT_FORMAT: text_blocks,
    BINARY_FORMAT: binary_blocks,
    FASTTEXT_FORMAT: fasttext_blocks,
}


def read_vectors(
    source: Any,
    vocabulary: Iterable[str] | None = None,
    *,
    dim: int | None = None,
    format: str = AUTO,  # noqa: A002
    member: str | None = None,
    datasets: tuple[str, str] | str | None = None,
    allow_pickle: bool = False,
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

    A file is read once, from front to back, and memory follows what is kept; rows in .npy, .npz, HDF5, safetensors and
    spaCy files are mapped or read in slices. A frozen.h5 is not read but mapped: all its words are given, whatever the
    vocabulary, and its rows are not copied. Rows that several words share (spaCy) are kept once.

    Doubts (a header that counts wrong, words that come again, words that are not UTF-8, blank lines, replaced values,
    spaCy's keys without a string) are counted and told in one VectorFileWarning. With a vocabulary, doubts about words
    and values are those about rows that are kept, and lines of other words are not checked.

    Args:
        source: one of these, or a `VectorSource`, which brings the options below:

            - the path of a GloVe text, word2vec text, fastText .vec, word2vec binary or fastText .bin file, plain, in a
              zip archive, or compressed by gzip, bzip2, xz or zstd, whatever its name; "-" for standard input; a file
              opened in binary mode;
            - the path of a frozen.h5, or its `FrozenTable`; a folder that holds one;
            - the path of an .npz with one matrix and one list of words, or of any HDF5 file with `datasets`;
            - the folder of a spaCy pipeline or of its vectors; a folder with `model.safetensors` and `tokenizer.json`,
              as model2vec saves them;
            - a dict word -> row; gensim's KeyedVectors; the path of its .kv file with `allow_pickle`; `WordVectors`;
            - (words, matrix). Words: strings or integers in the order of the rows; the path of a file with one word a
              line; or what `read_vocabulary` reads, whose reserved ids (padding, `[UNK]`, out-of-vocabulary slots) and
              pieces that continue a word are no words, so that their rows are left out. Matrix: `(num_rows, dim)`, an
              array, an open HDF5 dataset, the path of a .npy, .npz, HDF5 or safetensors file, or a Keras `Embedding`.
        vocabulary: the tokens whose rows are wanted; None wants all.
        dim: numbers a row, to be checked, or to be known where words end in numbers, or to choose a file in a zip
            archive by; None finds it out.
        format: the name of a format ("text", "word2vec-binary", "fasttext-bin") to refuse any other file; also
            "word2vec-binary-float16", "-float32" or "-float64" to say what its numbers are; "auto" goes by content.
        member: the name of the file inside a zip archive; None takes the only one, or the only one of dim `dim`.
        datasets: the names of the words and of the matrix inside an .npz or HDF5 file; where the words are elsewhere,
            the name of the matrix alone, also of a tensor in a safetensors file.
        allow_pickle: load a pickle, such as gensim's .kv; it can run any code, so only of whom you trust.
        strict: make each doubt an error.
        non_finite: "error", or "zero" to replace NaN, infinities and what float32 cannot hold, which is then a doubt.
        progress: show a bar of bytes read; None shows it where a terminal watches.

    Returns:
        Distinct words in the source's order with their rows, float32 `(num_words, dim)`: `float32(float(text))` of each
        number.

    Raises:
        VectorFormatError: (a ValueError) the source is something else, by name, or damaged: with path, line or byte.
        TableFormatError: a frozen.h5 that is damaged, or another of our files.
        VocabularyError: a vocabulary that is not an iterable of strings, or cannot be read.
        OSError: as `open` raises it.
        ImportError: a library that the source needs is not installed; the message names the extra that installs it.
    """
    asked = with_options(
        source,
        dim=dim,
        format=format,
        member=member,
        datasets=datasets,
        allow_pickle=allow_pickle,
        strict=strict,
        non_finite=non_finite,
    )
    intake = _intake(asked, vocabulary)
    with contextlib.ExitStack() as stack:
        vectors = _read(recognise(asked, intake, stack), asked, intake, progress)
    vectors.subwords = vectors.subwords or getattr(asked.source, "subwords", None)
    intake.doubts.tell()
    return vectors


def iter_vectors(
    source: Any, vocabulary: Iterable[str] | None = None, *, progress: bool | None = None, **options: Any
) -> Iterator[Block]:
    """Reads pretrained vectors block by block; memory holds one block, and of the rest the words.

    >>> for words, vectors in iter_vectors({"the": [1.0, 2.0], "of": [3.0, 4.0]}):
    ...     print(words, vectors.tolist())
    ['the', 'of'] [[1.0, 2.0], [3.0, 4.0]]

    Args:
        source: as for `read_vectors`.
        vocabulary: the tokens whose rows are wanted, also of a frozen.h5; None wants all.
        progress: as for `read_vectors`.
        options: the others of `read_vectors`.

    Yields:
        At least one block, so that the dim is known; rows that words share come with each of them; the warning about
        doubts comes after the last.

    Raises:
        VectorFormatError, TableFormatError, VocabularyError, OSError, ImportError: as for `read_vectors`, when it is
            iterated.
    """
    asked = with_options(source, **options)
    intake = _intake(asked, vocabulary)
    with contextlib.ExitStack() as stack:
        yield from _blocks(recognise(asked, intake, stack), asked, intake, progress)
    intake.doubts.tell()


def read_shared_vectors(source: Any, **options: Any) -> WordVectors | None:
    """Reads vectors whose words share rows; others are better read by `iter_vectors`, in bounded memory.

    >>> read_shared_vectors({"the": [1.0, 2.0]}) is None
    True

    Args:
        source: as for `read_vectors`.
        options: the others of `read_vectors`.

    Returns:
        The vectors, or None where every word has a row of its own; then nothing was read.
    """
    asked = with_options(source, **options)
    intake = _intake(asked, None)
    with contextlib.ExitStack() as stack:
        found = recognise(asked, intake, stack)
        if not isinstance(found, FrozenTable | Pair) or found.row_of is None:
            return None
        if len(np.unique(found.row_of)) == len(found.row_of):  # a lookup's tokens, each with a row of its own
            return None
        vectors = _read(found, asked, intake, None)
    intake.doubts.tell()
    return vectors


def _intake(asked: VectorSource, vocabulary: Iterable[str] | None) -> Intake:
    return Intake(
        name_of(asked.source), vocabulary=vocabulary, dim=asked.dim, strict=asked.strict, non_finite=asked.non_finite
    )


def _read(found: Found, asked: VectorSource, intake: Intake, progress: bool | None) -> WordVectors:
    if isinstance(found, FrozenTable):
        return table_vectors(found, intake)
    if isinstance(found, Pair):
        return _stacked(pair_blocks(found, intake), intake) if found.row_of is None else shared_vectors(found, intake)
    formats: list[str] = []
    vectors = _stacked(_stream_blocks(found, asked, intake, progress, formats), intake)
    is_path = isinstance(found, (str, os.PathLike)) and found != STANDARD_INPUT
    if formats == [FASTTEXT_FORMAT] and is_path and os.path.isfile(found):
        vectors.subwords = SubwordVectors(found, member=asked.member, dim=asked.dim)
        vectors.subwords.has_warned = True  # this reading tells them
    return vectors


def _stacked(blocks: Iterator[Block], intake: Intake) -> WordVectors:
    first = next(blocks)  # then `most_rows` is known, if it can be
    blocks = itertools.chain((first,), blocks)
    most_rows = intake.most_rows
    words, vectors = gather_blocks(list(blocks)) if most_rows is None else stack_blocks(blocks, most_rows)
    return WordVectors(words, vectors, intake.source)


def _blocks(found: Found, asked: VectorSource, intake: Intake, progress: bool | None) -> Iterator[Block]:
    if isinstance(found, FrozenTable):
        return table_blocks(found, intake)
    if isinstance(found, Pair):
        return pair_blocks(found, intake)
    return _stream_blocks(found, asked, intake, progress, [])


def _stream_blocks(
    found: Any, asked: VectorSource, intake: Intake, progress: bool | None, formats: list[str]
) -> Iterator[Block]:
    """Reads a file from front to back, and notes its format."""
    with open_stream(found, progress, member=asked.member, dim=asked.dim) as stream:
        intake.source = intake.doubts.source = stream.path  # which file inside an archive it is, too
        layout = sniff(stream, intake, asked.format)
        formats.append(layout.format)
        yield from READERS[layout.format](stream, layout, intake)
