"""The functions that read any source of vectors, whole or block by block."""

import contextlib
from collections.abc import Iterator
from typing import Any

from splitembed.paths import holds_bytes
from splitembed.vectors.formats import open_vectors
from splitembed.vectors.layouts import AUTO
from splitembed.vectors.open_request import OpenRequest, name_of
from splitembed.vectors.opened import read_all, read_blocks
from splitembed.vectors.read_checks import ReadChecks
from splitembed.vectors.source import VectorSource, with_options
from splitembed.vectors.word_vectors import Block, WordVectors
from splitembed.vocabulary import read_vocabulary


def read_vectors(
    source: Any,
    vocabulary: Any = None,
    *,
    dim: int | None = None,
    format: str = AUTO,  # noqa: A002
    member: str | None = None,
    datasets: tuple[str, str] | str | None = None,
    allow_pickle: bool = False,
    strict: bool = False,
    non_finite: str = "error",
    skip_bad_lines: bool = False,
    numbers_are_words: bool = False,
    progress: bool | None = None,
) -> WordVectors:
    r"""Read pretrained vectors, or only the rows that a vocabulary can use.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "glove.txt"
    ...     written = path.write_text("the 0.5 -0.75\nof 0.25 0.5\nand 1.0 2e-1\n")
    ...     vectors = read_vectors(path, ["of", "unheard"])
    >>> vectors.words, vectors.vectors.tolist()
    (['of'], [[0.25, 0.5]])

    Text and binary files are read once, from front to back, and memory holds only the rows that are kept; rows in .npy,
    .npz, HDF5, safetensors and spaCy files are mapped or read in slices. A frozen.h5 is mapped: the result has all its
    words, regardless of the vocabulary, and its rows are not copied. Rows that several words share (spaCy) are kept
    once.

    Suspicious content (a wrong header count, duplicate words, words that are not UTF-8, blank lines, several separators
    between numbers, words that are all decimal numbers, replaced values, spaCy keys without a string) gives one
    VectorFileWarning with the number of each kind. With a vocabulary, only rows that are kept are checked; a line of
    text with too few fields is an error whether it is wanted or not, because its word may have merged with a number.

    Args:
        source: one of these, or a `VectorSource`, which holds the options below:

            - the path of a GloVe text, word2vec text, fastText .vec, word2vec binary or fastText .bin file, plain, in a
              zip archive, or compressed by gzip, bzip2, xz or zstd, under any name; "-" for standard input; a file
              opened in binary mode;
            - the path of a frozen.h5, or its `FrozenTable`; a folder that holds one;
            - the path of an .npz with one matrix and one list of words, or of any HDF5 file with `datasets`;
            - the folder of a spaCy pipeline or of its vectors; a folder with `model.safetensors` and `tokenizer.json`,
              as model2vec saves them;
            - a dict word -> row; gensim's KeyedVectors; the path of its .kv file with `allow_pickle`; `WordVectors`;
            - (words, matrix). Words: strings or integers in the order of the rows; the path of a file with one word a
              line; or a vocabulary that `read_vocabulary` reads, whose reserved ids (padding, `[UNK]`, OOV slots) and
              pieces that continue a word are left out with their rows. Matrix: `(num_rows, dim)`, an array, an open
              HDF5 dataset, the path of a .npy, .npz, HDF5 or safetensors file or of a text of numbers, as
              `numpy.savetxt` writes it, or a Keras `Embedding`.
        vocabulary: the tokens whose rows are wanted, or a file of them that `read_vocabulary` reads; None wants all.
        dim: the numbers in a row: checked, needed if words end in numbers, and used to choose a file in a zip archive;
            None detects it.
        format: the name of a format ("text", "word2vec-binary", "fasttext-bin"), to refuse any other; also
            "word2vec-binary-float16", "-float32" or "-float64", to give its dtype; "auto" recognises it by the content.
        member: the name of the file inside a zip archive; None takes the only one, or the only one of dim `dim`.
        datasets: the names of the words and of the matrix inside an .npz or HDF5 file; if the words are elsewhere, the
            name of the matrix alone, also of a tensor in a safetensors file.
        allow_pickle: load a pickle, such as gensim's .kv. It can run any code: trust its author first.
        strict: raise an error instead of each warning.
        non_finite: "error", or "zero" to replace NaN, infinities and values that overflow float32, with a warning.
        skip_bad_lines: leave out lines of a text that have too few fields or a field that is not a number. One warning
            counts them and names the first ones. With `strict` they stay an error.
        numbers_are_words: accept a text whose words are all decimal numbers, such as 0.5, without a warning. It looks
            like a matrix without words.
        progress: show a bar of bytes read; None shows it if standard error is a terminal.

    Returns:
        Distinct words in the source's order with their rows, float32 `(num_words, dim)`: `float32(float(text))` of each
        number.

    Raises:
        VectorFormatError: (a ValueError) the source has another format, which the message names, or is damaged, with
            path, line or byte.
        TableFormatError: a damaged frozen.h5, or another file of splitembed.
        VocabularyError: a vocabulary that is not an iterable of strings, or cannot be read.
        OSError: as `open` raises it.
        ImportError: a library that the source needs is not installed. The message names the extra that installs it.
    """
    options = with_options(
        source,
        dim=dim,
        format=format,
        member=member,
        datasets=datasets,
        allow_pickle=allow_pickle,
        strict=strict,
        non_finite=non_finite,
        skip_bad_lines=skip_bad_lines,
        numbers_are_words=numbers_are_words,
        progress=progress,
    )
    checks = checks_of(options, vocabulary)
    with contextlib.ExitStack() as stack:
        vectors = read_all(open_vectors(OpenRequest(options, checks, stack)), checks)
    vectors.subwords = vectors.subwords or getattr(options.source, "subwords", None)
    checks.warnings.emit()
    return vectors


def iter_vectors(source: Any, vocabulary: Any = None, **reading: Any) -> Iterator[Block]:
    """Read pretrained vectors block by block. Memory holds one block, and the words of all.

    >>> for words, vectors in iter_vectors({"the": [1.0, 2.0], "of": [3.0, 4.0]}):
    ...     print(words, vectors.tolist())
    ['the', 'of'] [[1.0, 2.0], [3.0, 4.0]]

    Args:
        source: as for `read_vectors`.
        vocabulary: the tokens whose rows are wanted, also of a frozen.h5; None wants all.
        **reading: the other options of `read_vectors`.

    Yields:
        At least one block, so that the dim is known. Shared rows are repeated for each word. The warning about
        suspicious content follows the last block.

    Raises:
        VectorFormatError, TableFormatError, VocabularyError, OSError, ImportError: as for `read_vectors`, during the
            iteration.
    """
    request = with_options(source, **reading)
    checks = checks_of(request, vocabulary)
    with contextlib.ExitStack() as stack:
        yield from read_blocks(open_vectors(OpenRequest(request, checks, stack)), checks)
    checks.warnings.emit()


def checks_of(options: VectorSource, vocabulary: Any = None, *, refuses_numbers_as_words: bool = False) -> ReadChecks:
    """Return the checks that the options of a source ask for."""
    if holds_bytes(vocabulary):
        vocabulary = read_vocabulary(vocabulary).tokens
    return ReadChecks(
        name_of(options.source),
        vocabulary=vocabulary,
        dim=options.dim,
        strict=options.strict,
        non_finite=options.non_finite,
        skip_bad_lines=options.skip_bad_lines,
        numbers_are_words=options.numbers_are_words,
        refuses_numbers_as_words=refuses_numbers_as_words,
    )
