"""Compute means of rows of a fastText model, from a mapped file or from a stream.

Sums are float32 as in fastText. From a mapped file rows are added in fastText's order; from a stream they are added in
the order of the file, so that the last bit may differ.
"""

import mmap
from collections.abc import Iterable
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from splitembed.vectors.fasttext.cursor import Cursor
from splitembed.vectors.fasttext.header import FLOAT_BYTES
from splitembed.vectors.fasttext.ngrams import Runs

Rows = NDArray[np.float32]

# Of rows at once, which fit the processor's cache.
PIECE_BYTES = 1 << 20
# Passes over the words of a block that have several of its rows.
_MOST_PASSES = 16
# Passes over all words, one for each row of the longest run: a word of 1 MB has millions of rows.
_MOST_STEPS = 1000
_WORD_BITS = np.uint64(32)


def map_rows(file: BinaryIO, position: int, num_rows: int, dim: int) -> NDArray[np.void]:
    """Map the rows of a plain file, aligned or not: `(num_rows,)`, each of `dim` little-endian float32.

    The caller checks that the file is long enough. The system reads ahead: with MADV_RANDOM, which prevents that, it
    took 6 times as long from a disk for a vocabulary of 50,000 words, and half as long only for one of 100.
    """
    if not num_rows:
        return np.zeros(0, f"V{dim * FLOAT_BYTES}")
    start = position - position % mmap.ALLOCATIONGRANULARITY
    row_bytes = dim * FLOAT_BYTES
    memory = mmap.mmap(file.fileno(), position - start + num_rows * row_bytes, access=mmap.ACCESS_READ, offset=start)
    return np.frombuffer(memory, f"V{row_bytes}", num_rows, position - start)


def mean_mapped(rows: NDArray[np.void], runs: Runs, dim: int) -> Rows:
    """Compute the means of runs of mapped rows; zeros for an empty run.

    >>> rows = np.array([[1, 2], [3, 4]], "<f4").view("V8")[:, 0]
    >>> mean_mapped(rows, Runs(np.array([0, 1, 1]), np.array([2, 0, 1])), 2).tolist()
    [[2.0, 3.0], [0.0, 0.0], [3.0, 4.0]]

    Returns:
        `(num_words, dim)`.
    """
    # The longest run first, so that the runs with more rows to add are always the first ones.
    order = np.argsort(-runs.counts, kind="stable")
    counts = runs.counts[order]
    starts = (np.cumsum(runs.counts) - runs.counts)[order]
    sums = np.zeros((len(order), dim), np.float32)
    # The checks report values that are not finite.
    with np.errstate(over="ignore", invalid="ignore"):
        for index in range(min(int(counts[0]), _MOST_STEPS) if len(counts) else 0):
            num_longer = int(np.searchsorted(-counts, -index, side="left"))
            sums[:num_longer] += _as_floats(rows[runs.rows[starts[:num_longer] + index]], dim)
        for word in np.flatnonzero(counts > _MOST_STEPS).tolist():
            rest = runs.rows[starts[word] + _MOST_STEPS : starts[word] + counts[word]]
            at_once = max(1, PIECE_BYTES // (dim * FLOAT_BYTES))
            for first in range(0, len(rest), at_once):
                sums[word] += _as_floats(rows[rest[first : first + at_once]], dim).sum(axis=0)
        _divide(sums, counts)
    means = np.empty_like(sums)
    means[order] = sums
    return means


def mean_streamed(cursor: Cursor, num_rows: int, pieces: Iterable[Runs], dim: int) -> Rows:
    """Compute the means of runs of streamed rows. The cursor moves from the first row to the end of the last one.

    Args:
        cursor: positioned at the first row.
        num_rows: number of rows.
        pieces: the runs, of some words at once.
        dim: length of a row.

    Returns:
        `(num_words, dim)`.

    Raises:
        VectorFormatError: the file ends before the last row.
    """
    occurrences, counts = _by_row(pieces)
    at_once = max(1, PIECE_BYTES // (dim * FLOAT_BYTES))
    sums, done = np.zeros((0, dim), np.float32), 0
    for first in range(0, num_rows, at_once):
        num = min(at_once, num_rows - first)
        block = np.frombuffer(cursor.take(num * dim * FLOAT_BYTES, "the input matrix"), "<f4").reshape(num, dim)
        # Not before the first rows are read, so that a damaged header allocates nothing.
        if not first:
            sums = np.zeros((len(counts), dim), np.float32)
        end = int(np.searchsorted(occurrences, np.uint64(first + num) << _WORD_BITS))
        _add(sums, block, first, occurrences[done:end], at_once)
        done = end
    with np.errstate(over="ignore", invalid="ignore"):
        _divide(sums, counts)
    return sums


def _by_row(pieces: Iterable[Runs]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the sorted pairs of row and run, each in one integer with the run in the low bits, and the run lengths."""
    packed, counts, num_words = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)], 0
    for runs in pieces:
        words = np.arange(num_words, num_words + len(runs.counts), dtype=np.uint64)
        packed.append(runs.rows.astype(np.uint64) << _WORD_BITS | np.repeat(words, runs.counts))
        counts.append(runs.counts)
        num_words += len(words)
    occurrences = np.concatenate(packed)
    packed.clear()
    occurrences.sort()
    return occurrences, np.concatenate(counts)


def _add(sums: Rows, block: Rows, first: int, occurrences: NDArray[np.uint64], at_once: int) -> None:
    """Add the rows of a block to the sums of the words in which they occur."""
    for start in range(0, len(occurrences), at_once):
        piece = occurrences[start : start + at_once]
        words, rows = (piece & np.uint64(0xFFFFFFFF)).astype(np.int64), (piece >> _WORD_BITS).astype(np.int64) - first
        order = np.argsort(words, kind="stable")
        words, rows = words[order], rows[order]
        is_first = np.diff(words, prepend=-1) != 0
        # Usually one pass: a word seldom has two rows in one block.
        for _ in range(_MOST_PASSES):
            if not len(words):
                break
            with np.errstate(over="ignore", invalid="ignore"):
                sums[words[is_first]] += block[rows[is_first]]
            words, rows = words[~is_first], rows[~is_first]
            is_first = np.diff(words, prepend=-1) != 0
        # A pass for each occurrence would be quadratic where all n-grams of a long word share a row.
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.at(sums, words, block[rows])


def _as_floats(rows: NDArray[np.void], dim: int) -> Rows:
    floats: Rows = rows.view("<f4").reshape(len(rows), dim)
    return floats


def _divide(sums: Rows, counts: NDArray[np.int64]) -> None:
    """Divide by the number of rows as fastText does: multiply by the reciprocal in float32."""
    sums *= (1.0 / np.maximum(counts, 1)).astype(np.float32)[:, np.newaxis]
