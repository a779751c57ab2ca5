"""Frozen tables, in memory or in a frozen.h5: how they are recognised, and how their words and rows are read."""

from collections.abc import Iterator, Sequence

import numpy as np

from splitembed.arrays import as_read_only
from splitembed.errors import VectorFormatError
from splitembed.tables import MAGIC, FrozenTable, is_rewritten, open_frozen
from splitembed.vectors.open_request import OpenRequest
from splitembed.vectors.read_checks import ReadChecks
from splitembed.vectors.word_vectors import Block, WordVectors

FROZEN = "frozen.h5"
NUM_BLOCK_ROWS = 4096


def recognise_table(request: OpenRequest) -> bool:
    """Return whether the source is a `FrozenTable`, or `WordVectors` that hold all rows of one."""
    source = request.source
    if isinstance(source, WordVectors):
        return source.table is not None and source.row_of is source.table.row_of
    return isinstance(source, FrozenTable)


def open_table(request: OpenRequest) -> FrozenTable:
    """Return the table."""
    table = request.source.table if isinstance(request.source, WordVectors) else request.source
    assert isinstance(table, FrozenTable)
    return table


def recognise_file(request: OpenRequest) -> bool:
    """Return whether the source is a file that splitembed wrote, or a folder with a frozen.h5."""
    if request.folder is not None:
        return (request.folder / FROZEN).is_file()
    # Of a table that another tool wrote again, the HDF5 file is read.
    return request.head.startswith(MAGIC) and not is_rewritten(request.source)


def open_file(request: OpenRequest) -> FrozenTable:
    """Open a frozen.h5, which is mapped.

    Raises:
        TableFormatError: the file is damaged, or another kind of file of splitembed.
    """
    return open_frozen(request.source if request.folder is None else request.folder / FROZEN)


def table_vectors(table: FrozenTable, checks: ReadChecks) -> WordVectors:
    """Return the words and rows of a frozen table. Row `i` is row `i` of the table, for all words that share it.

    Args:
        table: a table with words.
        checks: the requested dim.

    Returns:
        All words with their rows; a zero row at the end of the table is left out. Rows stored as float32 are not
        copied, others are widened on first use.

    Raises:
        VectorFormatError: the table holds no words, or its dim is not the requested one.
    """
    checks.check_dim(table.dim)
    words, num_rows = _words(table), table.num_frozen
    if table.row_of is None and table.zero_row == num_rows - 1:
        num_rows -= 1
        words = words[:num_rows]
    rows = as_read_only(table.vectors[:num_rows]) if table.dtype == "float32" else None
    return WordVectors(words, rows, checks.source, table, row_of=table.row_of)


def table_blocks(table: FrozenTable, checks: ReadChecks) -> Iterator[Block]:
    """Yield the rows of a frozen table without its zero row.

    Args:
        table: a table with words.
        checks: the checks of words and rows.

    Yields:
        At least one block.

    Raises:
        VectorFormatError: the table holds no words, or its dim is not the requested one.
    """
    checks.unit = "row"
    checks.check_dim(table.dim)
    words = _words(table)
    wanted = checks.wanted
    rows = np.arange(table.num_frozen) if table.row_of is None else table.row_of
    # With `row_of`, no word has the zero row.
    zero_row = table.zero_row if table.row_of is None else None
    for start in range(0, max(len(rows), 1), NUM_BLOCK_ROWS):
        positions = [
            start + index
            for index, word in enumerate(words[start : start + NUM_BLOCK_ROWS])
            if start + index != zero_row and (wanted is None or word in wanted)
        ]
        yield checks.accept([words[position] for position in positions], table.take(rows[positions]), positions)


def _words(table: FrozenTable) -> Sequence[str]:
    if table.words is None:
        raise VectorFormatError(
            f"{table.path or 'The frozen table'} holds rows without words, so no token can be matched; expected words. "
            "Write the table with words, or use SplitTable.from_arrays."
        )
    return table.words
