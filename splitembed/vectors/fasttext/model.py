"""One pass over a fastText .bin model: a reader enters; its wanted words, and then the vectors of any words leave."""

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from splitembed.vectors.fasttext.cursor import Cursor
from splitembed.vectors.fasttext.dictionary import FoundWords, read_words
from splitembed.vectors.fasttext.header import FLOAT_BYTES, read_header, read_matrix_shape, skip_output
from splitembed.vectors.fasttext.ngrams import Runs, runs_of_words
from splitembed.vectors.fasttext.rows import PIECE_BYTES, Rows, map_rows, mean_mapped, mean_streamed
from splitembed.vectors.read_checks import ReadChecks
from splitembed.vectors.streams.ahead import map_ahead

_MOST_WORDS_AT_ONCE = 4096


class Model:
    """A model whose header is read, and then its other parts in turn: `find_words`, `iter_means`.

    Args:
        reader: at the first byte of the model.
        checks: makes the errors and takes note of doubts.
        size: bytes of the file, where `reader` is that plain file; None where it is a stream.

    Raises:
        VectorFormatError: as `read_header` raises it.
    """

    def __init__(self, reader: BinaryIO, checks: ReadChecks, size: int | None) -> None:
        self._reader, self._checks, self._is_plain = reader, checks, size is not None
        self._cursor = Cursor(reader, checks, size)
        self.header = read_header(self._cursor)
        checks.check_dim(self.header.dim)

    def find_words(self, wanted: frozenset[bytes] | None) -> FoundWords:
        """Reads the dictionary for the wanted words; None wants all."""
        return read_words(self._cursor, self.header, wanted)

    def iter_means(self, words: Sequence[bytes], own_rows: NDArray[np.int64]) -> Iterator[Rows]:
        """Gives the vectors of words, in their order, after all of the model has been looked at.

        A plain file is mapped, and the words are read one after the other, some at once. Of a stream the sums of all
        words are held.

        Args:
            words: their bytes.
            own_rows: int64 `(num_words,)`, -1 for a word that the dictionary lacks.

        Yields:
            At least one array `(some, dim)`.
        """
        num_rows = read_matrix_shape(self._cursor, self.header)
        dim = self.header.dim
        at_once = min(_MOST_WORDS_AT_ONCE, max(1, PIECE_BYTES // (dim * FLOAT_BYTES)))
        parts = [slice(start, start + at_once) for start in range(0, max(len(words), 1), at_once)]

        def runs(part: slice) -> Runs:
            return runs_of_words(words[part], own_rows[part], self.header)

        if self._is_plain:
            place = self._cursor.place
            self._cursor.skip(num_rows * dim * FLOAT_BYTES, "the input matrix")
            skip_output(self._cursor, self.header, self._checks)
            rows = map_rows(self._reader, place, num_rows, dim)
            for _, means in map_ahead(lambda part: mean_mapped(rows, runs(part), dim), parts):
                yield means
        else:
            means = mean_streamed(self._cursor, num_rows, map(runs, parts), dim)
            skip_output(self._cursor, self.header, self._checks)
            for part in parts:
                yield means[part]
