"""Vectors that stand in a frozen.h5: its table enters; its words and rows, where they are or in blocks, leave."""

from collections.abc import Iterator, Sequence

import numpy as np

from splitembed.arrays import as_read_only
from splitembed.errors import VectorFormatError
from splitembed.tables import FrozenTable
from splitembed.vectors.intake import Intake
from splitembed.vectors.word_vectors import Block, WordVectors

HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
NUM_BLOCK_ROWS = 4096


def table_vectors(table: FrozenTable, intake: Intake) -> WordVectors:
    """The words and rows of a frozen table, in place: row `i` stays row `i` of the table, for all words that share it.

    Args:
        table: with words.
        intake: the dim asked for.

    Returns:
        All words with their rows; a zero row at the end of the table is left out. Rows stored as float32 are not
        copied, others are widened when they are asked for.

    Raises:
        VectorFormatError: the table holds no words, or has another dim.
    """
    intake.check_dim(table.dim)
    words, num_rows = _words(table), table.num_frozen
    if table.row_of is None and table.zero_row == num_rows - 1:
        num_rows -= 1
        words = words[:num_rows]
    rows = as_read_only(table.vectors[:num_rows]) if table.dtype == "float32" else None
    return WordVectors(words, rows, intake.source, table, row_of=table.row_of)


def table_blocks(table: FrozenTable, intake: Intake) -> Iterator[Block]:
    """Reads rows from a frozen table, all but its zero row.

    Args:
        table: with words.
        intake: what is wanted, and what becomes of doubts.

    Yields:
        At least one block.

    Raises:
        VectorFormatError: the table holds no words, or has another dim.
    """
    intake.unit = "row"
    intake.check_dim(table.dim)
    words = _words(table)
    wanted = intake.wanted
    rows = np.arange(table.num_frozen) if table.row_of is None else table.row_of
    zero_row = table.zero_row if table.row_of is None else None  # no word is the zero row's then
    for start in range(0, max(len(rows), 1), NUM_BLOCK_ROWS):
        places = [
            start + index
            for index, word in enumerate(words[start : start + NUM_BLOCK_ROWS])
            if start + index != zero_row and (wanted is None or word in wanted)
        ]
        yield intake.admit([words[place] for place in places], table.take(rows[places]), places)


def _words(table: FrozenTable) -> Sequence[str]:
    if table.words is None:
        raise VectorFormatError(
            f"{table.path or 'The frozen table'} holds rows without words, so no token can be matched; expected words. "
            "Write the table with words, or use SplitTable.from_arrays."
        )
    return table.words
