"""Words and a matrix, both ready to be read in slices, or a dict: they enter as a `Pair`; blocks of rows leave."""

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
    """Words, and something that gives the row of each: a matrix `(num_rows, dim)`, or a mapping."""

    name: str  # for people
    words: Any  # strings; anything with a length that gives slices
    rows: Any
    row_of: NDArray[np.int64] | None = None  # (num_words,) where word i does not have row i of a matrix


def pair_blocks(pair: Pair, checks: ReadChecks) -> Iterator[Block]:
    """Reads rows block by block.

    Args:
        pair: the words and their rows.
        checks: what is wanted, and what becomes of doubts.

    Yields:
        At least one block.

    Raises:
        VectorFormatError: words that are no strings, rows that are no numbers or not all of one length.
    """
    dim = _checked_dim(pair, checks)
    num_words = len(pair.words)
    checks.most_rows = num_words if checks.wanted is None else min(num_words, len(checks.wanted))
    for words, places in _wanted_blocks(pair, dim, checks):
        yield checks.accept(words, _rows(pair, words, places, dim, checks), places)


def shared_vectors(pair: Pair, checks: ReadChecks) -> WordVectors:
    """Reads words that share rows: each row that one of them uses comes once.

    Args:
        pair: words and a matrix, with `row_of`.
        checks: what is wanted, and what becomes of doubts.

    Returns:
        The words, with `row_of` where some share a row.

    Raises:
        VectorFormatError: as for `pair_blocks`.
    """
    assert pair.row_of is not None
    dim = _checked_dim(pair, checks)
    words: list[str] = []
    chosen = [np.zeros(0, np.int64)]
    for some, places in _wanted_blocks(pair, dim, checks):
        kept = checks.accept_words(some, places)
        words += [some[index] for index in kept]
        chosen.append(pair.row_of[places[np.asarray(kept, np.int64)]])
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
    if dim > LARGEST_DIM:  # a file may say so and hold nothing
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
    """The wanted words and their places, block by block."""
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
        place, word = next((place, word) for place, word in enumerate(words, start) if not isinstance(word, str))
        raise checks.error(place, f"{word!r} of type {type(word).__name__}", "a str", "Turn the words into strings.")
    return list(words)


def _rows(pair: Pair, words: list[str], places: NDArray[np.int64], dim: int, checks: ReadChecks) -> NDArray[Any]:
    if isinstance(pair.rows, Mapping):
        return _stack_rows(pair.rows, words, places, dim, checks)
    return take_rows(pair.rows, places if pair.row_of is None else pair.row_of[places])


def _stack_rows(
    rows: Mapping[str, Any], words: list[str], places: NDArray[np.int64], dim: int, checks: ReadChecks
) -> NDArray[np.float64]:
    stacked = np.empty((len(words), dim))
    for index, word in enumerate(words):
        row = as_array(rows[word])
        if np.ma.isMaskedArray(row):  # what it masks would come back
            raise checks.error(int(places[index]), "a masked array", "numbers", "Pass row.filled(0).")
        _check_numbers(row, int(places[index]), checks)
        if row.shape != (dim,):
            found = f"shape {row.shape} for {word!r}"
            raise checks.error(int(places[index]), found, f"({dim},), as row 0 has it", "Mend or drop that row.")
        stacked[index] = row
    return stacked


def _check_numbers(row: Any, place: int, checks: ReadChecks) -> None:
    if row.dtype.kind not in "fiu" and row.dtype.name != "bfloat16":
        raise checks.error(place, f"dtype {row.dtype}", "real numbers", "Convert the rows with astype(float).")
