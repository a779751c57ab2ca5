"""Parse many plain lines of a text at once.

A plain line is a word without separators, dim numbers, each after one space or tab, and the line's end. Nearly all
lines are plain; `read_text` reads chunks with other lines line by line.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitembed.vectors.decimals import TAB_TO_SPACE, Characters, Integers, NotANumberError, parse_fields

# Measured: parsing 1 MiB of text at once takes 1.4 times as long, because the C library returns the larger temporary
# arrays to the system after each chunk. With fewer numbers the calls of NumPy take the time.
NUMBERS_AT_ONCE = 1 << 14


class PlainRows(NamedTuple):
    """The words of consecutive lines, and their rows, float32 `(num_lines, dim)`."""

    words: list[bytes]
    rows: NDArray[np.float32]


def parse_plain_lines(text: bytes, dim: int) -> PlainRows | None:
    r"""Parse plain lines without a Python loop over them.

    >>> parse_plain_lines(b"the 0.5 -0.25\nof 1.5 2\n", 2)
    PlainRows(words=[b'the', b'of'], rows=array([[ 0.5 , -0.25],
           [ 1.5 ,  2.  ]], dtype=float32))
    >>> parse_plain_lines(b"the 0.5 -0.25\nof course 1.5 2\n", 2) is None
    True

    Args:
        text: whole lines with LF or CRLF, perhaps after one more separator.
        dim: numbers in a line.

    Returns:
        The words and rows, not checked for NaN and infinities; None if a line is not plain.
    """
    characters = Characters(_with_bare_ends(text.translate(TAB_TO_SPACE) if b"\t" in text else text))
    cuts = _find_cuts(characters, dim)
    if cuts is None:
        return None
    try:
        rows = _parse_rows(characters, cuts)
    except NotANumberError:
        return None
    starts = [characters.start, *(cuts[:-1, -1] + 1).tolist()]
    words = [characters.bytes[start:end] for start, end in zip(starts, cuts[:, 0].tolist(), strict=True)]
    return PlainRows(words, rows)


def _parse_rows(characters: Characters, cuts: Integers) -> NDArray[np.float32]:
    """Parse the numbers between the cuts, some lines at once."""
    num_lines, dim = len(cuts), cuts.shape[1] - 1
    rows = np.empty((num_lines, dim), np.float32)
    at_once = max(1, NUMBERS_AT_ONCE // dim)
    # The checks report values that overflow float32.
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, num_lines, at_once):
            part = cuts[first : first + at_once]
            values = parse_fields(characters, (part[:, :-1] + 1).reshape(-1), part[:, 1:].reshape(-1))
            rows[first : first + at_once] = values.reshape(-1, dim)
    return rows


def _with_bare_ends(text: bytes) -> bytes:
    """Remove a separator and a CR at the end of each line, if the first line has them, because searching is slow."""
    first = text[: text.find(b"\n")]
    if first.endswith(b"\r"):
        text, first = text.replace(b"\r\n", b"\n"), first[:-1]
    return text.replace(b" \n", b"\n") if first.endswith(b" ") else text


def _find_cuts(characters: Characters, dim: int) -> Integers | None:
    """Return the positions of all spaces and LFs, `(num_lines, dim + 1)`; None if a line does not have dim spaces."""
    is_cut = characters.codes == ord("\n")
    num_lines = np.count_nonzero(is_cut)
    is_cut |= characters.codes == ord(" ")
    cuts: Integers = np.flatnonzero(is_cut)
    if not num_lines or len(cuts) != num_lines * (dim + 1):
        return None
    cuts = cuts.reshape(num_lines, dim + 1)
    return cuts if (characters.codes[cuts[:, -1]] == ord("\n")).all() else None
