"""Find the dtype of the numbers in a word2vec binary file.

The file does not name it. The positions of the words show it: read with a wrong dtype, nearly all words but the first
begin inside a row and hold control characters, and most numbers are far too large.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Of two dtypes that fit equally well, the first is taken.
NUM_BYTES = {"float32": 4, "float16": 2, "float64": 8}
USUAL_DTYPE = "float32"
NUM_SAMPLE_RECORDS = 200
# A longer word counts against the dtype.
MAX_PLAUSIBLE_WORD_BYTES = 1000
# The share of plausible records that a dtype needs. Measured: with a dim that is off by one it is up to 0.7.
MIN_PLAUSIBLE_SHARE = 0.8
# The range of most numbers in a vector.
SMALLEST, LARGEST = 1e-9, 1e9

_CONTROL_CHARACTER = re.compile(rb"[\x00-\x1f\x7f]")


class _Fit(NamedTuple):
    """How well a dtype fits the first records; the larger, the better.

    Args:
        share: the share of plausible records.
        ends_with_file: whether the last record ends with the file.
        num_records: the number of whole records.
        is_exact: whether the last record ends with the file and there are as many records as the header says.
    """

    share: float
    ends_with_file: bool
    num_records: int
    is_exact: bool

    @property
    def is_likely(self) -> bool:
        return self.share > (0.5 if self.is_exact else MIN_PLAUSIBLE_SHARE)


def find_dtype(
    records: bytes, is_all: bool, dim: int, num_rows: int, dtypes: Sequence[str] = tuple(NUM_BYTES)
) -> str | None:
    r"""Find the dtype that fits the first records.

    >>> import numpy as np
    >>> rows = np.array([[0.1, 0.2], [0.3, 0.4]], np.float16)
    >>> find_dtype(b"the " + rows[0].tobytes() + b"of " + rows[1].tobytes(), True, 2, 2)
    'float16'

    Args:
        records: bytes from the first record on.
        is_all: whether these are all bytes of the file.
        dim: the dim that the header says.
        num_rows: the number of rows that the header says.
        dtypes: the dtypes to choose from.

    Returns:
        "float32", "float16" or "float64"; None if no dtype fits.
    """
    is_requested = len(dtypes) == 1
    fits = {dtype: _fit(records, is_all, dtype, dim, num_rows, is_requested) for dtype in dtypes}
    # Half of a single float32 record is a record of float16, too: so of one record only the usual dtype counts.
    usual = dtypes[0]
    likely = [each for each in dtypes if fits[each].is_likely and (fits[each].num_records > 1 or each == usual)]
    if likely:
        return max(likely, key=lambda dtype: fits[dtype][:2])
    # Unusual words or numbers are accepted if there are as many records as the header says, up to the last byte.
    is_exact = fits[usual].is_exact
    return usual if is_exact or not any(fit.num_records for fit in fits.values()) else None


def have_line_feeds(records: bytes, row_bytes: int) -> bool:
    r"""Return whether an LF follows every record but the last one. Otherwise an LF is part of the next word.

    >>> have_line_feeds(b"a 1234\nb 1234\n", 4), have_line_feeds(b"a 1234b 1234", 4)
    (True, False)
    """
    start, found = 0, False
    while (space := records.find(b" ", start)) >= 0 and (end := space + 1 + row_bytes) < len(records):
        if records[end] != ord("\n"):
            return False
        start, found = end + 1, True
    return found


def _fit(records: bytes, is_all: bool, dtype: str, dim: int, num_rows: int, is_requested: bool) -> _Fit:
    row_bytes = NUM_BYTES[dtype] * dim
    has_line_feeds = have_line_feeds(records, row_bytes)
    start, num_records = 0, 0
    is_plausible: list[bool] = []
    while len(is_plausible) < NUM_SAMPLE_RECORDS and (space := records.find(b" ", start)) >= 0:
        end = space + 1 + row_bytes
        is_plausible.append(_is_plausible(records[start:space], records[space + 1 : end], dtype, is_requested))
        if end > len(records):
            break
        num_records += 1
        start = end + (has_line_feeds and records[end : end + 1] == b"\n")
    rest = records[start:].strip(b"\n")
    if (
        len(is_plausible) == num_records < NUM_SAMPLE_RECORDS
        and rest
        and (is_all or len(rest) > MAX_PLAUSIBLE_WORD_BYTES)
    ):
        # The remaining bytes hold no space.
        is_plausible.append(False)
    ends_with_file = is_all and not rest and num_records > 0
    share = sum(is_plausible) / len(is_plausible) if num_records else 0
    return _Fit(share, ends_with_file, num_records, ends_with_file and num_records == num_rows)


def _is_plausible(word: bytes, row: bytes, dtype: str, is_requested: bool) -> bool:
    """Return whether a word and a row are plausible; with the usual dtype, words need not be UTF-8."""
    if not 0 < len(word) <= MAX_PLAUSIBLE_WORD_BYTES or _CONTROL_CHARACTER.search(word):
        return False
    return is_requested or ((dtype == USUAL_DTYPE or _is_utf8(word)) and _is_vector(row, dtype))


def _is_utf8(word: bytes) -> bool:
    try:
        word.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_vector(raw: bytes, dtype: str) -> bool:
    """Return whether a row, or its beginning, is finite, and most of its numbers have a usual size."""
    num_bytes = NUM_BYTES[dtype]
    numbers = np.frombuffer(raw[: len(raw) // num_bytes * num_bytes], np.dtype(dtype).newbyteorder("<"))
    # NaN of any bits.
    with np.errstate(invalid="ignore"):
        sizes = np.abs(numbers[numbers != 0].astype(np.float64))
    num_likely = int(np.count_nonzero((sizes > SMALLEST) & (sizes < LARGEST)))
    return bool(np.isfinite(sizes).all()) and (not len(sizes) or 2 * num_likely > len(sizes))
