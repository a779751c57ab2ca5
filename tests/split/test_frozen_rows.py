"""The frozen rows of a new split: shared, copied in full, copied in part, with kept rows and with padding."""

import numpy as np
import pytest

from splitembed import SplitTable
from splitembed.arrays import NO_ROW
from splitembed.errors import SplitError
from splitembed.split.frozen_rows import own_rows, rows_of_vectors, stack_rows, without_unused, zero_row_of
from splitembed.tables import FrozenTable, fingerprints
from splitembed.vectors import WordVectors

ROWS = np.array([[1, 1], [2, 2], [3, 3], [0, 0]], np.float32)
VECTORS = WordVectors(["a", "b", "c", "d"], ROWS)
NO_IDS = np.empty(0, np.int64)


def empty_remap(num_tokens):
    return np.full(num_tokens, NO_ROW, np.int32)


def test_rows_are_stacked_in_blocks(monkeypatch):
    monkeypatch.setattr(fingerprints, "BLOCK_BYTES", 16)
    numbers = np.array([3, 0, 0, 2, 1])
    stacked = stack_rows(2, np.float32, (ROWS.__getitem__, numbers), (VECTORS.take, numbers[:1]), num_zero=2)
    np.testing.assert_array_equal(stacked, np.concatenate([ROWS[numbers], ROWS[[3]], np.zeros((2, 2))]))


def test_vectors_that_are_used_in_full_are_not_copied():
    remap = empty_remap(4)
    parts = rows_of_vectors(remap, np.array([3, 2, 1, 0]), VECTORS, NO_IDS)
    assert parts["frozen"] is VECTORS.matrix and remap.tolist() == [3, 2, 1, 0]


def test_only_used_rows_are_copied_with_a_zero_row_for_padding():
    remap = empty_remap(4)
    parts = rows_of_vectors(remap, np.array([NO_ROW, 2, 0, 2]), VECTORS, np.array([0]))
    assert parts["frozen"].tolist() == [[1, 1], [3, 3], [0, 0]] and remap.tolist() == [2, 1, 0, 1]


@pytest.mark.parametrize("zero_row", [3, None])
def test_a_table_is_shared_and_needs_a_zero_row_for_padding(zero_row):
    table = FrozenTable(ROWS, "sha256:one", zero_row=zero_row)
    vectors, remap = WordVectors(["a", "b", "c", ""], None, "table.h5", table), empty_remap(2)
    parts = rows_of_vectors(remap, np.array([NO_ROW, 1]), vectors, NO_IDS)
    assert parts["frozen"] is ROWS and parts["table"] is table and remap.tolist() == [NO_ROW, 1]
    if zero_row is None:
        with pytest.raises(SplitError, match=r"table.h5 has no zero row for the padding id.*padding=None"):
            rows_of_vectors(remap, np.array([NO_ROW, 1]), vectors, np.array([0]))
    else:
        rows_of_vectors(remap, np.array([NO_ROW, 1]), vectors, np.array([0]))
        assert remap.tolist() == [zero_row_of(vectors), 1]


def test_a_table_is_copied_where_ids_keep_their_old_row():
    split = SplitTable.from_arrays([[7.0, 7.0], [8.0, 8.0]], [1, 0, 1, 0], [])
    vectors, remap = WordVectors(["a", "b", "c", "d"], None, "", FrozenTable(ROWS, "sha256:one")), empty_remap(4)
    words = np.array([NO_ROW, 1, NO_ROW, NO_ROW])
    parts = rows_of_vectors(remap, words, vectors, NO_IDS, split=split, kept=np.array([0, 2, 3]))
    assert "table" not in parts
    np.testing.assert_array_equal(parts["frozen"][remap], [[8, 8], [2, 2], [8, 8], [7, 7]])
    assert len(parts["frozen"]) == 3


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_added_rows_follow_the_used_ones_in_their_precision(dtype):
    split = SplitTable.from_arrays(ROWS, [0, 2, 2, 3], []).with_frozen_dtype(dtype)
    added = SplitTable.from_arrays(ROWS[1:2], [0], []).with_frozen_dtype(dtype)
    parts = own_rows(split, np.array([2, 0, split.num_frozen, 2], np.int32), (added.frozen, added.scale))
    assert parts["frozen"].dtype == split.frozen.dtype and len(parts["frozen"]) == 3
    np.testing.assert_array_equal(split.with_parts(**parts).combine(), ROWS[[2, 0, 1, 2]])


def test_trainable_rows_in_use_are_not_copied():
    rows = np.ones((2, 1), np.float32)
    assert without_unused(np.array([~1, ~0, 5], np.int32), rows)[1] is rows
