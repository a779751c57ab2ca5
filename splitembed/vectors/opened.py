"""Opened sources of vectors, in one of three forms, and how their words and rows are read."""

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from splitembed.tables import FrozenTable
from splitembed.vectors.fasttext.subwords import SubwordVectors
from splitembed.vectors.pairs.frozen_tables import table_blocks, table_vectors
from splitembed.vectors.pairs.read_pair import Pair, pair_blocks, shared_vectors
from splitembed.vectors.read_checks import ReadChecks
from splitembed.vectors.word_vectors import Block, WordVectors, gather_blocks, stack_blocks


class RowStream(NamedTuple):
    """Rows that are read once, in the order of the file.

    Args:
        blocks: at least one.
        open_subwords: opens the subword model of the same file; None where there is none.
    """

    blocks: Iterator[Block]
    open_subwords: Callable[[], SubwordVectors] | None = None


Opened = FrozenTable | Pair | RowStream


def read_blocks(opened: Opened, checks: ReadChecks) -> Iterator[Block]:
    """Return the words and rows of an opened source, block by block.

    Args:
        opened: the source.
        checks: the checks of words and rows.

    Returns:
        At least one block.

    Raises:
        VectorFormatError: the content is invalid.
    """
    if isinstance(opened, RowStream):
        return opened.blocks
    return table_blocks(opened, checks) if isinstance(opened, FrozenTable) else pair_blocks(opened, checks)


def read_all(opened: Opened, checks: ReadChecks) -> WordVectors:
    """Return all words and rows of an opened source. Shared rows stay shared, rows of a frozen table stay mapped.

    Args:
        opened: the source.
        checks: the checks of words and rows.

    Raises:
        VectorFormatError: the content is invalid.
    """
    if isinstance(opened, FrozenTable):
        return table_vectors(opened, checks)
    if isinstance(opened, Pair) and opened.row_of is not None:
        return shared_vectors(opened, checks)
    vectors = _stack(read_blocks(opened, checks), checks)
    if isinstance(opened, RowStream) and opened.open_subwords is not None:
        vectors.subwords = opened.open_subwords()
    return vectors


def shares_rows(opened: Opened) -> bool:
    """Return whether several words of an opened source share a row.

    >>> shares_rows(Pair("dict", ["the"], {"the": [1.0, 2.0]}))
    False
    """
    if isinstance(opened, RowStream) or opened.row_of is None:
        return False
    return len(np.unique(opened.row_of)) < len(opened.row_of)


def _stack(blocks: Iterator[Block], checks: ReadChecks) -> WordVectors:
    # A reader sets `most_rows`, where it can, before its first block.
    first = next(blocks)
    blocks = itertools.chain((first,), blocks)
    most_rows = checks.most_rows
    words, vectors = gather_blocks(list(blocks)) if most_rows is None else stack_blocks(blocks, most_rows)
    return WordVectors(words, vectors, checks.source)
