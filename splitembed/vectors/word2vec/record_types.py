"""Which numbers word2vec binary holds: the first records and the header's dim enter; the name of a dtype leaves.

Nothing in such a file says how long a number is. It is told by where the words are: read with a wrong length, nearly
all words but the first begin in the middle of a row and hold control characters, and most numbers are far too large.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

NUM_BYTES = {"float32": 4, "float16": 2, "float64": 8}  # of two that fit alike, the first is taken
USUAL = "float32"
NUM_SAMPLE_RECORDS = 200
MOST_WORD_BYTES = 1000  # of a word that speaks for its reading
ENOUGH = 0.8  # of the records must look right; measured, with a dim that is off by one up to 0.7 of them do
SMALLEST, LARGEST = 1e-9, 1e9  # of most numbers in a vector

_NO_WORD = re.compile(rb"[\x00-\x1f\x7f]")


class _Fit(NamedTuple):
    """How well the first records bear out a dtype: the larger, the better."""

    share: float  # of records that look right
    ends_with_file: bool  # the last record does
    num_records: int  # that are whole
    is_exact: bool  # the last record ends with the file, and there are as many as the header says

    @property
    def is_likely(self) -> bool:
        return self.share > (0.5 if self.is_exact else ENOUGH)


def find_dtype(
    records: bytes, is_all: bool, dim: int, num_rows: int, dtypes: Sequence[str] = tuple(NUM_BYTES)
) -> str | None:
    r"""Finds the dtype that the records bear out.

    >>> import numpy as np
    >>> rows = np.array([[0.1, 0.2], [0.3, 0.4]], np.float16)
    >>> find_dtype(b"the " + rows[0].tobytes() + b"of " + rows[1].tobytes(), True, 2, 2)
    'float16'

    Args:
        records: the first ones.
        is_all: whether these are all.
        dim: what the header says.
        num_rows: what the header says.
        dtypes: those that may be.

    Returns:
        "float32", "float16" or "float64"; None if they bear out none of them.
    """
    is_asked_for = len(dtypes) == 1
    fits = {dtype: _fit(records, is_all, dtype, dim, num_rows, is_asked_for) for dtype in dtypes}
    usual = dtypes[0]  # it alone is believed of one record: of one, half is a record too
    likely = [each for each in dtypes if fits[each].is_likely and (fits[each].num_records > 1 or each == usual)]
    if likely:
        return max(likely, key=lambda dtype: fits[dtype][:2])
    is_exact = fits[usual].is_exact  # odd words or numbers, yet as many as the header says, up to the last byte
    return usual if is_exact or not any(fit.num_records for fit in fits.values()) else None


def have_line_feeds(records: bytes, row_bytes: int) -> bool:
    r"""Says whether every record that something follows is followed by LF; without, an LF belongs to the next word.

    >>> have_line_feeds(b"a 1234\nb 1234\n", 4), have_line_feeds(b"a 1234b 1234", 4)
    (True, False)
    """
    start, found = 0, False
    while (space := records.find(b" ", start)) >= 0 and (end := space + 1 + row_bytes) < len(records):
        if records[end] != ord("\n"):
            return False
        start, found = end + 1, True
    return found


def _fit(records: bytes, is_all: bool, dtype: str, dim: int, num_rows: int, is_asked_for: bool) -> _Fit:
    row_bytes = NUM_BYTES[dtype] * dim
    has_line_feeds = have_line_feeds(records, row_bytes)
    start, num_records = 0, 0
    looks: list[bool] = []
    while len(looks) < NUM_SAMPLE_RECORDS and (space := records.find(b" ", start)) >= 0:
        end = space + 1 + row_bytes
        looks.append(_looks_right(records[start:space], records[space + 1 : end], dtype, is_asked_for))
        if end > len(records):
            break
        num_records += 1
        start = end + (has_line_feeds and records[end : end + 1] == b"\n")
    rest = records[start:].strip(b"\n")
    if len(looks) == num_records < NUM_SAMPLE_RECORDS and rest and (is_all or len(rest) > MOST_WORD_BYTES):
        looks.append(False)  # no space is in it
    ends_with_file = is_all and not rest and num_records > 0
    share = sum(looks) / len(looks) if num_records else 0
    return _Fit(share, ends_with_file, num_records, ends_with_file and num_records == num_rows)


def _looks_right(word: bytes, row: bytes, dtype: str, is_asked_for: bool) -> bool:
    """Whether a record may be one: of the usual dtype the word may be in another encoding than UTF-8."""
    if not 0 < len(word) <= MOST_WORD_BYTES or _NO_WORD.search(word):
        return False
    return is_asked_for or ((dtype == USUAL or _is_utf8(word)) and _is_vector(row, dtype))


def _is_utf8(word: bytes) -> bool:
    try:
        word.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_vector(raw: bytes, dtype: str) -> bool:
    """Whether a row, or its beginning, is finite, and most of its numbers are of a size that vectors have."""
    num_bytes = NUM_BYTES[dtype]
    numbers = np.frombuffer(raw[: len(raw) // num_bytes * num_bytes], np.dtype(dtype).newbyteorder("<"))
    with np.errstate(invalid="ignore"):  # NaN of any bits
        sizes = np.abs(numbers[numbers != 0].astype(np.float64))
    num_likely = int(np.count_nonzero((sizes > SMALLEST) & (sizes < LARGEST)))
    return bool(np.isfinite(sizes).all()) and (not len(sizes) or 2 * num_likely > len(sizes))
