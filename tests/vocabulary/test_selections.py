"""Selections: tokens, ids, both mixed and masks select the same rows; invalid selections are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import SplitError, TokenIdError, UnknownTokenError
from splitembed.vocabulary import out_of_range, resolve_ids

INTEGERS = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64]


@given(st.lists(st.integers(0, 9)), st.sampled_from([list, tuple, iter, *INTEGERS]))
def test_ids_of_any_kind(ids, kind):
    selection = np.array(ids, kind) if kind in INTEGERS else kind(ids)
    result = resolve_ids(selection, 10)
    assert result.dtype == np.int64
    assert result.tolist() == ids


@given(st.lists(st.integers(0, 9)))
def test_tokens_ids_and_masks_select_the_same_rows(ids):
    index = {str(token_id): token_id for token_id in range(10)}
    mixed = [str(token_id) if index % 2 else token_id for index, token_id in enumerate(ids)]
    mask = np.isin(np.arange(10), ids)
    assert resolve_ids(mixed, 10, index).tolist() == ids
    assert resolve_ids([str(token_id) for token_id in ids], 10, index).tolist() == ids
    assert resolve_ids(np.array([str(token_id) for token_id in ids], object), 10, index).tolist() == ids
    assert resolve_ids(mask, 10).tolist() == resolve_ids(mask.tolist(), 10).tolist() == sorted(set(ids))
    assert resolve_ids(set(mixed), 10, index).tolist() == sorted(resolve_ids(list(set(mixed)), 10, index))


@pytest.mark.parametrize("selection", ["usr", ["usr"], 3, np.int32(3), [np.int64(3)], {"usr"}, np.array(["usr"])])
def test_one_row(selection):
    assert resolve_ids(selection, 4, {"usr": 3}).tolist() == [3]


@pytest.mark.parametrize("selection", [[], (), set(), np.array([]), np.array([], np.int32), np.zeros(4, bool)])
def test_no_rows(selection):
    result = resolve_ids(selection, 4)
    assert (result.shape, result.dtype) == ((0,), np.int64)


def test_index_is_not_made_for_ids():
    def index():
        raise AssertionError("index was called")

    assert resolve_ids([0, 1], 2, index).tolist() == [0, 1]
    with pytest.raises(AssertionError, match="index was called"):
        resolve_ids([0, "a"], 2, index)


@pytest.mark.parametrize(
    "selection",
    [4, [0, 4], np.array([1, 4]), np.array([4], np.uint8), ["a", 4], {0, 4}],
)
def test_I1_the_error_names_the_id_and_the_number_of_tokens(selection):
    with pytest.raises(
        TokenIdError, match=r"^Token id 4 is out of range: there are 4 tokens, so ids run from 0 to 3\.$"
    ):
        resolve_ids(selection, 4, {"a": 0})
    assert issubclass(TokenIdError, IndexError)


@pytest.mark.parametrize("token_id", [-1, 2**32 + 5, 2**63, 2**64 - 1, 2**70])
def test_ids_are_checked_before_the_cast_to_int64(token_id):
    arrays = [np.array([token_id], np.uint64)] if 0 <= token_id < 2**64 else []
    for selection in ([0, token_id], *arrays):
        with pytest.raises(TokenIdError, match=out_of_range(token_id, 10)):
            resolve_ids(selection, 10)


def test_narrow_ids_of_a_larger_vocabulary():
    assert resolve_ids(np.array([0, 255], np.uint8), 300).tolist() == [0, 255]
    assert resolve_ids(np.array([127], np.int8), 2**40).tolist() == [127]


@pytest.mark.parametrize(
    ("selection", "error", "message"),
    [
        (["a", "zzz"], UnknownTokenError, "Token 'zzz' is not among the 3 tokens of the vocabulary"),
        ([1, "zzz"], UnknownTokenError, "Token 'zzz' is not"),
        ([True, False], SplitError, "a mask has one value for each of the 3 tokens. Received: shape .2,., bool"),
        (np.ones(4, bool), SplitError, "Received: shape .4,., bool"),
        (np.ones((3, 1), bool), SplitError, "one-dimensional"),
        (np.array([[0]]), SplitError, "one-dimensional"),
        (np.array([["a"]]), SplitError, "one-dimensional"),
        ([0, True], SplitError, "Received: True of type bool"),
        (True, SplitError, "Received: True of type bool"),
        ([1.0], SplitError, "Received: 1.0 of type float"),
        (np.array([1.5]), SplitError, "1.5"),
        (2.0, SplitError, "Received: 2.0 of type float"),
        (None, SplitError, "Received: None of type NoneType"),
        (b"a", SplitError, "Received: b'a' of type bytes"),
        ([b"a"], SplitError, "Received: b'a' of type bytes"),
    ],
)
def test_refused_selections(selection, error, message):
    with pytest.raises(error, match=message):
        resolve_ids(selection, 3, {"a": 0, "b": 1, "c": 2})


def test_tokens_without_a_vocabulary_are_refused():
    with pytest.raises(UnknownTokenError, match="Token 'a' cannot be looked up, because there is no vocabulary"):
        resolve_ids([0, "a"], 3)
