"""Cut a text into numbered lines, and select the lines that may hold wanted words.

With a vocabulary, NumPy finds all line ends of a chunk and looks up the first eight bytes of each line, up to the first
separator, in a table of hashed bits. Only where the bit is set (for the wanted words and a few others) the whole first
field is compared. Measured: half the time of a loop. NumPy also counts the fields of each line, because a word that has
merged with its first number is not among the wanted ones.
"""

from collections.abc import Generator, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from splitembed.vectors.decimals import TAB_TO_SPACE
from splitembed.vectors.layouts import Layout
from splitembed.vectors.read_checks import ReadChecks
from splitembed.vectors.streams import compressions
from splitembed.vectors.streams.opening import Stream

# Of text. A longer line than words and numbers of these lengths give is an error.
MAX_NUMBER_BYTES = 64
MAX_WORD_BYTES = 1 << 20

_WORD_BYTES = 8
_LINE_FEEDS, _SPACES, _ONES, _HIGH_BITS = (
    np.uint64(byte * 0x0101010101010101) for byte in (ord("\n"), ord(" "), 0x01, 0x80)
)
# 2**64 / golden ratio: Knuth's multiplicative hashing.
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class Lines:
    """The lines of a text below its header, numbered from 1, in one pass.

    `num_lines` counts the lines passed so far, `is_open` says whether the last line has no LF.

    Args:
        stream: the text, positioned at its first byte.
        layout: what precedes the rows, and their dim.
        checks: its wanted words select the lines. Blank lines, lines that start with a separator, lines with fewer
            than dim + 1 fields and a last line without LF are always selected.
    """

    def __init__(self, stream: Stream, layout: Layout, checks: ReadChecks) -> None:
        self._stream, self._layout, self._checks = stream, layout, checks
        wanted = checks.wanted_bytes
        self._choose = _all_lines if wanted is None else _FirstFields(wanted, layout.dim).choose
        self._longest = MAX_WORD_BYTES + MAX_NUMBER_BYTES * layout.dim
        self.num_lines = layout.num_lines
        self.is_open = False

    def chunks(self) -> Generator[bytes, None, None]:
        """Read chunks of whole lines, the last one perhaps without its LF. Pass each to `cut` or `skip`, in order."""
        self._stream.reader.read(self._layout.start)
        line_start: list[bytes] = []
        while chunk := self._stream.reader.read(compressions.CHUNK_BYTES):
            end = chunk.rfind(b"\n") + 1
            if end:
                yield b"".join((*line_start, memoryview(chunk)[:end]))
                line_start = []
            line_start.append(chunk[end:])
            # `cut` raises the error, because it knows the number of the line.
            if sum(map(len, line_start)) > self._longest:
                break
        if any(line_start):
            self.is_open = True
            yield b"".join(line_start)

    def cut(self, chunk: bytes) -> Iterator[tuple[int, bytes]]:
        """Return the lines of a chunk that may be wanted, with their numbers."""
        if len(chunk) > self._longest and b"\n" not in chunk:
            found = f"a line of more than {self._longest} bytes"
            raise self._checks.error(
                self.num_lines + 1, found, "a word and its numbers", "The file is damaged. Download it again."
            )
        num_lines, chosen = self._choose(chunk)
        first = self.skip(num_lines)
        return ((first + index, line) for index, line in chosen)

    def skip(self, num_lines: int) -> int:
        """Count lines that are read elsewhere, and return the number of the first one."""
        self.num_lines += num_lines
        return self.num_lines - num_lines + 1


def _all_lines(text: bytes) -> tuple[int, Iterator[tuple[int, bytes]]]:
    lines = text.removesuffix(b"\n").split(b"\n")
    return len(lines), enumerate(lines)


