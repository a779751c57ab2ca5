"""Read the dictionary of a fastText .bin model."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitembed.vectors.fasttext.cursor import Cursor
from splitembed.vectors.fasttext.header import Header
from splitembed.vectors.text.lines import MAX_WORD_BYTES

# After the word: NUL, count and type.
_ENTRY_BYTES = 10


class FoundWords(NamedTuple):
    """Wanted words of a dictionary, in its order: bytes, own rows of the input matrix, and positions in the file."""

    raw: list[bytes]
    rows: NDArray[np.int64]
    positions: NDArray[np.int64]


def read_words(cursor: Cursor, header: Header, wanted: frozenset[bytes] | None) -> FoundWords:
    """Read the dictionary to its end, and return the wanted words; None for all words.

    Raises:
        VectorFormatError: the dictionary is cut short, or an entry has the wrong type.
    """
    raw, rows, positions, number = [], [], [], 0
    size, rest = header.num_words + header.num_labels, b""
    while number < size:
        chunk = cursor.take_chunk()
        data = rest + chunk
        base = cursor.position - len(data)
        words, starts = _cut_entries(data, size - number)
        if not chunk or (not words and len(data) > MAX_WORD_BYTES):
            what = f"{number} of {size} entries, then {len(data)} other bytes"
            raise cursor.error(base, what, "a word, NUL and 9 bytes for each entry of the dictionary")
        _check_types(cursor, data, starts, number, header)
        end_of_words = max(0, header.num_words - number)
        chosen = [index for index, word in enumerate(words[:end_of_words]) if wanted is None or word in wanted]
        raw += [words[index] for index in chosen]
        rows.append(np.asarray(chosen, np.int64) + number)
        positions.append(starts[chosen] + base)
        number += len(words)
        rest = data[starts[-1] :]
    cursor.put_back(rest)
    empty = np.zeros(0, np.int64)
    return FoundWords(raw, np.concatenate([empty, *rows]), np.concatenate([empty, *positions]))


def _cut_entries(data: bytes, most: int) -> tuple[list[bytes], NDArray[np.int64]]:
    """Return the words of all whole entries, and the starts of these and of the next entry."""
    words: list[bytes] = []
    starts, start, last = [0], 0, len(data) - _ENTRY_BYTES
    while len(words) < most and 0 <= (end := data.find(b"\0", start)) <= last:
        words.append(data[start:end])
        start = end + _ENTRY_BYTES
        starts.append(start)
    return words, np.array(starts, np.int64)


def _check_types(cursor: Cursor, data: bytes, starts: NDArray[np.int64], number: int, header: Header) -> None:
    """Check the last byte of each entry, its type: 0 (word) for the first `num_words`, then 1 (label)."""
    types = np.frombuffer(data, np.uint8)[starts[1:] - 1]
    wrong = types != (np.arange(number, number + len(types)) >= header.num_words)
    if wrong.any():
        entry = int(wrong.argmax())
        position = cursor.position - len(data) + int(starts[entry])
        raise cursor.error(
            position,
            f"entry {number + entry} of type {types[entry]}",
            f"{header.num_words} words, type 0, then labels, 1",
        )
