"""Cutting a text into lines: a stream enters; the lines that may be wanted leave, with their numbers.

With a vocabulary the lines of other words are never cut out: NumPy finds all line ends of a chunk, takes the first
eight bytes of every line up to its first separator, and looks them up in a table of hashed bits; only where the bit is
set (at the wanted words and a few others) the whole first field is compared. Measured: half the time of a loop.
"""

from collections.abc import Generator, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from splitembed.vectors.decimals import TAB_TO_SPACE
from splitembed.vectors.intake import Intake
from splitembed.vectors.streams import compressions
from splitembed.vectors.streams.opening import Stream
from splitembed.vectors.streams.sniff import Layout

MOST_BYTES_A_NUMBER = 64  # of text; what is longer than such a line is no line of this table
MOST_BYTES_A_WORD = 1 << 20

_WORD_BYTES = 8
_LINE_FEEDS, _SPACES, _ONES, _HIGH_BITS = (
    np.uint64(byte * 0x0101010101010101) for byte in (ord("\n"), ord(" "), 0x01, 0x80)
)
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: Knuth's multiplicative hashing


class Lines:
    """The lines of a text below its header, each with its number from 1, in one pass.

    Args:
        stream: the text, at its first byte.
        layout: what precedes the rows, and their dim.
        intake: whose wanted words choose the lines; blank lines, lines that start with a separator and a last line
            without its LF are always among them.
    """

    def __init__(self, stream: Stream, layout: Layout, intake: Intake) -> None:
        self._stream, self._layout, self._intake = stream, layout, intake
        wanted = intake.wanted_bytes
        self._choose = _all_lines if wanted is None else _FirstFields(wanted).choose
        self._longest = MOST_BYTES_A_WORD + MOST_BYTES_A_NUMBER * layout.dim
        self.num_lines = layout.num_lines  # passed so far
        self.is_open = False  # the last line lacks its LF

    def chunks(self) -> Generator[bytes, None, None]:
        """Chunks that end where a line ends, all but the last; each is to go on to `cut` or `skip`, in order."""
        self._stream.reader.read(self._layout.start)
        begun: list[bytes] = []
        while chunk := self._stream.reader.read(compressions.CHUNK_BYTES):
            end = chunk.rfind(b"\n") + 1
            if end:
                yield b"".join((*begun, memoryview(chunk)[:end]))
                begun = []
            begun.append(chunk[end:])
            if sum(map(len, begun)) > self._longest:
                break  # `cut` refuses it, and knows the number of the line
        if any(begun):
            self.is_open = True
            yield b"".join(begun)

    def cut(self, chunk: bytes) -> Iterator[tuple[int, bytes]]:
        """The lines of a chunk that may be wanted, with their numbers."""
        if len(chunk) > self._longest and b"\n" not in chunk:
            found = f"a line of more than {self._longest} bytes"
            raise self._intake.error(self.num_lines + 1, found, "a word and its numbers", "The file is damaged.")
        num_lines, chosen = self._choose(chunk)
        first = self.skip(num_lines)
        return ((first + index, line) for index, line in chosen)

    def skip(self, num_lines: int) -> int:
        """Counts lines that are read elsewhere, and returns the number of the first."""
        self.num_lines += num_lines
        return self.num_lines - num_lines + 1


def _all_lines(text: bytes) -> tuple[int, Iterator[tuple[int, bytes]]]:
    lines = text.removesuffix(b"\n").split(b"\n")
    return len(lines), enumerate(lines)


class _FirstFields:
    """Finds the lines whose first field is among some, quickly."""

    def __init__(self, wanted: Iterable[bytes]) -> None:
        self.fields = {word.translate(TAB_TO_SPACE).split(b" ", 1)[0] for word in wanted} | {b"", b"\r"}
        text = b"".join(field[:_WORD_BYTES].ljust(_WORD_BYTES) for field in self.fields)
        num_bits = len(self.fields).bit_length() + 4  # about one in twelve bits is set
        self._shift = np.uint64(64 - num_bits)
        self._bits = np.zeros(1 << num_bits, bool)
        self._bits[self._hash(text, np.arange(0, len(text), _WORD_BYTES))] = True

    def choose(self, text: bytes) -> tuple[int, Iterator[tuple[int, bytes]]]:
        """How many lines there are, and each that starts with one of the fields or lacks its LF, with its index."""
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
        if not text.endswith(b"\n"):
            ends = np.append(ends, len(text))
        return len(ends), self._matches(text, np.concatenate(([0], ends[:-1] + 1)), ends)

    def _matches(self, text: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Iterator[tuple[int, bytes]]:
        spaced = text.translate(TAB_TO_SPACE) if b"\t" in text else text
        chosen = np.flatnonzero(self._may_match(spaced, starts))
        for index, start, end in zip(chosen.tolist(), starts[chosen].tolist(), ends[chosen].tolist(), strict=True):
            space = spaced.find(b" ", start, end)
            if spaced[start : end if space < 0 else space] in self.fields or end == len(text):
                yield index, text[start:end]

    def _may_match(self, text: bytes, starts: NDArray[np.int64]) -> NDArray[np.bool_]:
        last = len(text) - _WORD_BYTES
        if last < 0:
            return np.ones(len(starts), bool)
        return self._bits[self._hash(text, np.minimum(starts, last))] | (starts > last)

    def _hash(self, text: bytes, starts: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Hashes up to eight bytes from each start, up to the first space or LF."""
        windows = np.ndarray((len(text) - _WORD_BYTES + 1,), f"V{_WORD_BYTES}", text, strides=(1,))
        words: NDArray[np.uint64] = windows[starts].view("<u8")
        ends = _zero_bytes(words ^ _SPACES) | _zero_bytes(words ^ _LINE_FEEDS)
        lowest = ends & (~ends + np.uint64(1))
        before = (lowest >> np.uint64(7)) - np.uint64(1)  # without any end it wraps around to all bits
        hashes: NDArray[np.uint64] = ((words & before) * _HASH_FACTOR) >> self._shift
        return hashes


def _zero_bytes(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The high bit of every zero byte, and perhaps of bytes above the lowest zero one (Mycroft's test)."""
    return (words - _ONES) & ~words & _HIGH_BITS
