r"""Layouts of text, word2vec binary and fastText files, recognised by their first bytes.

    text             word SP number SP ... number LF, once for each row; separated by spaces or tabs, perhaps several;
                     GloVe
                     the same after a header "num_rows dim" LF; word2vec text, fastText .vec
    word2vec-binary  a header "num_rows dim" LF, then for each row: word SP dim little-endian float32 (some: float16 or
                     float64), and LF or nothing
    fasttext-bin     a fastText .bin model, see `fasttext/header.py`

A header is only accepted if the rows agree with it. Sources of the formats: Mikolov et al., word2vec (2013),
`word2vec.c`; Pennington et al., GloVe (2014), `glove.c`; Bojanowski et al., fastText (2017).
"""

import re
from collections import Counter
from dataclasses import dataclass

from splitembed.errors import VectorFormatError
from splitembed.vectors.decimals import NUMBER
from splitembed.vectors.fasttext.header import is_fasttext, read_dim
from splitembed.vectors.first_rows import ROW_END, check_rows, count_numbers, sample_rows
from splitembed.vectors.read_checks import ReadChecks
from splitembed.vectors.read_warnings import BLANK
from splitembed.vectors.streams.compressions import Head
from splitembed.vectors.unreadable import BINARY, TEXT, name_foreign, refusal
from splitembed.vectors.word2vec.record_types import NUM_BYTES, find_dtype

AUTO, TEXT_FORMAT, BINARY_FORMAT, FASTTEXT_FORMAT = "auto", "text", "word2vec-binary", "fasttext-bin"
DTYPES_OF_FORMATS = {f"{BINARY_FORMAT}-{dtype}": dtype for dtype in NUM_BYTES}
# A header with a larger dim is invalid.
LARGEST_DIM = 1 << 24

BOM = b"\xef\xbb\xbf"
HEADER = re.compile(rb"([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t]*(?:\r?\n|\Z)")
# A search needs no memory, while a repeated group takes 60 bytes for each blank line.
_NOT_BLANK = re.compile(rb"[^ \t\r\n]|\r(?!\n)")
_ID_AND_NUMBER = re.compile(rb"[0-9]+[ \t]+[^ \t]+")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")


@dataclass(frozen=True)
class Layout:
    """The layout of a file.

    Args:
        format: "text", "word2vec-binary" or "fasttext-bin".
        dim: length of a row.
        start: the number of bytes before the first row: a byte order mark, blank lines, the header.
        num_lines: the number of lines before the first row.
        num_rows: the number of rows in the header; None without a header.
        dtype: "float32", "float16" or "float64", the dtype of the numbers in word2vec binary.
    """

    format: str
    dim: int
    start: int
    num_lines: int = 0
    num_rows: int | None = None
    dtype: str = "float32"


def find_layout(stream: Head, checks: ReadChecks, format: str = AUTO) -> Layout:  # noqa: A002
    """Return the layout of a file.

    Args:
        stream: the file; only its head is read.
        checks: the requested dim; counts blank lines before the first row.
        format: the option `format`. "word2vec-binary-float16" and the like give the dtype of binary records.

    Raises:
        VectorFormatError: the file has another format, which the message names, or its dim is not the requested one.
    """
    layout = _find_layout(stream, checks, format)
    # Without a dim, the reader raises the error.
    if layout.dim:
        checks.check_dim(layout.dim)
    return layout


def _find_layout(stream: Head, checks: ReadChecks, format: str) -> Layout:  # noqa: A002
    if is_fasttext(stream.head):
        return Layout(FASTTEXT_FORMAT, _check_fasttext(stream.path, read_dim(stream.head)), 0)
    foreign = name_foreign(stream.head, BINARY)
    if foreign:
        raise refusal(stream.path, foreign)
    start, num_lines = _skip_blank_lines(stream, checks)
    header = HEADER.match(stream.head, start)
    layout = _with_header(stream, checks, header, num_lines + 1, format) if header else None
    layout = layout or _without_header(stream, checks, start, num_lines)
    if layout.format == TEXT_FORMAT:
        sample = sample_rows(stream.head[layout.start :], stream.head_is_all)
        check_rows(sample, layout.dim, layout.num_lines + 1, layout.num_rows is not None, checks)
    return layout


def _check_fasttext(path: str, dim: int) -> int:
    if dim > 0:
        return dim
    raise VectorFormatError(
        f"{path}: found a fastText .bin model of dim {dim}; expected at least 1. The file is damaged or cut short: get "
        "it again."
    )


def _skip_blank_lines(stream: Head, checks: ReadChecks) -> tuple[int, int]:
    """Return the start of the first line that is not blank, and the number of lines before it."""
    start = len(BOM) if stream.head.startswith(BOM) else 0
    found = _NOT_BLANK.search(stream.head, start)
    end = max(start, stream.head.rfind(b"\n", start, found.start() if found else len(stream.head)) + 1)
    if end == len(stream.head):
        raise VectorFormatError(f"{stream.path}: found an empty file ({end} bytes); expected rows. Get the file again.")
    num_lines = stream.head.count(b"\n", start, end)
    if num_lines:
        checks.warnings.add(BLANK, "line 1", num_lines)
    return end, num_lines


