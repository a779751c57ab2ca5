"""SplitTable against a dense matrix in NumPy."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed import SplitTable
from splitembed.errors import SplitError, TokenIdError, UnknownTokenError
from splitembed.split.table import remap_of

MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_combine_is_the_inverse_of_split(mask, dim, seed):
    matrix = np.random.default_rng(seed).normal(size=(len(mask), dim)).astype(np.float32)
    split = SplitTable.from_matrix(matrix, mask)
    assert split.combine().tobytes() == matrix.tobytes()
    assert (split.num_trainable, split.num_frozen) == (sum(mask), len(mask) - sum(mask))
    again = SplitTable.from_matrix(split.combine(), split.trainable_ids)
    for part in ("frozen", "trainable", "remap"):
        np.testing.assert_array_equal(getattr(again, part), getattr(split, part))


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_remap_numbers_rows_in_id_order(mask):
    expected, rows = [], [0, 0]
    for is_trainable in mask:
        expected.append(~rows[True] if is_trainable else rows[False])
        rows[is_trainable] += 1
    assert remap_of(np.array(mask)).tolist() == expected


def test_rows_can_be_named_by_tokens_ids_or_a_mask():
    for chosen in (["b", "d"], [1, 3], ["b", 3], [False, True, False, True], [3, 1, 1]):
        split = SplitTable.from_matrix(MATRIX, chosen, vocabulary=list("abcd"))
        assert split.trainable_ids.tolist() == [1, 3]
        assert split.ids(["d", 0]).tolist() == [3, 0]
    with pytest.raises(UnknownTokenError, match="'z'"):
        SplitTable.from_matrix(MATRIX, ["z"], vocabulary=list("abcd"))
    with pytest.raises(UnknownTokenError, match="no vocabulary"):
        SplitTable.from_matrix(MATRIX, ["a"])
    with pytest.raises(TokenIdError, match="4"):
        SplitTable.from_matrix(MATRIX, [4])


def test_one_dense_matrix_with_padding():
    split = SplitTable.from_matrix([[0.0], [1.0], [2.0]], [1], padding=0)
    assert split.padding == 0 and split.lookup([0]).tolist() == [[0.0]]
    with pytest.raises(SplitError, match="padding id 0 must be frozen and zero"):
        SplitTable.from_matrix([[0.0], [1.0]], [0], padding=0)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda split: pickle.loads(pickle.dumps(split))])
def test_copies_are_equal(duplicate):
    split = SplitTable.from_matrix(MATRIX, [1], vocabulary=list("abcd"))
    other = duplicate(split)
    assert other.combine().tolist() == MATRIX.tolist() and list(other.vocabulary) == list("abcd")


def test_one_token():
    assert SplitTable.from_matrix([[3.0]], []).lookup(0).tolist() == [3.0]
    assert SplitTable.from_matrix([[3.0]], [0]).lookup([[0]]).tolist() == [[[3.0]]]
