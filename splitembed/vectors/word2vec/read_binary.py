"""Read word2vec binary files, block by block.

After the header, each record is the word, a space and dim little-endian float32; the original tool ends it with LF,
gensim does not. Some tools write float16 or float64. Source of the format: Mikolov et al., `word2vec.c`, 2013.
"""

import re
from collections.abc import Generator, Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VectorFormatError
from splitembed.vectors.layouts import LARGEST_DIM, Layout
from splitembed.vectors.read_checks import ReadChecks, decode_words
from splitembed.vectors.streams import compressions
from splitembed.vectors.streams.ahead import take_ahead
from splitembed.vectors.streams.opening import Stream
from splitembed.vectors.text.lines import MAX_WORD_BYTES
from splitembed.vectors.word2vec.record_types import NUM_BYTES, have_line_feeds
from splitembed.vectors.word_vectors import Block

Positions = NDArray[np.int64]


def binary_blocks(stream: Stream, layout: Layout, checks: ReadChecks) -> Iterator[Block]:
    """Read all records up to the end of the file, even where the header says another number of rows.

    Args:
        stream: the file, positioned at its first byte.
        layout: the layout that `find_layout` found.
        checks: the wanted words, and the rules for errors and warnings.

    Yields:
        At least one block.

    Raises:
        VectorFormatError: the last record is cut short, or a record does not start at the end of the previous one.
    """
    checks.unit = "byte"
    _check_header(stream, layout, checks)
    checks.most_rows = _most_rows(stream, layout, checks)
    cutter = _Cutter(layout, have_line_feeds(stream.head[layout.start :], _row_bytes(layout)), checks)
    for words, rows, positions in take_ahead(cutter.cut_all(stream.reader)):
        yield checks.accept(words, rows, positions)
    checks.warnings.check_header(layout.num_rows, cutter.num_rows, layout.num_lines)


class _Records(NamedTuple):
    """Consecutive records: words, rows of the file's dtype, and the positions of their first bytes in the file."""

    words: list[str]
    rows: NDArray[Any]
    positions: Positions


class _Cutter:
    """A cutter of chunks into records, which keeps an incomplete record for the next chunk."""

    def __init__(self, layout: Layout, has_line_feeds: bool, checks: ReadChecks) -> None:
        self._dim, self._has_line_feeds = layout.dim, has_line_feeds
        self._dtype = np.dtype(layout.dtype).newbyteorder("<")
        self._checks, self._wanted = checks, checks.wanted_bytes
        self._row_bytes = _row_bytes(layout)
        # Bytes from a record's space to the next record.
        self._after = self._row_bytes + has_line_feeds
        self._space_and_row = re.compile(rb" .{%d}" % self._after, re.DOTALL)
        self._rest, self._position = b"", layout.start
        self.num_rows = 0

    def cut_all(self, reader: BinaryIO) -> Generator[_Records, None, None]:
        """Read the wanted records of a file, chunk by chunk."""
        reader.read(self._position)
        while chunk := reader.read(compressions.CHUNK_BYTES):
            yield self._cut(chunk)
        yield self._finish()

    def _cut(self, chunk: bytes) -> _Records:
        """Return the wanted records that the chunk completes."""
        data = self._rest + chunk
        words, ends = self._find_records(data)
        self._check_line_feeds(data, ends)
        records = self._wanted_records(data, words, ends)
        end = int(ends[-1]) if len(ends) else 0
        self._rest, self._position = data[end:], self._position + end
        self.num_rows += len(ends)
        if len(self._rest) > MAX_WORD_BYTES and b" " not in self._rest:
            raise self._error(self._position, f"{len(self._rest)} bytes without a space")
        return records

    def _finish(self) -> _Records:
        """Return the last record, if only its LF is missing. Other bytes that remain are an error."""
        rest = self._rest
        records = self._cut(b"\n") if rest and self._has_line_feeds else self._cut(b"")
        if self._rest.strip(b"\n"):
            raise self._error(self._position, f"{len(rest)} bytes of a record at the end")
        return records

    def _find_records(self, data: bytes) -> tuple[bytes, Positions]:
        """Return the words of all whole records, each with its space, and the ends of the records."""
        words, num_records = self._space_and_row.subn(b" ", data)
        spaces = np.flatnonzero(np.frombuffer(words, np.uint8) == ord(" "))[:num_records]
        ends = spaces + 1 + self._after * np.arange(1, num_records + 1)
        return words[: int(spaces[-1]) + 1 if num_records else 0], ends

    def _check_line_feeds(self, data: bytes, ends: Positions) -> None:
        if not self._has_line_feeds:
            return
        wrong = np.frombuffer(data, np.uint8)[ends - 1] != ord("\n")
        if wrong.any():
            end = int(ends[wrong.argmax()]) - 1
            raise self._error(self._position + end, f"{data[end : end + 1]!r} after a record, not LF as before")

    def _wanted_records(self, data: bytes, text: bytes, ends: Positions) -> _Records:
        starts = np.concatenate(([0], ends))[: len(ends)]
        if self._wanted is None:
            words = _decode(text)
        else:
            all_words = text.split(b" ")[:-1]
            chosen = [index for index, word in enumerate(all_words) if word in self._wanted]
            words, starts, ends = decode_words([all_words[index] for index in chosen]), starts[chosen], ends[chosen]
        return _Records(words, self._gather(data, ends - self._after), self._position + starts)

    def _gather(self, data: bytes, starts: Positions) -> NDArray[Any]:
        """Copy the rows at the given starts, as void dtype because they are not aligned."""
        if not len(starts):
            return np.zeros((0, self._dim), self._dtype)
        windows: NDArray[Any] = np.ndarray(
            (len(data) - self._row_bytes + 1,), f"V{self._row_bytes}", data, strides=(1,)
        )
        return windows[starts].view(self._dtype).reshape(-1, self._dim)

    def _error(self, position: int, found: str) -> VectorFormatError:
        expected = f"a word, a space and {self._row_bytes} bytes, {self._dtype.name} x {self._dim}"
        return self._checks.error(position, found, expected, "The file is damaged or cut short. Download it again.")


def _decode(words: bytes) -> list[str]:
    """Return the words, each of which ends with a space, as strings without the spaces."""
    try:
        return words.decode().split(" ")[:-1]
    except UnicodeDecodeError:
        return decode_words(words.split(b" ")[:-1])


def _row_bytes(layout: Layout) -> int:
    return NUM_BYTES[layout.dtype] * layout.dim


def _check_header(stream: Stream, layout: Layout, checks: ReadChecks) -> None:
    """Raise an error for rows longer than the file, before memory of their size is allocated."""
    size = len(stream.head) if stream.head_is_all else stream.size
    most = NUM_BYTES[layout.dtype] * LARGEST_DIM if size is None else size - layout.start
    if layout.dim > LARGEST_DIM or not 0 < _row_bytes(layout) <= most:
        raise checks.error(
            0,
            f"dim {layout.dim} in the header, {_row_bytes(layout)} bytes a row",
            f"rows of 1 to {most} bytes",
            "The file is damaged or cut short. Download it again.",
        )


def _most_rows(stream: Stream, layout: Layout, checks: ReadChecks) -> int | None:
    """Return the most rows that the file's size allows, at most the number of wanted words."""
    if stream.size is None:
        return None
    most = (stream.size - layout.start) // (1 + _row_bytes(layout))
    return most if checks.wanted is None else min(most, len(checks.wanted))
