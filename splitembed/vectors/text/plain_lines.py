"""Whole lines of a text enter; their words and float32 rows leave at once, if all the lines are plain.

A line is plain if it is a word without separators, dim numbers, each after one space or tab, and the line's end. Nearly
all lines are; a text that holds any other is for the reader that looks at each line.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitembed.vectors.decimals import TAB_TO_SPACE, Characters, Integers, NotANumberError, parse_fields

# Measured on 1 MiB of text: parsing it in one go costs half as much time again, because the C library returns its
# larger arrays to the system and each chunk then faults their pages in again. Fewer numbers cost calls.
NUMBERS_AT_ONCE = 1 << 14


class PlainRows(NamedTuple):
    """The words of consecutive lines, and the rows beside them, float32 `(num_lines, dim)`."""

    words: list[bytes]
    rows: NDArray[np.float32]


def parse_plain_lines(text: bytes, dim: int) -> PlainRows | None:
    r"""Parses lines without a loop over them.

    >>> parse_plain_lines(b"the 0.5 -0.25\nof 1.5 2\n", 2)
    PlainRows(words=[b'the', b'of'], rows=array([[ 0.5 , -0.25],
           [ 1.5 ,  2.  ]], dtype=float32))
    >>> parse_plain_lines(b"the 0.5 -0.25\nof course 1.5 2\n", 2) is None
    True

    Args:
        text: lines, each with its LF or CRLF, perhaps after one more separator.
        dim: numbers in a line.

    Returns:
        The rows, not checked for values that are not finite; or None if a line is not plain.
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
    # The intake reports values that overflow float32.
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, num_lines, at_once):
            part = cuts[first : first + at_once]
            values = parse_fields(characters, (part[:, :-1] + 1).reshape(-1), part[:, 1:].reshape(-1))
            rows[first : first + at_once] = values.reshape(-1, dim)
    return rows


def _with_bare_ends(text: bytes) -> bytes:
    """Takes a separator and a CR off the end of each line, if the first line has them: to search for them is slow."""
    first = text[: text.find(b"\n")]
    if first.endswith(b"\r"):
        text, first = text.replace(b"\r\n", b"\n"), first[:-1]
    return text.replace(b" \n", b"\n") if first.endswith(b" ") else text


def _find_cuts(characters: Characters, dim: int) -> Integers | None:
    """`(num_lines, dim + 1)`: the places of all spaces and LFs, if the last of each row is a LF and the others none."""
    is_cut = characters.codes == ord("\n")
    num_lines = np.count_nonzero(is_cut)
    is_cut |= characters.codes == ord(" ")
    cuts: Integers = np.flatnonzero(is_cut)
    if not num_lines or len(cuts) != num_lines * (dim + 1):
        return None
    cuts = cuts.reshape(num_lines, dim + 1)
    return cuts if (characters.codes[cuts[:, -1]] == ord("\n")).all() else None
