"""Read a matrix of numbers from text, one row a line, as `numpy.savetxt` and the Embedding Projector write it.

Spaces, tabs or commas separate the numbers. Lines that start with "#" and blank lines are skipped, as by
`numpy.loadtxt`.
"""

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VectorFormatError
from splitembed.vectors.decimals import NUMBER
from splitembed.vectors.streams import compressions
from splitembed.vectors.streams.opening import Stream
from splitembed.vectors.text.plain_lines import parse_plain_lines

BOM = b"\xef\xbb\xbf"

_SPACES = re.compile(rb"  +")
_TO_SPACE = bytes.maketrans(b"\t\r", b"  ")
_COMMENTS = re.compile(rb"(?m)^(#[^\n]*)?\n")
# Stands for the word that `parse_plain_lines` expects in each line.
_WORD = b"x "


def is_matrix(head: bytes) -> bool:
    r"""Return whether a file starts like a matrix of numbers: its first line, after comments, holds nothing else.

    >>> is_matrix(b"# rows\n0.1,0.2\n"), is_matrix(b"the 0.1 0.2\n")
    (True, False)
    """
    return all(map(NUMBER.fullmatch, _first_fields(head)))


def read_matrix(stream: Stream) -> NDArray[np.float32]:
    """Read all rows.

    Args:
        stream: the file, positioned at its first byte.

    Returns:
        float32 `(num_rows, dim)`, not checked for NaN and infinities.

    Raises:
        VectorFormatError: a line holds something other than numbers, or another number of them than the first one.
    """
    dim, line = len(_first_fields(stream.head)), 1
    blocks: list[NDArray[np.float32]] = []
    for chunk in _chunks(stream):
        rows = _parse(_spaced(chunk), dim)
        if rows is None:
            raise _error(stream.path, chunk, line, dim)
        blocks.append(rows)
        line += chunk.count(b"\n")
    return np.concatenate(blocks)


def _chunks(stream: Stream) -> Iterator[bytes]:
    """Read chunks of whole lines; the last one ends with an LF that the file may lack."""
    rest = b""
    while chunk := stream.reader.read(compressions.CHUNK_BYTES):
        lines, line_feed, rest = (rest + chunk).rpartition(b"\n")
        yield lines + line_feed
    yield rest + b"\n"


def _spaced(lines: bytes) -> bytes:
    """Return whole lines with one space between fields and none at either end, without comments and blank lines."""
    text = lines.removeprefix(BOM).translate(_TO_SPACE)
    if b"  " in text:
        text = _SPACES.sub(b" ", text)
    text = text.lstrip(b" ").replace(b" \n", b"\n").replace(b"\n ", b"\n")
    if b"#" in text or b"\n\n" in text or text.startswith(b"\n"):
        text = _COMMENTS.sub(b"", text)
    # An empty field between two commas stays empty.
    return text.replace(b", ", b",").replace(b" ,", b",").replace(b",", b" ") if b"," in text else text


def _parse(text: bytes, dim: int) -> NDArray[np.float32] | None:
    if not text:
        return np.zeros((0, dim), np.float32)
    plain = parse_plain_lines(_WORD + text[:-1].replace(b"\n", b"\n" + _WORD) + b"\n", dim)
    return None if plain is None else plain.rows


def _first_fields(head: bytes) -> list[bytes]:
    return _spaced(head + b"\n").split(b"\n", 1)[0].split(b" ")


def _error(path: str, chunk: bytes, line: int, dim: int) -> VectorFormatError:
    """Return the error for the first line of a chunk that is not a row."""
    lines = enumerate(chunk.split(b"\n"), line)
    number, raw = next((number, raw) for number, raw in lines if _parse(_spaced(raw + b"\n"), dim) is None)
    return VectorFormatError(
        f"{path}, line {number}: found {raw[:60]!r}; expected {dim} numbers, as in the first row. Fix or remove that "
        "line; pass a file that holds words as well without a list of words."
    )
