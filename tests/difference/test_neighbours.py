"""The nearest frozen tokens compared with all cosines at once."""

import numpy as np
import pytest

from splitembed import SplitTable
from splitembed.difference.neighbours import nearest_frozen


@pytest.mark.parametrize("count", [0, 3, 500])
def test_the_nearest_tokens_have_the_largest_cosines(count, monkeypatch):
    # Blocks of 7 rows.
    monkeypatch.setattr("splitembed.tables.fingerprints.BLOCK_BYTES", 4 * 8 * 7)
    generator = np.random.default_rng(0)
    matrix = generator.normal(size=(200, 8)).astype(np.float32)
    split = SplitTable.from_matrix(matrix, range(0, 200, 3))
    rows, without = matrix[[0, 1, 50]], np.array([-1, 1, 50])
    frozen = np.array([i for i in range(200) if i % 3])
    cosines = (rows @ matrix[frozen].T) / np.linalg.norm(rows, axis=1)[:, None] / np.linalg.norm(matrix[frozen], axis=1)
    cosines[without[:, None] == frozen] = -2
    expected = [frozen[np.argsort(-row)] for row in cosines]
    found = nearest_frozen(split, rows, count, without)
    for near, ids, own in zip(found, expected, without, strict=True):
        assert near == [i for i in ids if i != own][:count]


def test_zero_and_non_finite_rows_have_no_neighbours():
    frozen = [[1, 0], [0, 0], [np.nan, 1], [np.inf, 1], [2, 0], [0, 3], [0, 0]]
    split = SplitTable.from_arrays(frozen, range(7), np.empty((0, 2)), padding=6)
    rows = np.array([[3, 0], [0, 0], [np.nan, 0], [1e-30, 1e-30]], np.float32)
    assert nearest_frozen(split, rows, 3, np.full(4, -1)) == [[0, 4, 5], [], [], [0, 4, 5]]


def test_a_split_without_frozen_rows_has_no_neighbours():
    split = SplitTable.from_arrays(np.empty((0, 2)), [~0], [[1.0, 1.0]])
    assert nearest_frozen(split, split.trainable, 3, np.array([0])) == [[]]
