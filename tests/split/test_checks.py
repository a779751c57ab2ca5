"""Checks of the arguments of a split: what is kept without a copy, what is converted, and what is refused."""

import numpy as np
import pytest

from splitembed.errors import SplitError, TokenIdError
from splitembed.split.checks import (
    as_float32,
    checked_frozen,
    checked_lookup_ids,
    checked_padding,
    checked_trainable,
    checked_vocabulary,
    protected,
)
from splitembed.words import Words

ROWS = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("stored", "dtype", "kept"),
    [
        ("float32", None, True),
        ("float16", None, True),
        ("uint16", "bfloat16", True),
        ("uint16", None, False),
        ("int8", None, False),
        ("float64", None, False),
        (">f4", None, False),
    ],
)
def test_stored_rows_are_kept_and_plain_numbers_become_float32(stored, dtype, kept):
    rows = ROWS.astype(stored)
    found, scale = checked_frozen(rows, None, dtype)
    assert scale is None and (found is rows) == kept
    assert found.dtype == (rows.dtype if kept else np.float32)


def test_rows_with_a_scale_must_be_int8_with_one_factor_a_row():
    rows = ROWS.astype(np.int8)
    found, scale = checked_frozen(rows, [1.0, 2.0], "int8")
    assert found is rows and scale.tolist() == [1.0, 2.0] and not scale.flags.writeable
    for invalid in ((rows, None), (rows, [1.0]), (ROWS, [1.0, 2.0]), (rows[0], [1.0] * 3)):
        with pytest.raises(SplitError, match="must be int8 .* with one factor a row"):
            checked_frozen(*invalid, "int8")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8"])
def test_rows_of_another_dtype_than_named_are_refused(dtype):
    with pytest.raises(SplitError, match=f"'{dtype}'"):
        checked_frozen(ROWS, None, dtype)


def test_no_trainable_row_may_have_any_shape_of_no_numbers():
    for empty in ([], np.empty((0, 3))):
        assert checked_trainable(empty, 3).shape == (0, 3)
    with pytest.raises(SplitError, match=r"`trainable` must be a matrix.*shape \(0, 3, 3\)"):
        checked_trainable(np.empty((0, 3, 3)), 3)


def test_numbers_beyond_float32_are_refused_but_infinity_is_kept():
    assert as_float32("rows", [[np.inf, -np.inf]]).tolist() == [[np.inf, -np.inf]]
    with pytest.raises(SplitError, match="`rows` holds numbers beyond float32's range, such as .*1e"):
        as_float32("rows", [[1e39]])


def test_words_are_kept_undecoded():
    words = Words.from_list(["a"])
    assert checked_vocabulary(words, 1) is words and checked_vocabulary(None, 1) is None


def test_padding_must_be_an_id_in_range():
    remap = np.zeros(2, np.int32)
    assert checked_padding(np.int64(1), remap, np.zeros((1, 1))) == 1
    for padding in (2, -1):
        with pytest.raises(TokenIdError, match=f"Token id {padding} is out of range"):
            checked_padding(padding, remap, np.zeros((1, 1)))


def test_empty_ids_are_integers():
    assert checked_lookup_ids([], 1).dtype == np.int64
    with pytest.raises(SplitError, match="`ids` must be integers. Received: an array of dtype float64"):
        checked_lookup_ids([0.0], 1)


def test_only_memory_that_the_caller_can_write_to_is_copied():
    writable, read_only = np.zeros(2), np.zeros(2)
    read_only.flags.writeable = False
    assert not np.shares_memory(protected(writable, writable), writable)
    assert np.shares_memory(protected(read_only, read_only), read_only)
    assert np.shares_memory(protected(writable, [0, 0]), writable)
