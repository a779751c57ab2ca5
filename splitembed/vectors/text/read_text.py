"""Read GloVe text, word2vec text and fastText .vec, block by block."""

import functools
from collections.abc import Generator, Iterator

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VectorFormatError
from splitembed.vectors.decimals import NUMBER, TAB_TO_SPACE, NotANumberError, parse_decimals
from splitembed.vectors.first_rows import ROW_END
from splitembed.vectors.layouts import Layout
from splitembed.vectors.read_checks import ReadChecks, decode_words
from splitembed.vectors.read_warnings import APART, BLANK, MERGED, OPEN_END, ReadWarnings
from splitembed.vectors.streams.ahead import map_ahead, take_ahead
from splitembed.vectors.streams.opening import Stream
from splitembed.vectors.text.lines import Lines
from splitembed.vectors.text.plain_lines import parse_plain_lines
from splitembed.vectors.word_vectors import Block

# Of numbers parsed at once. Measured: they fit the processor's cache.
BATCH_BYTES = 1 << 18


def text_blocks(stream: Stream, layout: Layout, checks: ReadChecks) -> Iterator[Block]:
    """Read rows from lines: the last dim fields are the numbers, and everything before them is the word.

    Fields are separated by spaces or tabs, lines end with LF or CRLF, and separators at their end are ignored. Several
    separators before or between the numbers give a warning; those inside a word belong to it. With a vocabulary, lines
    whose first field cannot start a wanted word are counted, and their fields too, but they are not parsed.

    Args:
        stream: the file, positioned at its first byte.
        layout: the layout that `find_layout` found.
        checks: the wanted words, and the rules for errors and warnings.

    Yields:
        At least one block.

    Raises:
        VectorFormatError: a line has too few fields, or a field that is not a number, and such lines are not skipped.
    """
    reader = _Reader(Lines(stream, layout, checks), layout, checks, stream.is_sealed)
    yield from reader.chosen_rows() if checks.wanted is not None else reader.all_rows()
    reader.finish()


class _Reader:
    """The rows of a text: a chunk is parsed at once where every line is plain, else line by line."""

    def __init__(self, lines: Lines, layout: Layout, checks: ReadChecks, is_sealed: bool) -> None:
        self._lines, self._layout, self._checks, self._is_sealed = lines, layout, checks, is_sealed
        self._batch, self._blank = _Batch(layout.dim, checks), _BlankLines()

    def all_rows(self) -> Iterator[Block]:
        """Read the rows of all lines, one block ahead of the caller."""
        return take_ahead(self._all_rows())

    def _all_rows(self) -> Generator[Block, None, None]:
        parse = functools.partial(parse_plain_lines, dim=self._layout.dim)
        for chunk, plain in map_ahead(parse, self._lines.chunks()):
            if plain is None:
                yield from self._add(self._lines.cut(chunk))
                yield self._batch.take()
            else:
                first = self._lines.skip(len(plain.words))
                places = range(first, first + len(plain.words))
                yield self._checks.accept(decode_words(plain.words), plain.rows, places)
        yield self._batch.take()

    def chosen_rows(self) -> Iterator[Block]:
        """Read the rows of the wanted words."""
        for chunk in take_ahead(self._lines.chunks()):
            yield from self._add(self._lines.cut(chunk))
        yield self._batch.take()

    def _add(self, lines: Iterator[tuple[int, bytes]]) -> Iterator[Block]:
        for number, line in lines:
            row = line.rstrip(ROW_END)
            if not row:
                self._blank.add(number)
                continue
            self._batch.add(number, row)
            if self._batch.num_bytes >= BATCH_BYTES:
                yield self._batch.take()

    def finish(self) -> None:
        """Report warnings about the file as a whole."""
        read_warnings, header = self._checks.warnings, self._layout
        num_blank = self._blank.report(read_warnings, self._lines.num_lines)
        # A file that is cut short in its last number is noticed by its open end alone.
        if self._lines.is_open and not self._is_sealed and not self._blank.is_last(self._lines.num_lines):
            read_warnings.add(OPEN_END, f"line {self._lines.num_lines}", None)
        num_rows = self._lines.num_lines - header.num_lines - num_blank
        read_warnings.check_header(header.num_rows, num_rows, header.num_lines)


