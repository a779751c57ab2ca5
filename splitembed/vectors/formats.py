"""The formats of vectors: one table of their names, how each is recognised, and how it is opened.

A new format is one entry here, and one module that recognises and opens it.
"""

import os
import reprlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from splitembed.errors import VectorFormatError
from splitembed.paths import is_path
from splitembed.vectors.fasttext.read_bin import fasttext_blocks
from splitembed.vectors.fasttext.subwords import SubwordVectors
from splitembed.vectors.layouts import AUTO, BINARY_FORMAT, DTYPES_OF_FORMATS, FASTTEXT_FORMAT, TEXT_FORMAT, Layout
from splitembed.vectors.open_request import ACCEPTED, OpenRequest, is_words_and_matrix, name_of
from splitembed.vectors.opened import Opened, RowStream
from splitembed.vectors.pairs import frozen_tables, hdf5, in_memory, npy, npz, pickles, safetensors, spacy
from splitembed.vectors.pairs.read_pair import Pair
from splitembed.vectors.pairs.rows import check_rows
from splitembed.vectors.pairs.word_lists import as_word_list
from splitembed.vectors.read_checks import ReadChecks
from splitembed.vectors.source import VectorSource, refuse_datasets
from splitembed.vectors.streams.opening import Stream
from splitembed.vectors.text.read_matrix import is_matrix, read_matrix
from splitembed.vectors.text.read_text import text_blocks
from splitembed.vectors.word2vec.read_binary import binary_blocks
from splitembed.vectors.word_vectors import Block
from splitembed.vocabulary.labels import align_rows


class Format(NamedTuple):
    """A format of vectors.

    Args:
        name: for messages; of a stream also the value of the option `format`.
        recognise: returns whether a source has this format.
        open: opens a source of this format, or raises the error that says why it cannot be read.
        open_matrix: opens the matrix of (words, path) where the path has this format; None for a format that holds
            words as well.
        takes_datasets: whether the option `datasets` names parts of the file.
        is_stream: whether the file is read in order, so that it may be compressed or in a zip archive.
    """

    name: str
    recognise: Callable[[OpenRequest], bool]
    open: Callable[[OpenRequest], Opened]
    open_matrix: Callable[[OpenRequest], Any] | None = None
    takes_datasets: bool = False
    is_stream: bool = False


def open_vectors(request: OpenRequest) -> Opened:
    """Recognise the format of a source, and open it.

    Args:
        request: the source and its options.

    Returns:
        A frozen table, words with their rows, or a stream of rows.

    Raises:
        VectorFormatError: no format fits, or an option does not fit the format.
        OSError: as `open` raises it.
        ImportError: a library that the format needs is not installed.
    """
    if request.holds_bytes:
        _check_format_name(request.options.format)
    found = _find_format(request)
    if found is None:
        raise _unknown_source(request.source)
    _check_options(request, found)
    return found.open(request)


def _find_format(request: OpenRequest) -> Format | None:
    return next((each for each in FORMATS if each.recognise(request)), None)


def _check_format_name(name: str) -> None:
    names = (AUTO, *(each.name for each in FORMATS if each.is_stream), *DTYPES_OF_FORMATS)
    if name not in names:
        raise VectorFormatError(f"`format` must be one of {', '.join(names)}. Received: {name!r}.")


def _check_options(request: OpenRequest, format: Format) -> None:  # noqa: A002
    """Refuse options that belong to other formats."""
    options, name = request.options, name_of(request.source)
    if not format.takes_datasets:
        refuse_datasets(options)
    if options.member is not None and not format.is_stream:
        raise VectorFormatError(
            f"{name}: found {format.name}; expected a zip archive, because of member={options.member!r}. Leave "
            "`member` out."
        )
    fitting = (AUTO, format.name, *(DTYPES_OF_FORMATS if format.name == BINARY_FORMAT else ()))
    if options.format not in fitting and request.holds_bytes:
        raise VectorFormatError(
            f"{name}: found {format.name}; expected {options.format}, because of format={options.format!r}. Pass "
            f'format="{format.name if format.is_stream else AUTO}".'
        )


def _unknown_source(source: Any) -> VectorFormatError:
    hint = " For one dense matrix in id order there is SplitTable.from_matrix." if hasattr(source, "shape") else ""
    if in_memory.is_embedding(source):
        hint = " Pass (lookup, embedding): the layer knows no words."
    return VectorFormatError(
        f"`source` must be {ACCEPTED}. Received: {reprlib.repr(source)} (of type {type(source).__name__}).{hint}"
    )


def _open_words_and_matrix(request: OpenRequest) -> Pair:
    """Open (words, matrix), each in memory or in a file."""
    name, (words, matrix) = name_of(request.source), request.source
    listed = as_word_list(words, request.options.allow_pickle)
    if is_path(matrix):
        rows = _open_matrix(request.for_source(matrix))
    else:
        refuse_datasets(request.options)
        is_layer = in_memory.is_embedding(matrix)
        rows = in_memory.table_of_embedding(matrix) if is_layer else align_rows("matrix", matrix, listed.words)
    return Pair(name, listed.words, check_rows(name, listed.num_rows, rows), listed.row_of)


