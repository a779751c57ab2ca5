"""What pretrained vectors have for the tokens of a split: a source and tokens enter; words, rows and places leave."""

import dataclasses
from typing import Any

import numpy as np

from splitembed.errors import SplitError
from splitembed.matching.match import Candidates
from splitembed.split.base import SplitBase
from splitembed.tables import FrozenTable
from splitembed.vectors import WordVectors, read_vectors
from splitembed.vectors.source import with_options

NONE = -1  # in place of a word: the token has none


def read_source(source: Any, candidates: Candidates, dim: int) -> WordVectors:
    """Reads the vectors that tokens can match.

    Args:
        source: whatever `read_vectors` reads.
        candidates: what to look for.
        dim: what rows must have.

    Raises:
        VectorFormatError: rows of another dim, or what `read_vectors` cannot read.
    """
    asked = with_options(source)
    return read_vectors(dataclasses.replace(asked, dim=asked.dim or dim), candidates.words)


def own_vectors(split: SplitBase) -> WordVectors:
    """The words that a split's frozen rows have, in place: those of its table, else its frozen tokens.

    Where ids have no strings there are none: a table's word "7" is no name for id 7 unless that is said.

    >>> own_vectors(SplitBase([[1.0], [2.0]], [1, ~0], [[3.0]], vocabulary=["the", "usr"])).take([0]).tolist()
    [[2.0]]
    """
    table = split.table
    if split.vocabulary is not None and table is not None and table.words is not None:
        return WordVectors(table.words, None, str(table.path or "the frozen table"), table, row_of=table.row_of)
    is_word = split.remap >= 0
    if split.padding is not None:
        is_word[split.padding] = False
    ids = np.flatnonzero(is_word) if split.vocabulary is not None else np.empty(0, np.int64)
    words = [] if split.vocabulary is None else list(map(split.vocabulary.__getitem__, ids.tolist()))
    rows = FrozenTable(split.frozen, "", scale=split.scale)
    return WordVectors(words, None, "the split", rows, row_of=split.remap[ids].astype(np.int64))


def is_own(split: SplitBase, vectors: WordVectors) -> bool:
    """Says whether the vectors' rows are the frozen rows that the split stands on, under the same numbers."""
    table = vectors.table
    if table is None:
        return False
    return table.vectors is split.frozen or (split.table is not None and split.table.fingerprint == table.fingerprint)


def zero_row_of(vectors: WordVectors) -> int:
    """The row of a frozen table that stands for padding.

    Raises:
        SplitError: it has none.
    """
    assert vectors.table is not None
    if vectors.table.zero_row is None:
        raise SplitError(
            f"{vectors.source} has no zero row for the padding id, and a shared table cannot be added to. Convert the "
            "vectors with `save_frozen`, which adds one, or build with padding=None."
        )
    return vectors.table.zero_row
