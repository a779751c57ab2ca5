"""A request to open a source of vectors, with all that formats are recognised by."""

import contextlib
import dataclasses
import errno
import functools
import os
from pathlib import Path
from typing import Any

from splitembed.errors import VectorFormatError
from splitembed.paths import holds_bytes, is_path, local_source, name_source
from splitembed.tables import FrozenTable
from splitembed.vectors.layouts import Layout, find_layout
from splitembed.vectors.read_checks import ReadChecks
from splitembed.vectors.source import VectorSource, refuse_datasets
from splitembed.vectors.streams.opening import Stream, open_stream
from splitembed.vectors.word_vectors import WordVectors

ACCEPTED = (
    "the path of a file of vectors (text, word2vec binary, fastText .bin, frozen.h5, .npz, HDF5 with `datasets`, a .kv "
    'with allow_pickle=True) or of a folder (spaCy, model2vec), "-", a file object, a dict word -> row, (words, '
    "matrix), KeyedVectors, WordVectors or FrozenTable"
)
_HEAD_BYTES = 16

WORDS_APART = "the words are given beside it"


class OpenRequest:
    """A request to open a source of vectors.

    >>> with contextlib.ExitStack() as stack:
    ...     request = OpenRequest(VectorSource({"the": [1.0]}), ReadChecks("dict"), stack)
    ...     request.path is None, request.holds_bytes
    (True, False)

    Args:
        options: the source and the options for reading it.
        checks: the checks of the words and rows.
        stack: closes the files that stay open while rows are read.
    """

    def __init__(self, options: VectorSource, checks: ReadChecks, stack: contextlib.ExitStack) -> None:
        self.options, self.checks, self.stack = options, checks, stack
        self.source = local_source(options.source)

    @functools.cached_property
    def path(self) -> Path | None:
        """The path of a file or folder; None for standard input, file objects and objects in memory."""
        return self.source if isinstance(self.source, Path) else None

    @property
    def holds_bytes(self) -> bool:
        """Whether the source is a path, standard input or a file object, not an object in memory."""
        return holds_bytes(self.source)

    @functools.cached_property
    def folder(self) -> Path | None:
        """The path of a folder; None for anything else."""
        return self.path if self.path is not None and self.path.is_dir() else None

    @functools.cached_property
    def file(self) -> Path | None:
        """The path of a regular file; None for anything else."""
        return self.path if self.path is not None and self.path.is_file() else None

    @functools.cached_property
    def head(self) -> bytes:
        """The first 16 bytes of a regular file; none of anything else, because a pipe can be read only once.

        Raises:
            OSError: as `open` raises it. For a missing path, the message lists the accepted sources.
        """
        if self.path is not None and not self.path.exists():
            message = f"No such file or folder of vectors, looked for in {os.getcwd()}. `source` must be {ACCEPTED}"
            raise FileNotFoundError(errno.ENOENT, message, os.fspath(self.path))
        if self.file is None:
            return b""
        with open(self.file, "rb") as file:
            return file.read(_HEAD_BYTES)

    @functools.cached_property
    def stream(self) -> Stream:
        """The decompressed content of a file, of standard input or of a file object.

        Raises:
            VectorFormatError, OSError, ImportError: as `open_stream` raises them.
        """
        refuse_datasets(self.options)
        source, options = self.source if self.path is None else os.fspath(self.path), self.options
        stream = self.stack.enter_context(open_stream(source, options.progress, member=options.member, dim=options.dim))
        # The name of the file inside an archive is part of it.
        self.checks.source = self.checks.warnings.source = stream.path
        return stream

    @functools.cached_property
    def layout(self) -> Layout:
        """The layout of `stream`.

        Raises:
            VectorFormatError: as `find_layout` raises it.
        """
        return find_layout(self.stream, self.checks, self.options.format)

    def for_source(self, source: Any) -> "OpenRequest":
        """Return a request to open another source with the same options."""
        return OpenRequest(dataclasses.replace(self.options, source=source), self.checks, self.stack)

    def dataset_name(self, reason: str) -> str | None:
        """Return the name of the matrix inside the file, or None for the only one.

        Args:
            reason: why there are no words to be named, for the message.

        Raises:
            VectorFormatError: `datasets` names anything else.
        """
        datasets = self.options.datasets
        if datasets is None or isinstance(datasets, str):
            return datasets
        raise VectorFormatError(
            f"{self.path}: found datasets={datasets!r}; expected the name of the matrix alone, because {reason}."
        )


def is_words_and_matrix(source: Any) -> bool:
    """Return whether a source is (words, matrix).

    >>> is_words_and_matrix((["the"], [[1.0]])), is_words_and_matrix({"the": [1.0]})
    (True, False)
    """
    return isinstance(source, (tuple, list)) and len(source) == 2


def name_of(source: Any) -> str:
    """Return the name of a source, for messages.

    >>> name_of("glove.txt"), name_of({"the": [1.0]}), name_of((["the"], [[1.0]]))
    ('glove.txt', 'dict', '(words, matrix)')
    """
    if holds_bytes(source):
        return name_source(source)
    if isinstance(source, FrozenTable):
        return str(source.path or "the frozen table")
    if isinstance(source, WordVectors):
        return source.source
    if is_words_and_matrix(source):
        return os.fspath(source[1]) if is_path(source[1]) else "(words, matrix)"
    return type(source).__name__
