r"""Naming a file's format: its first bytes enter; a `Layout`, or the error that says what the file is, leaves.

    text             word SP number SP ... number LF, once for each row; separated by spaces or tabs; GloVe
                     the same after a header "num_rows dim" LF; word2vec text, fastText .vec
    word2vec-binary  a header "num_rows dim" LF, then for each row: word SP dim little-endian float32 (some: float16 or
                     float64), and LF or nothing
    fasttext-bin     a fastText .bin model, see `fasttext_format.py`

A header is believed only where the rows bear it out. Sources of the formats: Mikolov et al., word2vec (2013),
`word2vec.c`; Pennington et al., GloVe (2014), `glove.c`; Bojanowski et al., fastText (2017).
"""

import itertools
import re
from collections import Counter
from dataclasses import dataclass

from splitembed.errors import VectorFormatError
from splitembed.vectors.decimals import NUMBER, TAB_TO_SPACE
from splitembed.vectors.fasttext.header import is_fasttext, read_dim
from splitembed.vectors.foreign_formats import BINARY, TEXT, name_foreign, refusal
from splitembed.vectors.intake import Intake
from splitembed.vectors.read_warnings import BLANK
from splitembed.vectors.streams.compressions import Head
from splitembed.vectors.word2vec.record_types import NUM_BYTES, find_dtype

AUTO, TEXT_FORMAT, BINARY_FORMAT, FASTTEXT_FORMAT = "auto", "text", "word2vec-binary", "fasttext-bin"
DTYPES_OF_FORMATS = {f"{BINARY_FORMAT}-{dtype}": dtype for dtype in NUM_BYTES}
FORMATS = (AUTO, TEXT_FORMAT, BINARY_FORMAT, *DTYPES_OF_FORMATS, FASTTEXT_FORMAT)
LARGEST_DIM = 1 << 24  # a header that says more is none
NUM_SAMPLE_ROWS = 100

BOM = b"\xef\xbb\xbf"
ROW_END = b" \t\r\n"
HEADER = re.compile(rb"([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t]*(?:\r?\n|\Z)")
_BLANK_LINES = re.compile(rb"(?:[ \t]*\r?\n)*")
_ID_AND_NUMBER = re.compile(rb"[0-9]+[ \t][^ \t]+")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")


@dataclass(frozen=True)
class Layout:
    """How a file is laid out.

    Args:
        format: "text", "word2vec-binary" or "fasttext-bin".
        dim: length of a row.
        start: bytes before the first row: a byte order mark, blank lines, the header.
        num_lines: lines before the first row.
        num_rows: what the header says; None without one.
        dtype: "float32", "float16" or "float64", of the numbers in word2vec binary.
    """

    format: str
    dim: int
    start: int
    num_lines: int = 0
    num_rows: int | None = None
    dtype: str = "float32"


def sniff(stream: Head, intake: Intake, format: str = AUTO) -> Layout:  # noqa: A002
    """Finds out how a file is laid out.

    Args:
        stream: the file; only its head is looked at.
        intake: the dim asked for; takes note of blank lines before the first row.
        format: "text", "word2vec-binary" or "fasttext-bin" to refuse the others, "auto" for any; or
            "word2vec-binary-float16" and the like to say what the file does not.

    Returns:
        The layout.

    Raises:
        VectorFormatError: it is something else, by name; or its dim is another than was asked for.
    """
    if format not in FORMATS:
        raise VectorFormatError(f"`format` must be one of {', '.join(FORMATS)}. Received: {format!r}.")
    layout = _find_layout(stream, intake, format)
    if format not in (AUTO, layout.format) and not (layout.format == BINARY_FORMAT and format in DTYPES_OF_FORMATS):
        raise VectorFormatError(
            f"{stream.path}: found {layout.format}; expected {format}, as asked for. Pass format={layout.format!r}."
        )
    if layout.dim:  # else the reader says what is wrong
        intake.check_dim(layout.dim)
    return layout


def _find_layout(stream: Head, intake: Intake, format: str) -> Layout:  # noqa: A002
    if is_fasttext(stream.head):
        return Layout(FASTTEXT_FORMAT, _check_fasttext(stream.path, read_dim(stream.head)), 0)
    foreign = name_foreign(stream.head, BINARY)
    if foreign:
        raise refusal(stream.path, foreign)
    start, num_lines = _skip_blank_lines(stream, intake)
    header = HEADER.match(stream.head, start)
    layout = _with_header(stream, intake, header, num_lines + 1, format) if header else None
    layout = layout or _without_header(stream, intake, start, num_lines)
    _refuse_numbers_apart(stream, layout)
    return layout


def _check_fasttext(path: str, dim: int) -> int:
    if dim > 0:
        return dim
    raise VectorFormatError(
        f"{path}: found a fastText .bin model of dim {dim}; expected at least 1. The file is damaged or cut short: get "
        "it again."
    )


def _skip_blank_lines(stream: Head, intake: Intake) -> tuple[int, int]:
    """Where the first line that is not blank starts, and how many lines come before it."""
    start = len(BOM) if stream.head.startswith(BOM) else 0
    blank = _BLANK_LINES.match(stream.head, start)
    end = blank.end() if blank else start
    if end == len(stream.head):
        raise VectorFormatError(f"{stream.path} is empty ({end} bytes); expected rows of vectors. Get the file again.")
    num_lines = stream.head.count(b"\n", start, end)
    if num_lines:
        intake.doubts.add(BLANK, "line 1", num_lines)
    return end, num_lines