class _Batch:
    """Rows to be parsed together."""

    def __init__(self, dim: int, checks: ReadChecks) -> None:
        self._dim, self._checks, self._wanted = dim, checks, checks.wanted_bytes
        self._clear()

    def _clear(self) -> None:
        self._words: list[bytes] = []
        self._numbers: list[bytes] = []
        self._lines: list[int] = []
        self.num_bytes = 0

    def add(self, line: int, row: bytes) -> None:
        """Add a line without its end, if its word is wanted and it has enough fields."""
        try:
            word, numbers = self._split(line, row)
        except VectorFormatError as error:
            self._checks.skip_line(line, error)
            return
        if self._wanted is None or word in self._wanted:
            self._words.append(word)
            self._numbers.append(numbers)
            self._lines.append(line)
            self.num_bytes += len(numbers)

    def _split(self, line: int, row: bytes) -> tuple[bytes, bytes]:
        spaced = row.translate(TAB_TO_SPACE) if b"\t" in row else row
        num_spaces = spaced.count(b" ")
        if num_spaces < self._dim:
            raise self._error(line, f"{num_spaces} numbers in {_shorten(row)}")
        if num_spaces > self._dim and b"  " in spaced:
            return self._split_apart(line, row, spaced)
        end = spaced.find(b" ") if num_spaces == self._dim else len(spaced.rsplit(b" ", self._dim)[0])
        if num_spaces >= 2 * self._dim and _holds_row(spaced[:end], self._dim):
            self._checks.warnings.add(MERGED, f"line {line}")
        return row[:end], row[end + 1 :]

    def _split_apart(self, line: int, row: bytes, spaced: bytes) -> tuple[bytes, bytes]:
        """Split a line with several separators in a row."""
        fields = list(filter(None, spaced.split(b" ")))
        num_others = len(fields) - self._dim
        # The word is empty in a line that starts with a separator.
        if num_others < (not spaced.startswith(b" ")):
            raise self._error(line, f"{len(fields) - 1} numbers in {_shorten(row)}")
        end = 0
        for field in fields[:num_others]:
            end = spaced.index(field, end) + len(field)
        if b"  " in spaced[end:]:
            self._checks.warnings.add(APART, f"line {line}")
        return row[:end], b" ".join(fields[num_others:])

    def take(self) -> Block:
        """Parse the rows, and clear the batch."""
        try:
            values = self._parse()
        except NotANumberError:
            self._drop_invalid()
            values = self._parse()
        words, lines = decode_words(self._words), self._lines
        self._clear()
        return self._checks.accept(words, values, lines) if words else Block([], values.astype(np.float32))

    def _parse(self) -> NDArray[np.float64]:
        values = parse_decimals(b" ".join(self._numbers)) if self._numbers else np.zeros(0)
        return values.reshape(-1, self._dim)

    def _drop_invalid(self) -> None:
        """Drop the rows with fields that are not numbers.

        Raises:
            VectorFormatError: such lines are not skipped.
        """
        kept = [index for index in range(len(self._lines)) if self._is_valid(index)]
        self._words = [self._words[index] for index in kept]
        self._numbers = [self._numbers[index] for index in kept]
        self._lines = [self._lines[index] for index in kept]

    def _is_valid(self, index: int) -> bool:
        fields = self._numbers[index].translate(TAB_TO_SPACE).split(b" ")
        column = next((column for column, field in enumerate(fields) if not NUMBER.fullmatch(field)), None)
        if column is None:
            return True
        line, word = self._lines[index], decode_words([self._words[index]])[0]
        found = f"{_shorten(fields[column])} as number {column + 1} in the row of {word!r}"
        self._checks.skip_line(line, self._error(line, found))
        return False

    def _error(self, line: int, found: str) -> VectorFormatError:
        return self._checks.error(
            line,
            found,
            f"a word and {self._dim} numbers",
            "Fix or remove that line, download the file again, or set `skip_bad_lines` to leave out such lines.",
        )


def _holds_row(word: bytes, dim: int) -> bool:
    """Return whether a word looks like a row without its line end, whose last number may be merged with a word."""
    num_numbers = sum(NUMBER.fullmatch(field) is not None for field in word.split(b" ")[1:])
    # A word that holds one or two numbers is usual.
    return dim > 2 and num_numbers >= dim - 1


class _BlankLines:
    """A count of blank lines, of which those at the end of the file are ignored."""

    def __init__(self) -> None:
        self._num, self._first, self._last, self._run = 0, 0, 0, 0

    def add(self, line: int) -> None:
        self._run = self._run + 1 if line == self._last + 1 else 1
        self._num, self._first, self._last = self._num + 1, self._first or line, line

    def is_last(self, num_lines: int) -> bool:
        """Return whether line `num_lines`, the last one, is blank."""
        return self._last == num_lines

    def report(self, read_warnings: ReadWarnings, num_lines: int) -> int:
        """Warn about blank lines before the last row, and return the number of all blank lines."""
        num_inside = self._num - (self._run if self.is_last(num_lines) else 0)
        if num_inside:
            read_warnings.add(BLANK, f"line {self._first}", num_inside)
        return self._num


def _shorten(raw: bytes) -> str:
    return repr(raw if len(raw) <= 40 else raw[:40] + b"...")