class _FirstFields:
    """A fast search for the lines whose first field is one of the given words."""

    def __init__(self, wanted: Iterable[bytes], dim: int) -> None:
        self._dim = dim
        # New memory for each chunk would cost more than the comparison.
        self._is_found = np.empty(0, bool)
        self.fields = {word.translate(TAB_TO_SPACE).split(b" ", 1)[0] for word in wanted} | {b"", b"\r"}
        text = b"".join(field[:_WORD_BYTES].ljust(_WORD_BYTES) for field in self.fields)
        # About one in twelve bits is set.
        num_bits = len(self.fields).bit_length() + 4
        self._shift = np.uint64(64 - num_bits)
        self._bits = np.zeros(1 << num_bits, bool)
        self._bits[self._hash(text, np.arange(0, len(text), _WORD_BYTES))] = True

    def choose(self, text: bytes) -> tuple[int, Iterator[tuple[int, bytes]]]:
        """Return the number of lines, and the selected lines with their indices.

        A line without LF is always selected.
        """
        codes = np.frombuffer(text, np.uint8)
        if len(codes) > len(self._is_found):
            self._is_found = np.empty(len(codes), bool)
        ends = np.flatnonzero(np.equal(codes, ord("\n"), out=self._is_found[: len(codes)]))
        if not text.endswith(b"\n"):
            ends = np.append(ends, len(text))
        starts = np.concatenate(([0], ends[:-1] + 1))
        spaced = text.translate(TAB_TO_SPACE) if b"\t" in text else text
        is_short = self._find_short(np.frombuffer(spaced, np.uint8), starts, ends)
        chosen = np.flatnonzero(self._may_match(spaced, starts) | is_short)
        columns = (chosen, starts[chosen], ends[chosen], is_short[chosen])
        return len(ends), self._matches(text, spaced, zip(*(column.tolist() for column in columns), strict=True))

    def _matches(
        self, text: bytes, spaced: bytes, chosen: Iterable[tuple[int, int, int, bool]]
    ) -> Iterator[tuple[int, bytes]]:
        for index, start, end, is_short in chosen:
            space = spaced.find(b" ", start, end)
            if is_short or spaced[start : end if space < 0 else space] in self.fields or end == len(text):
                yield index, text[start:end]

    def _may_match(self, text: bytes, starts: NDArray[np.int64]) -> NDArray[np.bool_]:
        last = len(text) - _WORD_BYTES
        if last < 0:
            return np.ones(len(starts), bool)
        return self._bits[self._hash(text, np.minimum(starts, last))] | (starts > last)

    def _find_short(
        self, codes: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return which lines have fewer than dim fields after the word, and perhaps a few more.

        Where every line has dim spaces, and perhaps one at its end, each is taken to precede a field. Elsewhere fields
        are counted, but not those that start with a control character. Counts may wrap around.
        """
        dtype = np.min_scalar_type(self._dim)
        is_space = np.equal(codes, ord(" "), out=self._is_found[: len(codes)])
        counts = np.add.reduceat(is_space.view(np.uint8), starts, dtype=dtype)
        counts -= is_space[ends - 1]
        if not (counts != self._dim).any():
            return np.zeros(len(starts), bool)
        is_space[:-1] &= codes[1:] > ord(" ")
        is_space[-1] = False
        is_short: NDArray[np.bool_] = np.add.reduceat(is_space.view(np.uint8), starts, dtype=dtype) < self._dim
        return is_short

    def _hash(self, text: bytes, starts: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Hash at most eight bytes from each start, up to the first space or LF."""
        windows = np.ndarray((len(text) - _WORD_BYTES + 1,), f"V{_WORD_BYTES}", text, strides=(1,))
        words: NDArray[np.uint64] = windows[starts].view("<u8")
        ends = _zero_bytes(words ^ _SPACES) | _zero_bytes(words ^ _LINE_FEEDS)
        lowest = ends & (~ends + np.uint64(1))
        # Without an end it wraps around to all bits.
        before = (lowest >> np.uint64(7)) - np.uint64(1)
        hashes: NDArray[np.uint64] = ((words & before) * _HASH_FACTOR) >> self._shift
        return hashes


def _zero_bytes(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the high bit of every zero byte, and perhaps of bytes above the lowest zero byte (Mycroft's test)."""
    return (words - _ONES) & ~words & _HIGH_BITS
