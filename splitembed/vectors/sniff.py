r"""Naming a file's format: its first bytes enter; a `Layout`, or the error that says what the file is, leaves.

    text             word SP number SP ... number LF, once for each row; separated by spaces or tabs; GloVe
                     the same after a header "num_rows dim" LF; word2vec text, fastText .vec
    word2vec-binary  a header "num_rows dim" LF, then for each row: word SP dim little-endian float32, and LF or nothing

A header is believed only where the rows bear it out. Sources of the formats: Mikolov et al., word2vec (2013),
`word2vec.c`; Pennington et al., GloVe (2014), `glove.c`; Bojanowski et al., fastText (2017).
"""

import itertools
import re
from collections import Counter
from dataclasses import dataclass

from splitembed.errors import VectorFormatError
from splitembed.vectors.decimals import NUMBER, TAB_TO_SPACE
from splitembed.vectors.doubts import BLANK
from splitembed.vectors.foreign import BINARY, TEXT, Foreign, name_foreign
from splitembed.vectors.intake import Intake
from splitembed.vectors.streams import Stream

AUTO, TEXT_FORMAT, BINARY_FORMAT = "auto", "text", "word2vec-binary"
FORMATS = (AUTO, TEXT_FORMAT, BINARY_FORMAT)
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
        format: "text" or "word2vec-binary".
        dim: length of a row.
        start: bytes before the first row: a byte order mark, blank lines, the header.
        num_lines: lines before the first row.
        num_rows: what the header says; None without one.
    """

    format: str
    dim: int
    start: int
    num_lines: int = 0
    num_rows: int | None = None


def sniff(stream: Stream, intake: Intake, format: str = AUTO) -> Layout:  # noqa: A002
    """Finds out how a file is laid out.

    Args:
        stream: the file; only its head is looked at.
        intake: the dim asked for; takes note of blank lines before the first row.
        format: "text" or "word2vec-binary" to refuse the other, "auto" for either.

    Returns:
        The layout.

    Raises:
        VectorFormatError: it is something else, by name; or its dim is another than was asked for.
    """
    if format not in FORMATS:
        raise VectorFormatError(f"`format` must be one of {', '.join(FORMATS)}. Received: {format!r}.")
    foreign = name_foreign(stream.head, BINARY)
    if foreign:
        raise _refusal(stream, foreign)
    start, num_lines = _skip_blank_lines(stream, intake)
    header = HEADER.match(stream.head, start)
    layout = _with_header(stream, intake, header, num_lines + 1, format) if header else None
    layout = layout or _without_header(stream, intake, start, num_lines)
    if format not in (AUTO, layout.format):
        raise VectorFormatError(
            f"{stream.path}: found {layout.format}; expected {format}, as asked for. Pass format={layout.format!r}."
        )
    intake.check_dim(layout.dim)
    return layout


def _skip_blank_lines(stream: Stream, intake: Intake) -> tuple[int, int]:
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


def _with_header(stream: Stream, intake: Intake, header: re.Match[bytes], line: int, format: str) -> Layout | None:  # noqa: A002
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
    if format == BINARY_FORMAT or _is_binary(rows):
        return Layout(BINARY_FORMAT, dim, header.end(), line, num_rows)
    raise _unknown(stream)


def _without_header(stream: Stream, intake: Intake, start: int, num_lines: int) -> Layout:
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


def _unknown(stream: Stream) -> VectorFormatError:
    foreign = name_foreign(stream.head.removeprefix(BOM), TEXT)
    if foreign:
        return _refusal(stream, foreign)
    first = stream.head.split(b"\n", 1)[0]
    return VectorFormatError(
        f"{stream.path}: found no rows of vectors; it starts with {first[:60]!r}. Expected lines of a word and its "
        "numbers, separated by single spaces or tabs, or word2vec binary. Convert it, or pass (words, matrix)."
    )


def _refusal(stream: Stream, foreign: Foreign) -> VectorFormatError:
    return VectorFormatError(
        f"{stream.path}: found {foreign.name}; expected text (GloVe, word2vec, fastText .vec) or word2vec binary. "
        f"{foreign.advice}"
    )
