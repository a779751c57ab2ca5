"""Words with their rows, in a matrix or a mapping, read in blocks or as a whole with shared rows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import aligned_empty
from splitembed.errors import VectorFormatError
from splitembed.vectors.layouts import LARGEST_DIM
from splitembed.vectors.pairs.rows import as_array, block_rows, take_rows
from splitembed.vectors.read_checks import ReadChecks, all_strings
from splitembed.vectors.word_vectors import Block, WordVectors


class Pair(NamedTuple):
    """Words, and the row of each.

    Args:
        name: the name of the source, for messages.
        words: strings; any object with a length that gives slices.
        rows: a matrix `(num_rows, dim)`, or a mapping word -> row.
        row_of: int64 `(num_words,)`, the row of each word in a matrix; None where word `i` has row `i`.
    """

    name: str
    words: Any
    rows: Any
    row_of: NDArray[np.int64] | None = None


def pair_blocks(pair: Pair, checks: ReadChecks) -> Iterator[Block]:
    """Yield the wanted words and their rows, block by block.

    Args:
        pair: the words and their rows.
        checks: the checks of words and rows.

    Yields:
        At least one block.

    Raises:
        VectorFormatError: a word is not a string, a row does not hold real numbers, or rows differ in length.
    """
    dim = _checked_dim(pair, checks)
    num_words = len(pair.words)
    checks.most_rows = num_words if checks.wanted is None else min(num_words, len(checks.wanted))
    for words, positions in _wanted_blocks(pair, dim, checks):
        yield checks.accept(words, _rows(pair, words, positions, dim, checks), positions)


def shared_vectors(pair: Pair, checks: ReadChecks) -> WordVectors:
    """Return the wanted words, and once each the rows that they share.

    Args:
        pair: words and a matrix, with `row_of`.
        checks: the checks of words and rows.

    Returns:
        The words, with `row_of` where some share a row.

    Raises:
        VectorFormatError: as for `pair_blocks`.
    """
    assert pair.row_of is not None
    dim = _checked_dim(pair, checks)
    words: list[str] = []
    chosen = [np.zeros(0, np.int64)]
    for some, positions in _wanted_blocks(pair, dim, checks):
        kept = checks.accept_words(some, positions)
        words += [some[index] for index in kept]
        chosen.append(pair.row_of[positions[np.asarray(kept, np.int64)]])
    used, first, row_of = np.unique(np.concatenate(chosen), return_index=True, return_inverse=True)
    matrix = aligned_empty((len(used), dim), np.float32)
    for start in range(0, len(used), block_rows(dim)):
        some_rows = used[start : start + block_rows(dim)]
        names = [words[index] for index in first[start : start + block_rows(dim)].tolist()]
        matrix[start : start + len(names)] = checks.finite(names, take_rows(pair.rows, some_rows), some_rows)
    row_of = row_of.reshape(-1).astype(np.int64, copy=False)
    is_plain = np.array_equal(row_of, np.arange(len(words)))
    return WordVectors(words, matrix, checks.source, row_of=None if is_plain else row_of)


def _checked_dim(pair: Pair, checks: ReadChecks) -> int:
    checks.unit = "row"
    dim = _dim(pair, checks)
    # The header of a file may give any dim, whatever the file holds.
    if dim > LARGEST_DIM:
        raise checks.error(0, f"a row of {dim} numbers", f"at most {LARGEST_DIM}", "The file is damaged: get it again.")
    checks.check_dim(dim)
    return dim


def _dim(pair: Pair, checks: ReadChecks) -> int:
    if not isinstance(pair.rows, Mapping):
        _check_numbers(pair.rows, 0, checks)
        return int(pair.rows.shape[1])
    if pair.words:
        return int(as_array(pair.rows[pair.words[0]]).size)
    if checks.dim is None:
        raise VectorFormatError(
            f"{pair.name}: found no row and no `dim`; expected rows of vectors. Pass some, or `dim`."
        )
    return checks.dim


def _wanted_blocks(pair: Pair, dim: int, checks: ReadChecks) -> Iterator[tuple[list[str], NDArray[np.int64]]]:
    """Yield the wanted words and their positions, block by block."""
    step, wanted = block_rows(dim), checks.wanted
    for start in range(0, max(len(pair.words), 1), step):
        words = _strings(pair.words[start : start + step], start, checks)
        if wanted is None:
            yield words, np.arange(start, start + len(words))
        else:
            chosen = [index for index, word in enumerate(words) if word in wanted]
            yield [words[index] for index in chosen], start + np.asarray(chosen, np.int64)


def _strings(words: Sequence[Any], start: int, checks: ReadChecks) -> list[str]:
    if not all_strings(words):
        position, word = next(
            (position, word) for position, word in enumerate(words, start) if not isinstance(word, str)
        )
        raise checks.error(
            position, f"{word!r} of type {type(word).__name__}", "a str", "Convert the words to strings."
        )
    return list(words)


def _rows(pair: Pair, words: list[str], positions: NDArray[np.int64], dim: int, checks: ReadChecks) -> NDArray[Any]:
    if isinstance(pair.rows, Mapping):
        return _stack_rows(pair.rows, words, positions, dim, checks)
    return take_rows(pair.rows, positions if pair.row_of is None else pair.row_of[positions])


def _stack_rows(
    rows: Mapping[str, Any], words: list[str], positions: NDArray[np.int64], dim: int, checks: ReadChecks
) -> NDArray[np.float64]:
    stacked = np.empty((len(words), dim))
    for index, word in enumerate(words):
        row = as_array(rows[word])
        # Conversion would bring the masked values back.
        if np.ma.isMaskedArray(row):
            raise checks.error(int(positions[index]), "a masked array", "numbers", "Pass row.filled(0).")
        _check_numbers(row, int(positions[index]), checks)
        if row.shape != (dim,):
            found = f"shape {row.shape} for {word!r}"
            raise checks.error(int(positions[index]), found, f"({dim},), as row 0 has it", "Fix or remove that row.")
        stacked[index] = row
    return stacked


def _check_numbers(row: Any, position: int, checks: ReadChecks) -> None:
    if row.dtype.kind not in "fiu" and row.dtype.name != "bfloat16":
        raise checks.error(position, f"dtype {row.dtype}", "real numbers", "Convert the rows with astype(float).")