def _open_matrix(request: OpenRequest) -> Any:
    for format in FORMATS:  # noqa: A001
        if format.open_matrix is not None and format.recognise(request):
            if not format.takes_datasets:
                refuse_datasets(request.options)
            return format.open_matrix(request)
    # Text has no signature, so it comes last.
    if request.file is not None and is_matrix(request.stream.head):
        return read_matrix(request.stream)
    raise VectorFormatError(
        f"{request.path}: found a file that starts with {request.head!r}; expected the matrix of (words, matrix): "
        ".npy, .npz, .h5, .safetensors or lines of numbers. Pass a file that holds words as well without a list of "
        "words."
    )


def _open_pickle(request: OpenRequest) -> Opened:
    """Load a pickle if the user allows it, and open the object in it."""
    if not request.options.allow_pickle:
        raise VectorFormatError(
            f"{request.path}: found a pickle, which can run any code when it is loaded; expected vectors. If you trust "
            "its author, pass allow_pickle=True; or load it, and pass the object that it holds."
        )
    return _open_loaded(request, pickles.load_pickle(os.fspath(request.source)))


def _open_npy(request: OpenRequest) -> Opened:
    """Open the dict or the pair of words and matrix that `numpy.save` has pickled in a .npy file."""
    array = npy.load_objects(request)
    return _open_loaded(request, array.item() if array.ndim == 0 else tuple(array))


def _open_loaded(request: OpenRequest, loaded: Any) -> Opened:
    inner = OpenRequest(VectorSource(loaded), request.checks, request.stack)
    # A path in a pickle is not followed.
    found = None if inner.holds_bytes else _find_format(inner)
    if found is None:
        raise VectorFormatError(
            f"{request.path}: found a pickle of {reprlib.repr(loaded)} (of type {type(loaded).__name__}); expected a "
            "dict word -> row, (words, matrix) or KeyedVectors. Load it, and pass the words with their rows."
        )
    return found.open(inner)


def _refuse_folder(request: OpenRequest) -> Opened:
    found = spacy.find_spacy_folders(Path(request.source))
    vectors = f"the vectors of {len(found)} pipelines, {', '.join(map(str, found))}" if found else "no file of vectors"
    raise VectorFormatError(
        f"{request.path}: found {vectors}; expected a folder with {frozen_tables.FROZEN}, with spaCy's `vectors` and "
        f"`key2row` (also in its `vocab`), or with {safetensors.TENSORS} and {safetensors.TOKENIZER}. Pass such a "
        "folder, or the file of vectors itself."
    )


def _has_layout(name: str) -> Callable[[OpenRequest], bool]:
    return lambda request: request.holds_bytes and request.layout.format == name


def _open_rows(blocks: Callable[[Stream, Layout, ReadChecks], Iterator[Block]]) -> Callable[[OpenRequest], RowStream]:
    return lambda request: RowStream(blocks(request.stream, request.layout, request.checks))


def _open_fasttext(request: OpenRequest) -> RowStream:
    def open_subwords() -> SubwordVectors:
        options = request.options
        # This reading gives the warnings about the model.
        return SubwordVectors(os.fspath(request.source), member=options.member, dim=options.dim, warns=False)

    blocks = fasttext_blocks(request.stream, request.layout, request.checks)
    return RowStream(blocks, open_subwords if request.file is not None else None)


# In the order of trial. Objects in memory come first, then files and folders by their first bytes; the streams come
# last, because only they decompress a file.
FORMATS = (
    Format("a frozen table", frozen_tables.recognise_table, frozen_tables.open_table),
    Format(
        "(words, matrix)",
        lambda request: is_words_and_matrix(request.source),
        _open_words_and_matrix,
        takes_datasets=True,
    ),
    Format("a mapping", in_memory.recognise_mapping, in_memory.open_mapping),
    Format("WordVectors", in_memory.recognise_word_vectors, in_memory.open_word_vectors),
    Format("KeyedVectors", in_memory.recognise_keyed_vectors, in_memory.open_keyed_vectors),
    Format("a whole model", in_memory.recognise_model, in_memory.refuse_model),
    Format("frozen.h5", frozen_tables.recognise_file, frozen_tables.open_file),
    Format("spaCy vectors", spacy.recognise_spacy, spacy.open_spacy),
    Format("model2vec", safetensors.recognise_folder, safetensors.open_folder, takes_datasets=True),
    Format("a folder", lambda request: request.folder is not None, _refuse_folder),
    Format("HDF5", hdf5.recognise_hdf5, hdf5.open_hdf5, hdf5.open_hdf5_matrix, takes_datasets=True),
    Format(".npy", npy.recognise_npy, _open_npy, npy.open_npy_matrix),
    Format(".npz", npz.recognise_npz, npz.open_npz, npz.open_npz_matrix, takes_datasets=True),
    Format(
        "safetensors",
        safetensors.recognise_file,
        safetensors.open_file,
        safetensors.open_matrix,
        takes_datasets=True,
    ),
    Format("a pickle", pickles.recognise_pickle, _open_pickle),
    Format(FASTTEXT_FORMAT, _has_layout(FASTTEXT_FORMAT), _open_fasttext, is_stream=True),
    Format(BINARY_FORMAT, _has_layout(BINARY_FORMAT), _open_rows(binary_blocks), is_stream=True),
    Format(TEXT_FORMAT, _has_layout(TEXT_FORMAT), _open_rows(text_blocks), is_stream=True),
)
