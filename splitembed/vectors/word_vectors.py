"""Results of reading: blocks of words and rows, and `WordVectors`."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed.arrays import NO_ROW, aligned_empty, as_read_only
from splitembed.tables import FrozenTable


class Block(NamedTuple):
    """Consecutive words and rows of a source, in its order.

    >>> block = Block(["the", "of"], np.ones((2, 3), np.float32))
    >>> len(block.words), block.vectors.shape
    (2, (2, 3))
    """

    words: list[str]
    vectors: NDArray[np.float32]


class WordVectors:
    """Pretrained words and their rows; several words may share one.

    >>> vectors = WordVectors(["the", "of"], np.array([[1, 2], [3, 4]], np.float32), source="by hand")
    >>> vectors, len(vectors), vectors.dim
    (<WordVectors of by hand: 2 words x 2>, 2, 2)
    >>> vectors.take([1]).tolist()
    [[3.0, 4.0]]

    Args:
        words: distinct strings.
        matrix: float32 `(num_rows, dim)`; None for the rows of `table`, widened as a whole only on first use.
        source: the name of their source, for messages.
        table: the frozen table that holds the rows, or None. Row `i` of `matrix` is row `i` of the table, in the same
            memory if the table is float32.
        row_of: int64 `(num_words,)`, the row of each word; None where word `i` has row `i`.
        subwords: the `SubwordVectors` of a fastText model, which give rows to other words; else None.
    """

    def __init__(
        self,
        words: Sequence[str],
        matrix: NDArray[np.float32] | None,
        source: str = "",
        table: FrozenTable | None = None,
        *,
        row_of: NDArray[np.int64] | None = None,
        subwords: Any = None,
    ) -> None:
        self.words, self.source, self.table, self.row_of, self.subwords = words, source, table, row_of, subwords
        self._matrix = matrix
        self._vectors: NDArray[np.float32] | None = None

    @property
    def matrix(self) -> NDArray[np.float32]:
        """The distinct rows, float32 `(num_rows, dim)`."""
        if self._matrix is None:
            assert self.table is not None
            self._matrix = as_read_only(self.table.take(np.arange(self.num_rows)))
        return self._matrix

    @property
    def vectors(self) -> NDArray[np.float32]:
        """One row for each word, float32 `(num_words, dim)`; `matrix` itself if no two words share a row."""
        if self.row_of is None:
            return self.matrix
        if self._vectors is None:
            self._vectors = as_read_only(self.matrix[self.row_of])
        return self._vectors

    def take(self, words: ArrayLike) -> NDArray[np.float32]:
        """Return the rows of words, given by their indices, as float32. No other rows are widened."""
        indices = np.asarray(words)
        rows = indices if self.row_of is None else self.row_of[indices]
        if self._matrix is None:
            assert self.table is not None
            return self.table.take(rows)
        taken: NDArray[np.float32] = self._matrix[rows]
        return taken

    def rows(self, words: ArrayLike) -> NDArray[np.int64]:
        """Return the row numbers of words, given by their indices; `NO_ROW` for no word stays."""
        indices = np.asarray(words, np.int64)
        return indices if self.row_of is None else np.where(indices < 0, NO_ROW, self.row_of[indices])

    @property
    def num_rows(self) -> int:
        """Number of distinct rows; the number of words if no two words share a row."""
        if self._matrix is not None:
            return len(self._matrix)
        assert self.table is not None
        return len(self) if self.row_of is None else self.table.num_frozen

    @property
    def dim(self) -> int:
        """Length of a row."""
        return int(self.matrix.shape[1]) if self.table is None else self.table.dim

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        return f"<WordVectors of {self.source}: {len(self)} words x {self.dim}>"


def stack_blocks(blocks: Iterable[Block], most_rows: int) -> tuple[list[str], NDArray[np.float32]]:
    """Join blocks into one list and one aligned matrix, as they arrive.

    >>> ones = np.ones((1, 2), np.float32)
    >>> words, vectors = stack_blocks([Block(["the"], ones), Block(["of"], 2 * ones)], most_rows=9)
    >>> words, vectors.tolist()
    (['the', 'of'], [[1.0, 1.0], [2.0, 2.0]])

    Args:
        blocks: at least one, all with rows of the same length.
        most_rows: at least the number of rows. Memory for rows that do not exist is never touched, so it costs none.

    Returns:
        The words, and float32 `(num_words, dim)`.
    """
    words: list[str] = []
    vectors: NDArray[np.float32] | None = None
    for block in blocks:
        if vectors is None:
            vectors = aligned_empty((most_rows, block.vectors.shape[1]), np.float32)
        vectors[len(words) : len(words) + len(block.words)] = block.vectors
        words += block.words
    assert vectors is not None
    return words, vectors[: len(words)]


def gather_blocks(blocks: list[Block]) -> tuple[list[str], NDArray[np.float32]]:
    """Join blocks if the number of rows is unknown. Empties `blocks`, so that no row is held twice.

    >>> gather_blocks([Block(["the"], np.ones((1, 2), np.float32))])
    (['the'], array([[1., 1.]], dtype=float32))

    Args:
        blocks: at least one, all with rows of the same length.

    Returns:
        The words, and float32 `(num_words, dim)`.
    """
    most_rows = sum(len(block.words) for block in blocks)
    blocks.reverse()
    return stack_blocks((blocks.pop() for _ in range(len(blocks))), most_rows)
