"""word2vec binary: a stream of records enters, blocks of words and rows leave.

Below the header each record is the word, a space and dim little-endian float32; the original tool ends it with LF,
gensim does not. Source of the format: Mikolov et al., `word2vec.c`, 2013.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VectorFormatError
from splitembed.vectors import streams
from splitembed.vectors.blocks import Block
from splitembed.vectors.intake import Intake, decode_words
from splitembed.vectors.lines import MOST_BYTES_A_WORD
from splitembed.vectors.sniff import Layout
from splitembed.vectors.streams import Stream

FLOAT_BYTES = 4
LARGEST_DIM = 1 << 24  # a header that says more is none


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
    cutter = _Cutter(layout, _have_line_feeds(stream.head[layout.start :], FLOAT_BYTES * layout.dim), intake)
    stream.reader.read(layout.start)
    while chunk := stream.reader.read(streams.CHUNK_BYTES):
        yield cutter.cut(chunk)
    yield cutter.finish()
    intake.doubts.check_header(layout.num_rows, cutter.num_rows, layout.num_lines)


class _Cutter:
    """Cuts chunks into records, and keeps what the next chunk will complete."""

    def __init__(self, layout: Layout, has_line_feeds: bool, intake: Intake) -> None:
        self._dim, self._has_line_feeds = layout.dim, has_line_feeds
        self._intake, self._wanted = intake, intake.wanted_bytes
        self._row_bytes = FLOAT_BYTES * layout.dim
        self._step = 1 + self._row_bytes + has_line_feeds  # from a record's space to the next record
        self._rest, self._place = b"", layout.start
        self.num_rows = 0

    def cut(self, chunk: bytes) -> Block:
        """The wanted rows of the records that the chunk completes."""
        data = self._rest + chunk
        spaces = self._find_spaces(data)
        starts = [0, *(space + self._step for space in spaces)]  # the last one is where the rest begins
        end = starts.pop()
        self._check_line_feeds(data, spaces)
        block = self._block(data, starts, spaces)
        self._rest, self._place = data[end:], self._place + end
        self.num_rows += len(spaces)
        if len(self._rest) > MOST_BYTES_A_WORD and b" " not in self._rest:
            raise self._error(self._place, f"{len(self._rest)} bytes without a space")
        return block

    def finish(self) -> Block:
        """The last row, if only its LF is missing; anything else that is left is an error."""
        rest = self._rest
        block = self.cut(b"\n") if rest and self._has_line_feeds else self.cut(b"")
        if self._rest.strip(b"\n"):
            raise self._error(self._place, f"the last {len(rest)} bytes, a record that is cut short")
        return block

    def _find_spaces(self, data: bytes) -> list[int]:
        """Where the word of each whole record ends."""
        spaces: list[int] = []
        find, add, step, last = data.find, spaces.append, self._step, len(data) - self._step
        space = find(b" ")
        while 0 <= space <= last:
            add(space)
            space = find(b" ", space + step)
        return spaces

    def _check_line_feeds(self, data: bytes, spaces: list[int]) -> None:
        if not (self._has_line_feeds and spaces):
            return
        ends = np.asarray(spaces) + 1 + self._row_bytes
        wrong = np.frombuffer(data, np.uint8)[ends] != ord("\n")
        if wrong.any():
            end = int(ends[wrong.argmax()])
            raise self._error(self._place + end, f"{data[end : end + 1]!r} after a record, not LF as before")

    def _block(self, data: bytes, starts: list[int], spaces: list[int]) -> Block:
        words = [data[start:space] for start, space in zip(starts, spaces, strict=True)]
        if self._wanted is not None:
            chosen = [index for index, word in enumerate(words) if word in self._wanted]
            words = [words[index] for index in chosen]
            starts, spaces = [starts[index] for index in chosen], [spaces[index] for index in chosen]
        if not words:
            return Block([], np.zeros((0, self._dim), np.float32))
        rows = _gather(data, spaces, self._row_bytes).view("<f4").reshape(-1, self._dim)
        return self._intake.admit(decode_words(words), rows, self._place + np.asarray(starts))

    def _error(self, place: int, found: str) -> VectorFormatError:
        expected = f"a word, a space and {self._row_bytes} bytes, float32 x {self._dim}"
        return self._intake.error(place, found, expected, "The file is damaged or cut short: get it again.")


def _gather(data: bytes, spaces: list[int], row_bytes: int) -> NDArray[Any]:
    """Copies the bytes behind each space: of void dtype, because they lie unaligned."""
    windows: NDArray[Any] = np.ndarray((len(data) - row_bytes + 1,), f"V{row_bytes}", data, strides=(1,))
    rows: NDArray[Any] = windows[np.asarray(spaces) + 1]
    return rows


def _check_header(stream: Stream, layout: Layout, intake: Intake) -> None:
    """Refuses rows longer than the file before anything of their size is asked for."""
    most = FLOAT_BYTES * LARGEST_DIM if stream.size is None else stream.size - layout.start
    if layout.dim > LARGEST_DIM or not 0 < FLOAT_BYTES * layout.dim <= most:
        raise intake.error(
            0,
            f"a header that says dim {layout.dim}, {FLOAT_BYTES * layout.dim} bytes a row",
            f"rows of 1 to {most} bytes",
            "The file is damaged or cut short: get it again.",
        )


def _have_line_feeds(sample: bytes, row_bytes: int) -> bool:
    """Whether every record that something follows is followed by LF; without, an LF belongs to the next word."""
    start, found = 0, False
    while (space := sample.find(b" ", start)) >= 0 and (end := space + 1 + row_bytes) < len(sample):
        if sample[end] != ord("\n"):
            return False
        start, found = end + 1, True
    return found