def _refuse_numbers_apart(stream: Head, layout: Layout) -> None:
    """Refuses rows whose numbers stand further apart than one separator: all but the last would go into the words."""
    sample = _sample(stream.head[layout.start :], stream.head_is_all) if layout.format == TEXT_FORMAT else []
    rows = [row for row in sample if _count_numbers(row) == layout.dim]  # any other is an error when it is read
    apart = [row for row in rows if _has_numbers_apart(row)]
    if 2 * len(apart) > len(rows):
        raise VectorFormatError(
            f"{stream.path}: found rows such as {apart[0][:60]!r}; expected one space or tab between numbers, and "
            "nothing else. Write it anew that way (sed -E 's/[ ,;]+/ /g'), or pass (words, matrix)."
        )


def _with_header(stream: Head, intake: Intake, header: re.Match[bytes], line: int, format: str) -> Layout | None:  # noqa: A002
    """The layout where the first line is a header; None where it looks like one and is a row of dim 1."""
    num_rows, dim = int(header[1]), int(header[2])
    rows = stream.head[header.end() :]
    sample = _sample(rows, stream.head_is_all)
    votes = [_count_numbers(row) for row in sample]
    found = _most_common(votes)
    if _is_borne_out(dim, votes, intake.dim) or (dim and not num_rows and not rows.strip(ROW_END)):
        return Layout(TEXT_FORMAT, dim, header.end(), line, num_rows)
    if sample and all(_ID_AND_NUMBER.fullmatch(row) for row in sample):
        return None
    if found:
        raise intake.error(
            line,
            f"a header of {num_rows} rows of dim {dim} above rows of dim {found}",
            "a header that the rows bear out",
            f"Correct that line or take it out; if the words end in numbers, pass dim={dim}.",
        )
    if not rows.strip(ROW_END):
        raise intake.error(line, "a header and nothing below it", f"{num_rows} rows", "Get the file again.")
    if format.startswith(BINARY_FORMAT) or _is_binary(rows):
        return Layout(BINARY_FORMAT, dim, header.end(), line, num_rows, _dtype(stream, intake, header, line, format))
    raise _unknown(stream)


def _dtype(stream: Head, intake: Intake, header: re.Match[bytes], line: int, format: str) -> str:  # noqa: A002
    """The dtype of binary records, as asked for or as they bear it out."""
    num_rows, dim = int(header[1]), int(header[2])
    dtypes = (DTYPES_OF_FORMATS[format],) if format in DTYPES_OF_FORMATS else tuple(NUM_BYTES)
    if not 0 < dim <= LARGEST_DIM:
        return dtypes[0]
    dtype = find_dtype(stream.head[header.end() :], stream.head_is_all, dim, num_rows, dtypes)
    if dtype is None:
        raise intake.error(
            line,
            f"a header of {num_rows} rows of dim {dim} that the records below it do not bear out",
            f"words, each with a space and {dim} numbers of {' or '.join(dtypes)} after it",
            "The header is wrong, or the file damaged or cut short: get it again. If it is whole, pass "
            'format="word2vec-binary-float16" or whatever its numbers are.',
        )
    return dtype


def _without_header(stream: Head, intake: Intake, start: int, num_lines: int) -> Layout:
    votes = [_count_numbers(row) for row in _sample(stream.head[start:], stream.head_is_all)]
    dim = _most_common(votes)
    if not dim:
        raise _unknown(stream)
    if intake.dim is not None and intake.dim == min(votes):
        dim = intake.dim  # no row has fewer numbers, so the words of the others may end in numbers
    return Layout(TEXT_FORMAT, dim, start, num_lines)


def _is_borne_out(dim: int, votes: list[int], asked: int | None) -> bool:
    """Whether rows with so many numbers can have the header's dim, and do not rather have another."""
    if not votes or not dim:
        return False
    return votes.count(dim) == max(Counter(votes).values()) or dim == min(votes) or (dim == asked and dim <= min(votes))


def _sample(rows: bytes, is_all: bool) -> list[bytes]:
    """The first rows, without their ends."""
    lines = rows.split(b"\n")
    if not is_all:
        lines.pop()  # perhaps cut
    return list(itertools.islice(filter(None, (line.rstrip(ROW_END) for line in lines)), NUM_SAMPLE_ROWS))


def _count_numbers(row: bytes) -> int:
    """How many numbers stand at the row's end, a word before them."""
    fields = row.translate(TAB_TO_SPACE).split(b" ")[1:]
    return sum(1 for _ in itertools.takewhile(NUMBER.fullmatch, reversed(fields)))


def _has_numbers_apart(row: bytes) -> bool:
    """Whether another number, and behind it more spaces or a comma, stands before the numbers at the row's end."""
    fields = row.translate(TAB_TO_SPACE).split(b" ")[1:]
    num_numbers = _count_numbers(row)
    before = fields[: len(fields) - num_numbers]
    if not num_numbers or not any(before):
        return False
    last = next(filter(None, reversed(before)))
    is_far = not before[-1]
    return NUMBER.fullmatch(last if is_far else last.rstrip(b",;")) is not None


def _most_common(votes: list[int]) -> int:
    """The dim that most rows have, the larger of two: rows of the smaller are then refused, not misread."""
    counts = Counter(votes)
    return max(counts, key=lambda dim: (counts[dim], dim), default=0)


def _is_binary(rows: bytes) -> bool:
    if _CONTROL.search(rows):
        return True
    try:
        rows.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start < len(rows) - 3  # else a character that the end of the head cuts
    return False


def _unknown(stream: Head) -> VectorFormatError:
    foreign = name_foreign(stream.head.removeprefix(BOM), TEXT)
    if foreign:
        return refusal(stream.path, foreign)
    first = stream.head.split(b"\n", 1)[0]
    return VectorFormatError(
        f"{stream.path}: found no rows of vectors; it starts with {first[:60]!r}. Expected lines of a word and its "
        "numbers, separated by single spaces or tabs, or word2vec binary. Convert it, or pass (words, matrix)."
    )