def _with_header(stream: Head, checks: ReadChecks, header: re.Match[bytes], line: int, format: str) -> Layout | None:  # noqa: A002
    """Return the layout of a file with a header; None if the first line looks like a header and is a row of dim 1."""
    num_rows, dim = int(header[1]), int(header[2])
    rows = stream.head[header.end() :]
    sample = sample_rows(rows, stream.head_is_all)
    votes = [count_numbers(row) for row in sample]
    found = _most_common(votes)
    if _agrees(dim, votes, checks.dim) or (dim and not num_rows and not rows.strip(ROW_END)):
        return Layout(TEXT_FORMAT, dim, header.end(), line, num_rows)
    if sample and all(_ID_AND_NUMBER.fullmatch(row) and count_numbers(row) for row in sample):
        return None
    if found:
        raise checks.error(
            line,
            f"a header of {num_rows} rows of dim {dim} above rows of dim {found}",
            "a header that agrees with the rows",
            f"Fix or remove that line; if the words end in numbers, pass dim={dim}.",
        )
    if not rows.strip(ROW_END):
        raise checks.error(line, "a header without rows", f"{num_rows} rows", "Get the file again.")
    if format.startswith(BINARY_FORMAT) or _is_binary(rows):
        return Layout(BINARY_FORMAT, dim, header.end(), line, num_rows, _dtype(stream, checks, header, line, format))
    raise _unknown(stream)


def _dtype(stream: Head, checks: ReadChecks, header: re.Match[bytes], line: int, format: str) -> str:  # noqa: A002
    """Return the dtype of binary records: the one in `format`, or the one that fits them."""
    num_rows, dim = int(header[1]), int(header[2])
    dtypes = (DTYPES_OF_FORMATS[format],) if format in DTYPES_OF_FORMATS else tuple(NUM_BYTES)
    if not 0 < dim <= LARGEST_DIM:
        return dtypes[0]
    dtype = find_dtype(stream.head[header.end() :], stream.head_is_all, dim, num_rows, dtypes)
    if dtype is None:
        raise checks.error(
            line,
            f"a header of {num_rows} rows of dim {dim} that does not agree with the records",
            f"words, each followed by a space and {dim} numbers of {' or '.join(dtypes)}",
            "The header is wrong, or the file damaged or cut short: get it again. If it is whole, give its dtype: pass "
            'format="word2vec-binary-float16" or another.',
        )
    return dtype


def _without_header(stream: Head, checks: ReadChecks, start: int, num_lines: int) -> Layout:
    votes = [count_numbers(row) for row in sample_rows(stream.head[start:], stream.head_is_all)]
    dim = _most_common(votes)
    if not dim:
        raise _unknown(stream)
    if checks.dim is not None and checks.dim == min(votes):
        # No row has fewer numbers, so the words of other rows may end in numbers.
        dim = checks.dim
    return Layout(TEXT_FORMAT, dim, start, num_lines)


def _agrees(dim: int, votes: list[int], requested: int | None) -> bool:
    """Return whether rows with these numbers of numbers can have the dim of the header, and no other is likelier."""
    if not votes or not dim:
        return False
    return (
        votes.count(dim) == max(Counter(votes).values())
        or dim == min(votes)
        or (dim == requested and dim <= min(votes))
    )


def _most_common(votes: list[int]) -> int:
    """Return the most common dim, the larger of two: then rows of the smaller are refused, not misread."""
    counts = Counter(votes)
    return max(counts, key=lambda dim: (counts[dim], dim), default=0)


def _is_binary(rows: bytes) -> bool:
    if _CONTROL.search(rows):
        return True
    try:
        rows.decode("utf-8")
    except UnicodeDecodeError as error:
        # The end of the head may cut a character.
        return error.start < len(rows) - 3
    return False


def _unknown(stream: Head) -> VectorFormatError:
    foreign = name_foreign(stream.head.removeprefix(BOM), TEXT)
    if foreign:
        return refusal(stream.path, foreign)
    first, *others = stream.head.split(b"\n", 2)[:2]
    found = "no rows of vectors"
    if any(map(_ends_with_comma_and_number, (first, *others))):
        heading = "" if _ends_with_comma_and_number(first) else " with a heading"
        found = f"comma-separated values{heading}, no rows of vectors"
    return VectorFormatError(
        f"{stream.path}: found {found}; it starts with {first[:60]!r}. Expected lines of a word and its numbers, "
        "separated by spaces or tabs, or word2vec binary. Convert it, or load it and pass (words, matrix)."
    )


def _ends_with_comma_and_number(line: bytes) -> bool:
    _, comma, field = line.rstrip(ROW_END).replace(b";", b",").rpartition(b",")
    return bool(comma) and NUMBER.fullmatch(field.strip(b' "')) is not None
