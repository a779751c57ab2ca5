"""A matrix, wherever it is: something with a shape that gives slices of its rows enters; rows by their places leave."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VectorFormatError

NUM_BLOCK_ROWS = 4096
NUM_BLOCK_NUMBERS = 1 << 20  # 4 MB as float32, however long a row is


class WeightedRows:
    """Each row times a number of its own, multiplied only when it is asked for.

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

    def __getitem__(self, places: slice) -> NDArray[Any]:
        weighted: NDArray[Any] = take_rows(self._rows, self._row_of[places]) * self._weights[places, None]
        return weighted


def block_rows(dim: int) -> int:
    """How many rows are read at once.

    >>> block_rows(300), block_rows(1 << 22)
    (3495, 1)
    """
    return max(1, min(NUM_BLOCK_ROWS, NUM_BLOCK_NUMBERS // max(dim, 1)))


def take_rows(rows: Any, places: NDArray[np.int64]) -> NDArray[Any]:
    """Gathers rows; of what is not in memory it reads the slice that holds them, or each alone where they lie apart.

    >>> take_rows(np.array([[1.0], [2.0], [3.0]]), np.array([2, 0, 2])).tolist()
    [[3.0], [1.0], [3.0]]

    Args:
        rows: `(num_rows, dim)`: an array, a memory map, or anything with `shape` and `dtype` that gives slices.
        places: int64 `(num_places,)`.

    Returns:
        `(num_places, dim)`, in the dtype of the rows.
    """
    if isinstance(rows, np.ndarray):
        return np.asarray(rows[places])
    if not len(places):
        return np.asarray(rows[0:0])
    low, high = int(places.min()), int(places.max()) + 1
    if high - low <= 2 * NUM_BLOCK_ROWS or high - low <= 2 * len(places):
        return np.asarray(rows[low:high])[places - low]
    distinct, inverse = np.unique(places, return_inverse=True)
    return np.concatenate([np.asarray(rows[place : place + 1]) for place in distinct.tolist()])[inverse.reshape(-1)]


def check_rows(name: str, num_words: int, matrix: Any) -> Any:
    """Refuses what is no matrix of one row for each word, and returns it as something that gives slices.

    >>> check_rows("by hand", 2, [[1, 2], [3, 4]]).shape
    (2, 2)

    Args:
        name: what messages call it.
        num_words: how many rows there must be.
        matrix: `(num_words, dim)`; an array, or anything that NumPy makes one of.

    Raises:
        VectorFormatError: it has another shape.
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
    try:
        return np.asanyarray(rows)  # a memory map stays one
    except ValueError:  # rows of different lengths
        return np.asarray(None)
