"""Vectors that are in memory already: a dict, (words, matrix) or gensim's KeyedVectors enters, blocks leave."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VectorFormatError
from splitembed.vectors.blocks import Block, WordVectors
from splitembed.vectors.intake import Intake, all_strings

NUM_BLOCK_ROWS = 4096


class Pair(NamedTuple):
    """Words, and something that gives the row of each: a matrix `(num_words, dim)`, or a mapping."""

    name: str  # for people
    words: Sequence[Any]
    rows: Any


def as_pair(source: Any) -> Pair | None:
    """Recognises vectors in memory; None for anything else.

    >>> as_pair({"the": [1.0, 2.0]})
    Pair(name='dict', words=['the'], rows={'the': [1.0, 2.0]})
    >>> as_pair(["the"]) is None
    True

    Args:
        source: a mapping word -> row, a tuple or list (words, matrix), `WordVectors`, or an object with `index_to_key`
            and `vectors`, as gensim's KeyedVectors has them.

    Raises:
        VectorFormatError: words and matrix do not belong together; a gensim model in place of its vectors.
    """
    if isinstance(source, Mapping):
        return Pair(type(source).__name__, list(source), source)
    if isinstance(source, WordVectors):
        return Pair(source.source, source.words, source.vectors)
    if hasattr(source, "index_to_key") and hasattr(source, "vectors"):
        return _matched(type(source).__name__, source.index_to_key, source.vectors)
    if isinstance(source, (tuple, list)) and len(source) == 2:
        return _matched("(words, matrix)", *source)
    if hasattr(source, "wv"):
        raise VectorFormatError(f"Found a whole model, {type(source).__name__}; expected its vectors. Pass model.wv.")
    return None


def _matched(name: str, words: Any, matrix: Any) -> Pair:
    listed = [words] if isinstance(words, (str, bytes)) else words if isinstance(words, Sequence) else list(words)
    array = _as_array(matrix)
    if array.ndim != 2 or len(listed) != len(array):
        raise VectorFormatError(
            f"{name}: found {len(listed)} words and rows of shape {array.shape}; expected (num_words, dim). "
            "Pass one row for each word."
        )
    return Pair(name, listed, array)


def pair_blocks(pair: Pair, intake: Intake) -> Iterator[Block]:
    """Reads rows from memory.

    Args:
        pair: the words and their rows.
        intake: what is wanted, and what becomes of doubts.

    Yields:
        At least one block.

    Raises:
        VectorFormatError: words that are no strings, rows that are no numbers or not all of one length.
    """
    intake.unit = "row"
    dim = _dim(pair, intake)
    intake.check_dim(dim)
    num_words = len(pair.words)
    intake.most_rows = num_words if intake.wanted is None else min(num_words, len(intake.wanted))
    for start in range(0, max(num_words, 1), NUM_BLOCK_ROWS):
        words, places = _wanted(pair.words[start : start + NUM_BLOCK_ROWS], start, intake)
        rows = _stack_rows(pair.rows, words, places, dim, intake) if _is_mapping(pair) else pair.rows[places]
        yield intake.admit(words, np.asarray(rows), places)


def _is_mapping(pair: Pair) -> bool:
    return isinstance(pair.rows, Mapping)


def _dim(pair: Pair, intake: Intake) -> int:
    if not _is_mapping(pair):
        _check_numbers(pair.rows, 0, intake)
        return int(pair.rows.shape[1])
    if pair.words:
        return _as_array(pair.rows[pair.words[0]]).size
    if intake.dim is None:
        raise VectorFormatError(
            f"{pair.name}: found no row and no `dim`; expected rows of vectors. Pass some, or `dim`."
        )
    return intake.dim


def _wanted(words: Sequence[Any], start: int, intake: Intake) -> tuple[list[str], list[int]]:
    """The wanted words of some that begin at a place, and their places."""
    if not all_strings(words):
        place, word = next((place, word) for place, word in enumerate(words, start) if not isinstance(word, str))
        raise intake.error(place, f"{word!r} of type {type(word).__name__}", "a str", "Turn the words into strings.")
    if intake.wanted is None:
        return list(words), list(range(start, start + len(words)))
    wanted = intake.wanted
    places = [place for place, word in enumerate(words, start) if word in wanted]
    return [words[place - start] for place in places], places


def _stack_rows(
    rows: Mapping[str, Any], words: list[str], places: list[int], dim: int, intake: Intake
) -> NDArray[np.float64]:
    stacked = np.empty((len(words), dim))
    for index, word in enumerate(words):
        row = _as_array(rows[word])
        _check_numbers(row, places[index], intake)
        if row.shape != (dim,):
            found = f"shape {row.shape} for {word!r}"
            raise intake.error(places[index], found, f"({dim},), as row 0 has it", "Mend or drop that row.")
        stacked[index] = row
    return stacked


def _check_numbers(row: NDArray[Any], place: int, intake: Intake) -> None:
    if row.dtype.kind not in "fiu":
        raise intake.error(place, f"dtype {row.dtype}", "real numbers", "Convert the rows with astype(float).")


def _as_array(rows: Any) -> NDArray[Any]:
    try:
        return np.asanyarray(rows)  # a memory map stays one
    except ValueError:  # rows of different lengths
        return np.asarray(None)
