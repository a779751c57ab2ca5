"""Writers of GloVe text, word2vec text and word2vec binary.

    glove            word SP number SP ... number LF, once for each row
    word2vec         the same after a header "num_rows dim" LF
    word2vec-binary  the header, then for each row: word SP dim little-endian float32 LF

Sources of the formats: Pennington et al., GloVe (2014), `glove.c`; Mikolov et al., word2vec (2013), `word2vec.c`.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import SplitError, VectorFormatError, VocabularyError
from splitembed.tables.atomic_files import replacing
from splitembed.vectors.text.lines import MAX_WORD_BYTES

GLOVE, WORD2VEC, WORD2VEC_BINARY = "glove", "word2vec", "word2vec-binary"
FORMATS = (GLOVE, WORD2VEC, WORD2VEC_BINARY)

# Numbers written at once: some MB as text.
NUM_BLOCK_NUMBERS = 1 << 17
# The longest text of a float32, -9999999800000000.0, has 19 characters.
_NUMBER_TEXT = "S32"
# Characters at which some reader of these formats, in Python or C, ends a word.
_SEPARATORS = re.compile("[\0\t\n\v\f\r ]")

Rows = Callable[[NDArray[np.int64]], NDArray[np.float32]]


def write_vectors(
    path: str | os.PathLike[str],
    words: Sequence[str],
    rows: Rows,
    dim: int,
    format: str = GLOVE,  # noqa: A002
    *,
    skip_unwritable: bool = False,
) -> list[str]:
    """Write words and their rows, block by block.

    >>> import tempfile
    >>> from pathlib import Path
    >>> matrix = np.array([[0.1, -2.0], [1e-7, 0.5]], np.float32)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "vectors.txt"
    ...     left_out = write_vectors(path, ["the", "of"], matrix.__getitem__, dim=2, format="word2vec")
    ...     print(path.read_text())
    2 2
    the 0.1 -2.0
    of 1e-07 0.5

    Args:
        path: the file to write. An existing file is replaced in one step, after the whole file is written.
        words: the word of each row.
        rows: returns float32 `(num_indices, dim)` for int64 `(num_indices,)`, the indices of words.
        dim: length of a row.
        format: "glove", "word2vec" or "word2vec-binary".
        skip_unwritable: leave out words that the format cannot hold, instead of raising an error.

    Returns:
        The words that were left out.

    Raises:
        VocabularyError: the format cannot hold a word, or any of the words.
        SplitError: a row is not finite.
        VectorFormatError: an unknown `format`.
    """
    if format not in FORMATS:
        raise VectorFormatError(f"`format` must be one of {', '.join(FORMATS)}, projector. Received: {format!r}.")
    indices, unwritable = _sort_out(words, format)
    if unwritable and not skip_unwritable:
        raise _refusal(words, unwritable, format)
    if not len(indices):
        raise VocabularyError(f"None of {len(words)} words can be written to a {format} file; expected at least one.")
    encode = _binary_records if format == WORD2VEC_BINARY else _text_lines
    with replacing(path) as temporary, open(temporary, "wb") as stream:
        if format != GLOVE:
            stream.write(b"%d %d\n" % (len(indices), dim))
        for start in range(0, len(indices), max(NUM_BLOCK_NUMBERS // dim, 1)):
            chosen = indices[start : start + max(NUM_BLOCK_NUMBERS // dim, 1)]
            block = [words[index] for index in chosen.tolist()]
            stream.write(b"".join(encode([word.encode() for word in block], _finite(rows(chosen), block))))
    return [words[index] for index in unwritable]


def _sort_out(words: Sequence[str], format: str) -> tuple[NDArray[np.int64], dict[int, str]]:  # noqa: A002
    """Return the indices of the words that can be written, and the other words by index with the reason."""
    seen: set[str] = set()
    indices: list[int] = []
    unwritable: dict[int, str] = {}
    for index, word in enumerate(words):
        reason = _reason(word, seen, is_first=format == GLOVE and not indices)
        if reason:
            unwritable[index] = reason
        else:
            seen.add(word)
            indices.append(index)
    return np.asarray(indices, np.int64), unwritable


def _reason(word: str, seen: set[str], is_first: bool) -> str:
    """Return the reason why no reader would return a word; "" for a word that can be written."""
    if not word:
        return "is empty"
    if word in seen:
        return "is a duplicate, and readers keep only its first row"
    separator = _SEPARATORS.search(word)
    if separator:
        return f"holds {separator[0]!r}, at which readers end a word"
    if is_first and word.startswith("\ufeff"):
        return "starts the file with a byte order mark, which readers drop"
    try:
        size = len(word.encode())
    except UnicodeEncodeError:
        return "is not Unicode text: it holds a lone surrogate, as words do that were not UTF-8"
    return f"has {size} bytes, more than the {MAX_WORD_BYTES} of a word" if size > MAX_WORD_BYTES else ""


def _refusal(words: Sequence[str], unwritable: dict[int, str], format: str) -> VocabularyError:  # noqa: A002
    index, reason = next(iter(unwritable.items()))
    others = f", nor can {len(unwritable) - 1} others" if len(unwritable) > 1 else ""
    word = words[index] if len(words[index]) < 80 else words[index][:80] + "..."
    return VocabularyError(
        f"Word {index}, {word!r}, cannot be written to a {format} file{others}: it {reason}. "
        "Pass skip_unwritable=True to leave such words out."
    )


def _finite(rows: NDArray[np.float32], words: list[str]) -> NDArray[np.float32]:
    finite = np.isfinite(rows)
    if not finite.all():
        row = int((~finite).any(axis=1).argmax())
        value = rows[row, int(finite[row].argmin())]
        raise SplitError(
            f"The row of {words[row]!r} holds {value}, which readers refuse; expected finite numbers. Fix the row."
        )
    return rows


def _text_lines(words: list[bytes], rows: NDArray[np.float32]) -> Iterator[bytes]:
    for word, numbers in zip(words, number_texts(rows), strict=True):
        yield b"%b %b\n" % (word, b" ".join(numbers))


def number_texts(rows: NDArray[np.float32]) -> list[list[bytes]]:
    """Return each number of each row as the shortest decimal that float32 reads back as the same bits."""
    # A legacy style of printing would round them.
    with np.printoptions(legacy=False):
        texts: list[list[bytes]] = rows.astype(_NUMBER_TEXT).tolist()
    return texts


def _binary_records(words: list[bytes], rows: NDArray[np.float32]) -> Iterator[bytes]:
    records: NDArray[Any] = np.ascontiguousarray(rows, "<f4").view(f"V{4 * rows.shape[1]}")[:, 0]
    for word, record in zip(words, records.tolist(), strict=True):
        yield b"%b %b\n" % (word, record)
