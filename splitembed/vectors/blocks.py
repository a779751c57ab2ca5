"""What reading gives: blocks of words and rows while it goes on, `WordVectors` at its end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import aligned_empty
from splitembed.tables import FrozenTable


class Block(NamedTuple):
    """Some consecutive rows of a source, in its order.

    >>> block = Block(["the", "of"], np.ones((2, 3), np.float32))
    >>> len(block.words), block.vectors.shape
    (2, (2, 3))
    """

    words: list[str]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, eq=False, repr=False)
class WordVectors:
    """Pretrained words and their rows.

    >>> vectors = WordVectors(["the", "of"], np.array([[1, 2], [3, 4]], np.float32), source="by hand")
    >>> vectors, len(vectors), vectors.dim
    (<WordVectors of by hand: 2 words x 2>, 2, 2)

    Args:
        words: distinct strings, one for each row.
        vectors: float32 `(num_words, dim)`.
        source: where they came from, for people.
        table: the frozen.h5 in which the rows stand, if they do: row `i` of `vectors` is then row `i` of the table, in
            the same memory where the table is float32.
    """

    words: Sequence[str]
    vectors: NDArray[np.float32]
    source: str = ""
    table: FrozenTable | None = None

    @property
    def dim(self) -> int:
        """Length of a row."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        return f"<WordVectors of {self.source}: {len(self)} words x {self.dim}>"


def stack_blocks(blocks: list[Block]) -> tuple[list[str], NDArray[np.float32]]:
    """Puts blocks into one list and one aligned matrix, and empties `blocks`, so that rows are not held twice.

    >>> ones = np.ones((1, 2), np.float32)
    >>> words, vectors = stack_blocks([Block(["the"], ones), Block(["of"], 2 * ones)])
    >>> words, vectors.tolist()
    (['the', 'of'], [[1.0, 1.0], [2.0, 2.0]])

    Args:
        blocks: at least one, all with rows of the same length.

    Returns:
        The words, and float32 `(num_words, dim)`.
    """
    words: list[str] = []
    vectors = aligned_empty((sum(len(block.words) for block in blocks), blocks[0].vectors.shape[1]), np.float32)
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        vectors[len(words) : len(words) + len(block.words)] = block.vectors
        words += block.words
    return words, vectors
