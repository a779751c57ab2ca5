"""What a source is: a `VectorSource` enters; a frozen table, a `Pair` or the path of a file of rows leaves."""

import contextlib
import os
import reprlib
from pathlib import Path
from typing import Any

from splitembed.errors import VectorFormatError
from splitembed.tables import FrozenTable
from splitembed.vectors.intake import Intake
from splitembed.vectors.layouts import AUTO
from splitembed.vectors.pairs.containers import ACCEPTED, open_container, open_matrix
from splitembed.vectors.pairs.in_memory import as_pair, is_embedding, table_of_embedding
from splitembed.vectors.pairs.pickles import is_pickle, load_pickle
from splitembed.vectors.pairs.read_pair import Pair
from splitembed.vectors.pairs.rows import check_rows
from splitembed.vectors.pairs.word_lists import as_word_list
from splitembed.vectors.source import VectorSource, refuse_datasets
from splitembed.vectors.streams.opening import STANDARD_INPUT, name_source
from splitembed.vectors.word_vectors import WordVectors

Found = FrozenTable | Pair | Any  # anything else is what `open_stream` opens


def name_of(source: Any) -> str:
    """What messages call a source.

    >>> name_of("glove.txt"), name_of({"the": [1.0]}), name_of((["the"], [[1.0]]))
    ('glove.txt', 'dict', '(words, matrix)')
    """
    if isinstance(source, (str, os.PathLike)) or hasattr(source, "read"):
        return name_source(source)
    if isinstance(source, FrozenTable):
        return str(source.path or "the frozen table")
    if isinstance(source, WordVectors):
        return source.source
    if _is_two(source):
        return os.fspath(source[1]) if isinstance(source[1], (str, os.PathLike)) else "(words, matrix)"
    return type(source).__name__


def recognise(asked: VectorSource, intake: Intake, stack: contextlib.ExitStack) -> Found:
    """Finds out what a source is, and opens it unless it is a file to be read from front to back.

    Args:
        asked: the source and its options.
        intake: what is wanted, and what becomes of doubts.
        stack: closes what stays open while rows are read.

    Returns:
        A frozen table; words and rows; or a path or file object for `open_stream`.

    Raises:
        VectorFormatError: anything else, or options that do not fit.
        OSError: as `open` raises it.
        ImportError: a library that is not installed.
    """
    source = asked.source
    if isinstance(source, (str, os.PathLike)):
        found = _from_path(asked, intake, stack)
    elif hasattr(source, "read"):
        refuse_datasets(asked)
        found = source
    else:
        found = _from_memory(asked, stack)
    _check_options(asked, found)
    return found


def _from_memory(asked: VectorSource, stack: contextlib.ExitStack) -> FrozenTable | Pair:
    source = asked.source
    if not _is_two(source):
        refuse_datasets(asked)
    if isinstance(source, FrozenTable):
        return source
    if isinstance(source, WordVectors) and source.table is not None and source.row_of is source.table.row_of:
        return source.table
    pair = _matched(asked, stack) if _is_two(source) else as_pair(source)
    if pair is not None:
        return pair
    hint = " For one dense matrix in id order there is SplitTable.from_matrix." if hasattr(source, "shape") else ""
    if is_embedding(source):
        hint = " Pass (lookup, embedding): the layer knows no words."
    raise VectorFormatError(
        f"`source` must be {ACCEPTED}. Received: {reprlib.repr(source)} (of type {type(source).__name__}).{hint}"
    )


def _is_two(source: Any) -> bool:
    return isinstance(source, (tuple, list)) and len(source) == 2


def _matched(asked: VectorSource, stack: contextlib.ExitStack) -> Pair:
    """(words, matrix), each in memory or in a file."""
    name, (words, matrix) = name_of(asked.source), asked.source
    listed = as_word_list(words, asked.allow_pickle)
    if isinstance(matrix, (str, os.PathLike)):
        rows = open_matrix(Path(matrix), asked, stack)
    else:
        refuse_datasets(asked)
        rows = table_of_embedding(matrix) if is_embedding(matrix) else matrix
    return Pair(name, listed.words, check_rows(name, listed.num_rows, rows), listed.row_of)


def _from_path(asked: VectorSource, intake: Intake, stack: contextlib.ExitStack) -> Found:
    if asked.source == STANDARD_INPUT:
        refuse_datasets(asked)
        return STANDARD_INPUT
    path = Path(asked.source)
    opened = open_container(path, asked, intake, stack)
    if opened is not None:
        return opened
    refuse_datasets(asked)
    if not path.is_file() or not is_pickle(path):
        return os.fspath(path)
    if not asked.allow_pickle:
        raise VectorFormatError(
            f"{path}: found a pickle, which can run any code when it is loaded; expected vectors. If you trust whoever "
            "wrote it, pass allow_pickle=True; or load it yourself, and pass what it holds."
        )
    return _from_memory(VectorSource(load_pickle(path)), stack)


def _check_options(asked: VectorSource, found: Found) -> None:
    """Refuses options that say something of another kind of source."""
    is_stream = not isinstance(found, (FrozenTable, Pair))
    name = name_of(asked.source)
    if asked.member is not None and not is_stream:
        raise VectorFormatError(
            f"{name}: found member={asked.member!r}; expected that of a zip archive alone. Drop it."
        )
    if asked.format != AUTO and not is_stream and isinstance(asked.source, (str, os.PathLike)):
        raise VectorFormatError(
            f'{name}: found another format; expected {asked.format}, as asked for. Pass format="auto".'
        )
