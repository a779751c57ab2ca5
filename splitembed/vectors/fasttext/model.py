"""Read a fastText .bin model in one pass: its header, its dictionary, then the vectors of any words."""

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

_WORDS_AT_ONCE = 4096


class Model:
    """A fastText model. Its header is read first; call `find_words`, then `iter_means`.

    Args:
        reader: positioned at the first byte of the model.
        checks: collects errors and warnings.
        size: bytes of the file where `reader` is a plain file; None where it is a stream.

    Raises:
        VectorFormatError: the header is cut short or damaged, or its dim is not the requested one.
    """

    def __init__(self, reader: BinaryIO, checks: ReadChecks, size: int | None) -> None:
        self._reader, self._checks, self._is_plain = reader, checks, size is not None
        self._cursor = Cursor(reader, checks, size)
        self.header = read_header(self._cursor)
        checks.check_dim(self.header.dim)

    def find_words(self, wanted: frozenset[bytes] | None) -> FoundWords:
        """Read the dictionary, and return the wanted words; None for all words."""
        return read_words(self._cursor, self.header, wanted)

    def iter_means(self, words: Sequence[bytes], own_rows: NDArray[np.int64]) -> Iterator[Rows]:
        """Iterate over the vectors of the given words, in their order, after checking the whole model.

        A plain file is mapped, and some words are read at once. For a stream the sums of all words are kept in memory.

        Args:
            words: their bytes.
            own_rows: int64 `(num_words,)`, -1 for a word outside the dictionary.

        Yields:
            At least one array `(num_words_of_part, dim)`.
        """
        num_rows = read_matrix_shape(self._cursor, self.header)
        dim = self.header.dim
        at_once = min(_WORDS_AT_ONCE, max(1, PIECE_BYTES // (dim * FLOAT_BYTES)))
        parts = [slice(start, start + at_once) for start in range(0, max(len(words), 1), at_once)]

        def runs(part: slice) -> Runs:
            return runs_of_words(words[part], own_rows[part], self.header)

        if self._is_plain:
            position = self._cursor.position
            self._cursor.skip(num_rows * dim * FLOAT_BYTES, "the input matrix")
            skip_output(self._cursor, self.header, self._checks)
            rows = map_rows(self._reader, position, num_rows, dim)
            for _, means in map_ahead(lambda part: mean_mapped(rows, runs(part), dim), parts):
                yield means
        else:
            means = mean_streamed(self._cursor, num_rows, map(runs, parts), dim)
            skip_output(self._cursor, self.header, self._checks)
            for part in parts:
                yield means[part]
