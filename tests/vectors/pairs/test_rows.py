"""Rows by their positions, of arrays, memory maps and objects that only give slices, against NumPy's indexing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.vectors.pairs import rows
from splitembed.vectors.pairs.rows import WeightedRows, block_rows, take_rows

MATRIX = np.arange(60_000, dtype=np.float32).reshape(20_000, 3)


class OnlySlices:
    """A stand-in for a dataset in a file, which counts the rows that are read."""

    def __init__(self, matrix):
        self.matrix, self.shape, self.dtype, self.num_read = matrix, matrix.shape, matrix.dtype, 0

    def __getitem__(self, positions):
        assert isinstance(positions, slice)
        self.num_read += len(self.matrix[positions])
        return self.matrix[positions]


@given(st.lists(st.integers(0, len(MATRIX) - 1), max_size=20))
def test_any_positions(positions):
    positions = np.asarray(positions, np.int64)
    assert np.array_equal(take_rows(OnlySlices(MATRIX), positions), MATRIX[positions])
    assert np.array_equal(take_rows(MATRIX, positions), MATRIX[positions])


def test_distant_rows_are_read_one_by_one_and_near_rows_at_once():
    few = OnlySlices(MATRIX)
    take_rows(few, np.array([0, 19_999, 0]))
    assert few.num_read == 2
    near = OnlySlices(MATRIX)
    take_rows(near, np.array([100, 103]))
    assert near.num_read == 4


def test_long_rows_are_read_in_small_blocks(monkeypatch):
    monkeypatch.setattr(rows, "NUM_BLOCK_NUMBERS", 100)
    assert [block_rows(dim) for dim in (1, 50, 100, 1000)] == [100, 2, 1, 1]


def test_weights_multiply_the_requested_rows():
    matrix, row_of, weights = np.ones((4, 2), np.float16), np.array([3, 0, 3]), np.array([1, 2, 0.5], np.float64)
    weighted = WeightedRows(matrix, row_of, weights)
    assert weighted.shape == (3, 2) and weighted.dtype == np.float64
    assert weighted[:].tolist() == [[1, 1], [2, 2], [0.5, 0.5]]
    assert weighted[2:2].shape == (0, 2)


@pytest.mark.parametrize("dim", [1, 3])
def test_no_positions_keep_the_dim(dim):
    assert take_rows(OnlySlices(np.zeros((5, dim))), np.zeros(0, np.int64)).shape == (0, dim)
