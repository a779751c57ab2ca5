"""word2vec binary: a stream of records enters, blocks of words and rows leave.

Below the header each record is the word, a space and dim little-endian float32; the original tool ends it with LF,
gensim does not. Some tools write float16 or float64. Source of the format: Mikolov et al., `word2vec.c`, 2013.
"""

import re
from collections.abc import Generator, Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VectorFormatError
from splitembed.vectors.intake import Intake, decode_words
from splitembed.vectors.streams import compressions
from splitembed.vectors.streams.ahead import take_ahead
from splitembed.vectors.streams.opening import Stream
from splitembed.vectors.streams.sniff import LARGEST_DIM, Layout
from splitembed.vectors.text.lines import MOST_BYTES_A_WORD
from splitembed.vectors.word2vec.record_types import NUM_BYTES, have_line_feeds
from splitembed.vectors.word_vectors import Block

Places = NDArray[np.int64]


def binary_blocks(stream: Stream, layout: Layout, intake: Intake) -> Iterator[Block]:
    """Reads records up to the end of the file, whatever the header's number of rows says.

    Args:
        stream: the file, at its first byte.
        layout: as `sniff` found it.
        intake: what is wanted, and what becomes of doubts.

    Yields:
        At least one block.

    Raises:
        VectorFormatError: the last record is cut short, or a record does not start where the one before it ends.
    """
    intake.unit = "byte"
    _check_header(stream, layout, intake)
    intake.most_rows = _most_rows(stream, layout, intake)
    cutter = _Cutter(layout, have_line_feeds(stream.head[layout.start :], _row_bytes(layout)), intake)
    for words, rows, places in take_ahead(cutter.cut_all(stream.reader)):
        yield intake.admit(words, rows, places)
    intake.doubts.check_header(layout.num_rows, cutter.num_rows, layout.num_lines)


class _Records(NamedTuple):
    """Consecutive records."""

    words: list[str]
    rows: NDArray[Any]  # of the dtype that the file has
    places: Places  # in the file, of their first bytes


class _Cutter:
    """Cuts chunks into records, and keeps what the next chunk will complete."""

    def __init__(self, layout: Layout, has_line_feeds: bool, intake: Intake) -> None:
        self._dim, self._has_line_feeds = layout.dim, has_line_feeds
        self._dtype = np.dtype(layout.dtype).newbyteorder("<")
        self._intake, self._wanted = intake, intake.wanted_bytes
        self._row_bytes = _row_bytes(layout)
        self._after = self._row_bytes + has_line_feeds  # bytes from a record's space to the next record
        self._space_and_row = re.compile(rb" .{%d}" % self._after, re.DOTALL)
        self._rest, self._place = b"", layout.start
        self.num_rows = 0

    def cut_all(self, reader: BinaryIO) -> Generator[_Records, None, None]:
        """The wanted records of a file, chunk by chunk."""
        reader.read(self._place)
        while chunk := reader.read(compressions.CHUNK_BYTES):
            yield self._cut(chunk)
        yield self._finish()

    def _cut(self, chunk: bytes) -> _Records:
        """The wanted ones of the records that the chunk completes."""
        data = self._rest + chunk
        words, ends = self._find_records(data)
        self._check_line_feeds(data, ends)
        records = self._wanted_records(data, words, ends)
        end = int(ends[-1]) if len(ends) else 0
        self._rest, self._place = data[end:], self._place + end
        self.num_rows += len(ends)
        if len(self._rest) > MOST_BYTES_A_WORD and b" " not in self._rest:
            raise self._error(self._place, f"{len(self._rest)} bytes without a space")
        return records

    def _finish(self) -> _Records:
        """The last row, if only its LF is missing; anything else that is left is an error."""
        rest = self._rest
        records = self._cut(b"\n") if rest and self._has_line_feeds else self._cut(b"")
        if self._rest.strip(b"\n"):
            raise self._error(self._place, f"the last {len(rest)} bytes, a record that is cut short")
        return records

    def _find_records(self, data: bytes) -> tuple[bytes, Places]:
        """The words of all whole records, each with its space, and where the records end."""
        words, num_records = self._space_and_row.subn(b" ", data)
        spaces = np.flatnonzero(np.frombuffer(words, np.uint8) == ord(" "))[:num_records]
        ends = spaces + 1 + self._after * np.arange(1, num_records + 1)
        return words[: int(spaces[-1]) + 1 if num_records else 0], ends

    def _check_line_feeds(self, data: bytes, ends: Places) -> None:
        if not self._has_line_feeds:
            return
        wrong = np.frombuffer(data, np.uint8)[ends - 1] != ord("\n")
        if wrong.any():
            end = int(ends[wrong.argmax()]) - 1
            raise self._error(self._place + end, f"{data[end : end + 1]!r} after a record, not LF as before")

    def _wanted_records(self, data: bytes, text: bytes, ends: Places) -> _Records:
        starts = np.concatenate(([0], ends))[: len(ends)]
        if self._wanted is None:
            words = _decode(text)
        else:
            all_words = text.split(b" ")[:-1]
            chosen = [index for index, word in enumerate(all_words) if word in self._wanted]
            words, starts, ends = decode_words([all_words[index] for index in chosen]), starts[chosen], ends[chosen]
        return _Records(words, self._gather(data, ends - self._after), self._place + starts)

    def _gather(self, data: bytes, starts: Places) -> NDArray[Any]:
        """Copies the rows that start at some places: as void dtype, because they lie unaligned."""
        if not len(starts):
            return np.zeros((0, self._dim), self._dtype)
        windows: NDArray[Any] = np.ndarray(
            (len(data) - self._row_bytes + 1,), f"V{self._row_bytes}", data, strides=(1,)
        )
        return windows[starts].view(self._dtype).reshape(-1, self._dim)

    def _error(self, place: int, found: str) -> VectorFormatError:
        expected = f"a word, a space and {self._row_bytes} bytes, {self._dtype.name} x {self._dim}"
        return self._intake.error(place, found, expected, "The file is damaged or cut short: get it again.")


def _decode(words: bytes) -> list[str]:
    """Words that each end with a space, as strings without."""
    try:
        return words.decode().split(" ")[:-1]
    except UnicodeDecodeError:
        return decode_words(words.split(b" ")[:-1])


def _row_bytes(layout: Layout) -> int:
    return NUM_BYTES[layout.dtype] * layout.dim


def _check_header(stream: Stream, layout: Layout, intake: Intake) -> None:
    """Refuses rows longer than the file before anything of their size is asked for."""
    size = len(stream.head) if stream.head_is_all else stream.size
    most = NUM_BYTES[layout.dtype] * LARGEST_DIM if size is None else size - layout.start
    if layout.dim > LARGEST_DIM or not 0 < _row_bytes(layout) <= most:
        raise intake.error(
            0,
            f"a header that says dim {layout.dim}, {_row_bytes(layout)} bytes a row",
            f"rows of 1 to {most} bytes",
            "The file is damaged or cut short: get it again.",
        )


def _most_rows(stream: Stream, layout: Layout, intake: Intake) -> int | None:
    """What the file's size allows, not what its header says; no more than are wanted."""
    if stream.size is None:
        return None
    most = (stream.size - layout.start) // (1 + _row_bytes(layout))
    return most if intake.wanted is None else min(most, len(intake.wanted))
