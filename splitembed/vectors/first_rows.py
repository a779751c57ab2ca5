"""The first rows of a text of vectors: how many numbers they hold, and whether they are words with their numbers."""

import itertools
import re

from splitembed.errors import VectorFormatError
from splitembed.vectors.decimals import NUMBER
from splitembed.vectors.read_checks import ReadChecks

NUM_SAMPLE_ROWS = 100
ROW_END = b" \t\r\n"

_SEPARATORS = re.compile(rb"[ \t]+")
_WORD_OR_INTEGER = re.compile(rb"[+-]?([0-9]+|[a-z]+)", re.IGNORECASE)


def sample_rows(rows: bytes, is_all: bool) -> list[bytes]:
    r"""Return the first rows, without blank lines and line ends.

    >>> sample_rows(b"the 1 2\r\n\nof 3", is_all=False)
    [b'the 1 2']

    Args:
        rows: bytes from the first row on.
        is_all: whether the file ends with them; else the last line may be cut.
    """
    lines = rows.split(b"\n")
    if not is_all:
        # The last one may be cut.
        lines.pop()
    return list(itertools.islice(filter(None, (line.rstrip(ROW_END) for line in lines)), NUM_SAMPLE_ROWS))


def count_numbers(row: bytes) -> int:
    """Return how many numbers end a row, after a word.

    >>> count_numbers(b"of 1 2  3.5"), count_numbers(b"0.5 1"), count_numbers(b"the")
    (3, 1, 0)
    """
    fields = _SEPARATORS.split(row)[1:]
    return sum(map(bool, itertools.takewhile(NUMBER.fullmatch, reversed(fields))))


def check_rows(sample: list[bytes], dim: int, first_line: int, has_header: bool, checks: ReadChecks) -> None:
    """Check the first rows for words that are numbers, for a heading, and for commas between numbers.

    Args:
        sample: the rows, from `sample_rows`.
        dim: the numbers in a row.
        first_line: the line number of the first row.
        has_header: whether a header of word2vec precedes them.
        checks: the rules for errors and warnings.

    Raises:
        VectorFormatError: the rows are not words with their numbers.
    """
    # Any other row is an error when it is read.
    counts = [count_numbers(row) for row in sample]
    rows = list(itertools.compress(sample, (count == dim for count in counts)))
    # NumPy writes comments above a matrix.
    numbered = [row for row in itertools.compress(sample, counts) if not row.startswith(b"#")]
    if numbered and all(map(_starts_with_decimal, numbered)):
        line = first_line + sample.index(numbered[0])
        # Comments are not rows, and a blank in place of a sign makes rows of different lengths.
        checks.check_numbers_as_words(line, numbered[0], is_certain=min(len(rows), len(numbered)) < len(sample))
    if rows and not checks.skips_bad_lines and not has_header and _is_heading(sample[0], dim):
        raise checks.error(
            first_line,
            f"a heading, {sample[0][:60]!r}",
            f"a word and {dim} numbers",
            "Remove that line, or set `skip_bad_lines`.",
        )
    with_commas = [row for row in rows if _has_commas(row, dim)]
    if 2 * len(with_commas) > len(rows):
        raise VectorFormatError(
            f"{checks.source}: found rows such as {with_commas[0][:60]!r}; expected spaces or tabs between numbers, "
            "and nothing else. Convert it (sed -E 's/[ ,;]+/ /g'), or pass (words, matrix)."
        )


def _has_commas(row: bytes, dim: int) -> bool:
    """Return whether a comma separates another number from the numbers that end a row."""
    before = _SEPARATORS.split(row)[1:-dim]
    return bool(before) and NUMBER.fullmatch(before[-1].rstrip(b",;")) is not None


def _is_heading(row: bytes, dim: int) -> bool:
    """Return whether the first row names each column of the others."""
    fields = _SEPARATORS.split(row)
    return len(fields) == dim + 1 and not any(map(NUMBER.fullmatch, fields))


def _starts_with_decimal(row: bytes) -> bool:
    """Return whether a row starts with a number with a point or an exponent, or with a blank before numbers alone."""
    first, *others = _SEPARATORS.split(row)
    if not first:
        return all(map(NUMBER.fullmatch, others))
    return NUMBER.fullmatch(first) is not None and not _WORD_OR_INTEGER.fullmatch(first)
