"""Splits with a frozen table in id order, and their trainable rows."""

import numpy as np
import pytest
from hypothesis import given

from splitembed.split import id_order
from splitembed.split.id_order import order_of, unused_rows_are_finite
from splitembed.split.table import SplitTable
from tests.helpers.strategies import splits


def make(num_frozen: int, remap: list[int], num_trainable: int = 3) -> SplitTable:
    return SplitTable.from_arrays(np.ones((num_frozen, 2)), remap, np.ones((num_trainable, 2)))


@pytest.mark.parametrize(
    ("remap", "chosen", "rows", "in_row_order"),
    [
        ([0, 1, 2], [], [], False),
        ([0, ~0, 2, ~1, ~2], [1], [0, 1, 2], True),
        ([0, ~2, 2, ~1, ~0], [1], [2, 1, 0], False),
        ([~1, ~1, ~0], [0, 1, 2], [1, 1, 0], False),
        ([0, 1, 2, ~0, ~0], [], [0, 0], False),
    ],
)
def test_trainable_rows_of_a_table_in_id_order(remap, chosen, rows, in_row_order):
    order = order_of(make(3, remap))
    assert (order.chosen.tolist(), order.rows.tolist()) == (chosen, rows)
    assert (order.num_chosen, order.num_new) == (len(chosen), len(rows) - len(chosen))
    assert order.in_row_order == in_row_order


@pytest.mark.parametrize(
    "split",
    [
        make(3, [1, 0, 2]),
        make(3, [0, 1, 1]),
        make(3, [0, 1]),
        make(3, [0, 1, 2, 0]),
        make(0, [~0, ~1]),
    ],
    ids=["another order", "a shared row", "a row of no token", "a frozen row again", "no frozen row"],
)
def test_other_orders_return_none(split):
    assert order_of(split) is None


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_rows_without_a_token_are_checked_block_by_block(dtype, monkeypatch):
    monkeypatch.setattr(id_order, "_BLOCK", 2)
    frozen = np.ones((3, 2), np.float32)
    frozen[1, 0] = 1 if dtype == "int8" else np.inf
    stored = SplitTable.from_arrays(frozen, [2, 1, 0], np.zeros((0, 2))).with_frozen_dtype(dtype)
    assert unused_rows_are_finite(stored)
    assert unused_rows_are_finite(stored.thaw([0, 2]))
    assert unused_rows_are_finite(stored.thaw([0, 1])) == (dtype == "int8")


@given(splits())
def test_an_order_is_that_of_the_ids(split):
    order = order_of(split)
    own = np.arange(split.num_tokens)
    beyond = own >= split.num_frozen
    in_order = 0 < split.num_frozen <= split.num_tokens and np.where(beyond, split.remap < 0, True).all()
    in_order = in_order and ((split.remap == own) | (split.remap < 0)).all()
    assert (order is not None) == in_order
    if order is not None:
        np.testing.assert_array_equal(order.chosen, split.trainable_ids[split.trainable_ids < split.num_frozen])
        np.testing.assert_array_equal(order.rows, ~split.remap[split.trainable_ids])
