"""Rows of a matrix: an array, a memory map, or any other object with a shape that gives slices of its rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VectorFormatError

NUM_BLOCK_ROWS = 4096
# 4 MB as float32, however long a row is.
NUM_BLOCK_NUMBERS = 1 << 20


class WeightedRows:
    """Rows of words, each multiplied by the weight of its word when it is read.

    >>> matrix = np.array([[1, 2], [3, 4]], np.float32)
    >>> rows = WeightedRows(matrix, np.array([1, 0, 1]), np.array([1.0, 10.0, 0.5]))
    >>> rows.shape, rows[1:3].tolist()
    ((3, 2), [[10.0, 20.0], [1.5, 2.0]])

    Args:
        rows: the matrix.
        row_of: int64 `(num_words,)`, the row of each word.
        weights: float `(num_words,)`.
    """

    def __init__(self, rows: Any, row_of: NDArray[np.int64], weights: NDArray[Any]) -> None:
        self._rows, self._row_of, self._weights = rows, row_of, weights
        self.shape = (len(row_of), int(rows.shape[1]))
        self.dtype = np.result_type(rows.dtype, weights.dtype)

    def __getitem__(self, positions: slice) -> NDArray[Any]:
        weighted: NDArray[Any] = take_rows(self._rows, self._row_of[positions]) * self._weights[positions, None]
        return weighted


def block_rows(dim: int) -> int:
    """Return the number of rows to read at once.

    >>> block_rows(300), block_rows(1 << 22)
    (3495, 1)
    """
    return max(1, min(NUM_BLOCK_ROWS, NUM_BLOCK_NUMBERS // max(dim, 1)))


def take_rows(rows: Any, positions: NDArray[np.int64]) -> NDArray[Any]:
    """Return rows. From a file, read the slice that holds them all, or single rows if they are far apart.

    >>> take_rows(np.array([[1.0], [2.0], [3.0]]), np.array([2, 0, 2])).tolist()
    [[3.0], [1.0], [3.0]]

    Args:
        rows: `(num_rows, dim)`: an array, a memory map, or any object with `shape` and `dtype` that gives slices.
        positions: int64 `(num_positions,)`.

    Returns:
        `(num_positions, dim)`, in the dtype of the rows.
    """
    if isinstance(rows, np.ndarray):
        return np.asarray(rows[positions])
    if not len(positions):
        return np.asarray(rows[0:0])
    low, high = int(positions.min()), int(positions.max()) + 1
    if high - low <= 2 * NUM_BLOCK_ROWS or high - low <= 2 * len(positions):
        return np.asarray(rows[low:high])[positions - low]
    distinct, inverse = np.unique(positions, return_inverse=True)
    return np.concatenate([np.asarray(rows[position : position + 1]) for position in distinct.tolist()])[
        inverse.reshape(-1)
    ]


def check_rows(name: str, num_words: int, matrix: Any) -> Any:
    """Return a matrix as an object that gives slices, after a check that it has one row for each word.

    >>> check_rows("by hand", 2, [[1, 2], [3, 4]]).shape
    (2, 2)

    Args:
        name: the name of the source, for messages.
        num_words: the number of words.
        matrix: `(num_words, dim)`: an array, or an object that NumPy converts to one.

    Raises:
        VectorFormatError: the matrix has another shape, is sparse or masked.
    """
    if hasattr(matrix, "toarray") or np.ma.isMaskedArray(matrix):
        kind, advice = ("sparse matrix", "toarray()") if hasattr(matrix, "toarray") else ("masked array", "filled(0)")
        raise VectorFormatError(f"{name}: found a {kind}; expected a dense one. Pass matrix.{advice}.")
    is_lazy = all(hasattr(matrix, name) for name in ("shape", "dtype", "__getitem__")) and isinstance(
        matrix.dtype, np.dtype
    )
    array = matrix if is_lazy else as_array(matrix)
    if len(array.shape) != 2 or num_words != array.shape[0]:
        raise VectorFormatError(
            f"{name}: found {num_words} words and rows of shape {tuple(array.shape)}; expected (num_words, dim). "
            "Pass one row for each word."
        )
    return array


def as_array(rows: Any) -> NDArray[Any]:
    """Return rows as an array; an array without a shape if they differ in length."""
    try:
        # A memory map stays a memory map.
        return np.asanyarray(rows)
    # Rows of different lengths.
    except ValueError:
        return np.asarray(None)
