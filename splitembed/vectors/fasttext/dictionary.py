"""The dictionary of a fastText .bin model: bytes enter; the wanted words leave, with their rows and their places."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitembed.vectors.fasttext.cursor import Cursor
from splitembed.vectors.fasttext.header import Header
from splitembed.vectors.text.lines import MOST_BYTES_A_WORD

_ENTRY_BYTES = 10  # after the word: NUL, count and type


class FoundWords(NamedTuple):
    """Wanted words of a dictionary, in its order."""

    raw: list[bytes]
    rows: NDArray[np.int64]  # of the input matrix, their own
    places: NDArray[np.int64]  # bytes of the file


def read_words(cursor: Cursor, header: Header, wanted: frozenset[bytes] | None) -> FoundWords:
    """Reads the dictionary, to its end, and keeps of it the words that are wanted; None wants all.

    Raises:
        VectorFormatError: it is cut short, or an entry is no word or label where one must be.
    """
    raw, rows, places, number = [], [], [], 0
    size, rest = header.num_words + header.num_labels, b""
    while number < size:
        chunk = cursor.take_chunk()
        data = rest + chunk
        base = cursor.place - len(data)
        words, starts = _cut_entries(data, size - number)
        if not chunk or (not words and len(data) > MOST_BYTES_A_WORD):
            what = f"{number} of {size} entries, then {len(data)} bytes that are none"
            raise cursor.error(base, what, "a word, NUL and 9 bytes for each entry of the dictionary")
        _check_types(cursor, data, starts, number, header)
        end_of_words = max(0, header.num_words - number)
        chosen = [index for index, word in enumerate(words[:end_of_words]) if wanted is None or word in wanted]
        raw += [words[index] for index in chosen]
        rows.append(np.asarray(chosen, np.int64) + number)
        places.append(starts[chosen] + base)
        number += len(words)
        rest = data[starts[-1] :]
    cursor.give_back(rest)
    nothing = np.zeros(0, np.int64)
    return FoundWords(raw, np.concatenate([nothing, *rows]), np.concatenate([nothing, *places]))


def _cut_entries(data: bytes, most: int) -> tuple[list[bytes], NDArray[np.int64]]:
    """The words of all whole entries, and where they start; last where the next one would."""
    words: list[bytes] = []
    starts, start, last = [0], 0, len(data) - _ENTRY_BYTES
    while len(words) < most and 0 <= (end := data.find(b"\0", start)) <= last:
        words.append(data[start:end])
        start = end + _ENTRY_BYTES
        starts.append(start)
    return words, np.array(starts, np.int64)


def _check_types(cursor: Cursor, data: bytes, starts: NDArray[np.int64], number: int, header: Header) -> None:
    """Each entry's last byte is its type: 0, a word, for the first `num_words`, then 1, a label."""
    types = np.frombuffer(data, np.uint8)[starts[1:] - 1]
    wrong = types != (np.arange(number, number + len(types)) >= header.num_words)
    if wrong.any():
        entry = int(wrong.argmax())
        place = cursor.place - len(data) + int(starts[entry])
        raise cursor.error(
            place, f"entry {number + entry} of type {types[entry]}", f"{header.num_words} words, type 0, then labels, 1"
        )
