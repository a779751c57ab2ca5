"""GloVe text, word2vec text and fastText .vec: a stream of lines enters, blocks of words and rows leave."""

from collections.abc import Iterator

import numpy as np

from splitembed.errors import VectorFormatError
from splitembed.vectors.blocks import Block
from splitembed.vectors.decimals import TAB_TO_SPACE, NotANumberError, parse_decimals
from splitembed.vectors.doubts import BLANK, Doubts
from splitembed.vectors.intake import Intake, decode_words
from splitembed.vectors.lines import Lines
from splitembed.vectors.sniff import ROW_END, Layout
from splitembed.vectors.streams import Stream

BATCH_BYTES = 1 << 18  # of numbers parsed at once: measured, they fit the processor's cache


def text_blocks(stream: Stream, layout: Layout, intake: Intake) -> Iterator[Block]:
    """Reads rows from lines: the last dim fields are the numbers, and all before them is the word, as it is.

    Fields are separated by one space or tab each, lines end with LF or CRLF, and separators at their end mean nothing.
    With a vocabulary, lines whose first field begins no wanted word are counted and not looked at.

    Args:
        stream: the file, at its first byte.
        layout: as `sniff` found it.
        intake: what is wanted, and what becomes of doubts.

    Yields:
        At least one block.

    Raises:
        VectorFormatError: a line with too few numbers, or with something else in their place.
    """
    lines, batch, blank = Lines(stream, layout, intake), _Batch(layout.dim, intake), _BlankLines()
    for number, line in lines:
        row = line.rstrip(ROW_END)
        if not row:
            blank.add(number)
            continue
        batch.add(number, row)
        if batch.num_bytes >= BATCH_BYTES:
            yield batch.take()
    yield batch.take()
    num_blank = blank.tell(intake.doubts, lines.num_lines)
    num_rows = lines.num_lines - layout.num_lines - num_blank
    intake.doubts.check_header(layout.num_rows, num_rows, layout.num_lines)


class _Batch:
    """Rows that are waiting to be parsed together."""

    def __init__(self, dim: int, intake: Intake) -> None:
        self._dim, self._intake, self._wanted = dim, intake, intake.wanted_bytes
        self._clear()

    def _clear(self) -> None:
        self._words: list[bytes] = []
        self._numbers: list[bytes] = []
        self._lines: list[int] = []
        self.num_bytes = 0

    def add(self, line: int, row: bytes) -> None:
        """Takes a line without its end, if its word is wanted."""
        word, numbers = self._split(line, row)
        if self._wanted is None or word in self._wanted:
            self._words.append(word)
            self._numbers.append(numbers)
            self._lines.append(line)
            self.num_bytes += len(numbers)

    def _split(self, line: int, row: bytes) -> tuple[bytes, bytes]:
        spaced = row.translate(TAB_TO_SPACE) if b"\t" in row else row
        num_spaces = spaced.count(b" ")
        if num_spaces < self._dim:
            raise self._error(line, f"{num_spaces} numbers in {_shown(row)}")
        end = spaced.find(b" ") if num_spaces == self._dim else len(spaced.rsplit(b" ", self._dim)[0])
        return row[:end], row[end + 1 :]

    def take(self) -> Block:
        """Parses the rows, and forgets them."""
        words, lines, numbers = decode_words(self._words), self._lines, self._numbers
        self._clear()
        if not words:
            return Block([], np.zeros((0, self._dim), np.float32))
        try:
            values = parse_decimals(b" ".join(numbers))
        except NotANumberError as error:
            row, column = divmod(error.index, self._dim)
            found = f"{_shown(error.field)} as number {column + 1} in the row of {words[row]!r}"
            raise self._error(lines[row], found) from None
        return self._intake.admit(words, values.reshape(-1, self._dim), lines)

    def _error(self, line: int, found: str) -> VectorFormatError:
        return self._intake.error(
            line, found, f"a word and {self._dim} numbers", "Mend that line, or take it out; or get the file again."
        )


class _BlankLines:
    """Counts blank lines; those at the end of the file mean nothing."""

    def __init__(self) -> None:
        self._num, self._first, self._last, self._run = 0, 0, 0, 0

    def add(self, line: int) -> None:
        self._run = self._run + 1 if line == self._last + 1 else 1
        self._num, self._first, self._last = self._num + 1, self._first or line, line

    def tell(self, doubts: Doubts, num_lines: int) -> int:
        """Counts those before the last row as a doubt, and returns the number of all."""
        num_inside = self._num - (self._run if self._last == num_lines else 0)
        if num_inside:
            doubts.add(BLANK, f"line {self._first}", num_inside)
        return self._num


def _shown(raw: bytes) -> str:
    return repr(raw if len(raw) <= 40 else raw[:40] + b"...")
