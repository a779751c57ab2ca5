"""GloVe text, word2vec text and fastText .vec: a stream of lines enters, blocks of words and rows leave."""

import functools
from collections.abc import Generator, Iterator

import numpy as np

from splitembed.errors import VectorFormatError
from splitembed.vectors.decimals import NUMBER, TAB_TO_SPACE, NotANumberError, parse_decimals
from splitembed.vectors.layouts import ROW_END, Layout
from splitembed.vectors.read_checks import ReadChecks, decode_words
from splitembed.vectors.read_warnings import BLANK, MERGED, OPEN_END, ReadWarnings
from splitembed.vectors.streams.ahead import map_ahead, take_ahead
from splitembed.vectors.streams.opening import Stream
from splitembed.vectors.text.lines import Lines
from splitembed.vectors.text.plain_lines import parse_plain_lines
from splitembed.vectors.word_vectors import Block

BATCH_BYTES = 1 << 18  # of numbers parsed at once: measured, they fit the processor's cache


def text_blocks(stream: Stream, layout: Layout, checks: ReadChecks) -> Iterator[Block]:
    """Reads rows from lines: the last dim fields are the numbers, and all before them is the word, as it is.

    Fields are separated by one space or tab each, lines end with LF or CRLF, and separators at their end mean nothing.
    With a vocabulary, lines whose first field begins no wanted word are counted and not looked at.

    Args:
        stream: the file, at its first byte.
        layout: as `find_layout` found it.
        checks: what is wanted, and what becomes of doubts.

    Yields:
        At least one block.

    Raises:
        VectorFormatError: a line with too few numbers, or with something else in their place.
    """
    reader = _Reader(Lines(stream, layout, checks), layout, checks, stream.is_sealed)
    yield from reader.chosen_rows() if checks.wanted is not None else reader.all_rows()
    reader.finish()


class _Reader:
    """Reads the chunks of a text: all at once where every line is plain, else line by line."""

    def __init__(self, lines: Lines, layout: Layout, checks: ReadChecks, is_sealed: bool) -> None:
        self._lines, self._layout, self._checks, self._is_sealed = lines, layout, checks, is_sealed
        self._batch, self._blank = _Batch(layout.dim, checks), _BlankLines()

    def all_rows(self) -> Iterator[Block]:
        """The rows of all lines, made while those before them are used."""
        return take_ahead(self._all_rows())

    def _all_rows(self) -> Generator[Block, None, None]:
        parse = functools.partial(parse_plain_lines, dim=self._layout.dim)
        for chunk, plain in map_ahead(parse, self._lines.chunks()):
            if plain is None:
                yield from self._cut(chunk)
                yield self._batch.take()
            else:
                first = self._lines.skip(len(plain.words))
                places = range(first, first + len(plain.words))
                yield self._checks.accept(decode_words(plain.words), plain.rows, places)
        yield self._batch.take()

    def chosen_rows(self) -> Iterator[Block]:
        """The rows of wanted words."""
        for chunk in take_ahead(self._lines.chunks()):
            yield from self._cut(chunk)
        yield self._batch.take()

    def _cut(self, chunk: bytes) -> Iterator[Block]:
        for number, line in self._lines.cut(chunk):
            row = line.rstrip(ROW_END)
            if not row:
                self._blank.add(number)
                continue
            self._batch.add(number, row)
            if self._batch.num_bytes >= BATCH_BYTES:
                yield self._batch.take()

    def finish(self) -> None:
        """Counts what is doubtful in the whole."""
        read_warnings, header = self._checks.warnings, self._layout
        num_blank = self._blank.tell(read_warnings, self._lines.num_lines)
        if self._lines.is_open and not self._is_sealed and not self._blank.is_last(self._lines.num_lines):
            read_warnings.add(
                OPEN_END, f"line {self._lines.num_lines}", None
            )  # else 0.12345 could become 0.1 unnoticed
        read_warnings.check_header(
            header.num_rows, self._lines.num_lines - header.num_lines - num_blank, header.num_lines
        )


class _Batch:
    """Rows that are waiting to be parsed together."""

    def __init__(self, dim: int, checks: ReadChecks) -> None:
        self._dim, self._checks, self._wanted = dim, checks, checks.wanted_bytes
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
        if num_spaces >= 2 * self._dim and _holds_row(spaced[:end], self._dim):
            self._checks.warnings.add(MERGED, f"line {line}")
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
        return self._checks.accept(words, values.reshape(-1, self._dim), lines)

    def _error(self, line: int, found: str) -> VectorFormatError:
        return self._checks.error(
            line, found, f"a word and {self._dim} numbers", "Mend that line, or take it out; or get the file again."
        )


def _holds_row(word: bytes, dim: int) -> bool:
    """Whether a word is rather a row that lost its line end: its last number may have grown together with a word."""
    num_numbers = sum(NUMBER.fullmatch(field) is not None for field in word.split(b" ")[1:])
    return dim > 2 and num_numbers >= dim - 1  # a word with one or two numbers in it is nothing odd


class _BlankLines:
    """Counts blank lines; those at the end of the file mean nothing."""

    def __init__(self) -> None:
        self._num, self._first, self._last, self._run = 0, 0, 0, 0

    def add(self, line: int) -> None:
        self._run = self._run + 1 if line == self._last + 1 else 1
        self._num, self._first, self._last = self._num + 1, self._first or line, line

    def is_last(self, num_lines: int) -> bool:
        """Whether the last of so many lines is blank."""
        return self._last == num_lines

    def tell(self, read_warnings: ReadWarnings, num_lines: int) -> int:
        """Counts those before the last row as a doubt, and returns the number of all."""
        num_inside = self._num - (self._run if self.is_last(num_lines) else 0)
        if num_inside:
            read_warnings.add(BLANK, f"line {self._first}", num_inside)
        return self._num


def _shown(raw: bytes) -> str:
    return repr(raw if len(raw) <= 40 else raw[:40] + b"...")
