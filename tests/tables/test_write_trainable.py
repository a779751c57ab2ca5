"""Writing trainable tables: compressed remaps, and a second table for logits."""

import dataclasses
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitembed.errors import SplitError, TableFormatError
from splitembed.tables import (
    TrainableTable,
    fingerprint_remap,
    fingerprint_rows,
    open_pair,
    open_trainable,
    write_frozen,
    write_trainable,
)
from tests.helpers.bits import same_bits
from tests.helpers.odd_words import float32_rows
from tests.helpers.table_heads import attribute, remove, replace_array, rewrite_head

FROZEN, OTHER = "sha256:" + "0" * 64, "sha256:" + "1" * 64
ROWS = np.array([[0.5, 1.5], [2.5, 3.5]], np.float32)


def of_a_base(num_tokens, num_new=0, num_thawed=0):
    """Return the remap of a base table in id order with some thawed rows and new tokens at its end."""
    remap = np.arange(num_tokens + num_new, dtype=np.int32)
    thawed = np.random.default_rng(0).choice(num_tokens, num_thawed, replace=False)
    remap[np.concatenate([thawed, np.arange(num_tokens, num_tokens + num_new)]).astype(int)] = ~np.arange(
        num_thawed + num_new
    )
    return remap


def test_ten_new_tokens_on_256_000_take_some_kilobytes(tmp_path):
    path, remap = tmp_path / "adapter.h5", of_a_base(256_000, 10)
    write_trainable(path, np.ones((10, 64), np.float32), remap, frozen_fingerprint=FROZEN)
    assert path.stat().st_size < 10 * 64 * 4 + 10_500
    table = open_trainable(path, verify=True)
    same_bits(table.remap, remap)
    assert table.remap_fingerprint == fingerprint_remap(remap)
    # The rows are contiguous in the file.
    assert table.mapped == (os.name == "posix")


@st.composite
def two_tables(draw):
    """Draw rows of any bits, remaps and paddings of two tables for the same tokens."""
    num_tokens, dim = draw(st.integers(0, 6)), draw(st.integers(1, 3))
    tables = []
    for frozen in (FROZEN, OTHER):
        rows = draw(float32_rows(st.integers(0, 4), st.just(dim)))
        numbers = st.integers(-len(rows), 2**31 - 1)
        remap = np.array(draw(st.lists(numbers, min_size=num_tokens, max_size=num_tokens)), np.int32)
        padding = draw(st.none() | st.integers(0, num_tokens - 1)) if num_tokens else None
        tables.append(TrainableTable(rows, remap, frozen, padding=padding))
    return tables


@settings(max_examples=30)
@given(two_tables())
def test_two_tables_are_read_from_one_file(tmp_path_factory, tables):
    first, second = tables
    path = tmp_path_factory.mktemp("untied") / "trainable.h5"
    write(path, first, second)
    found = open_trainable(path, verify=True)
    for table, expected in ((found, first), (found.reverse, second)):
        same_bits(table.vectors, expected.vectors)
        same_bits(table.remap, expected.remap)
        assert (table.padding, table.frozen_fingerprint) == (expected.padding, expected.frozen_fingerprint)
        assert table.fingerprint == fingerprint_rows(expected.vectors)
        assert table.remap_fingerprint == fingerprint_remap(expected.remap)
        for array in (table.vectors, table.remap):
            assert not array.flags.writeable
            assert not array.size or array.ctypes.data % 64 == 0
    assert found.reverse.reverse is None


def write(path, table, reverse):
    return write_trainable(
        path,
        table.vectors,
        table.remap,
        padding=table.padding,
        frozen_fingerprint=table.frozen_fingerprint,
        reverse=reverse,
    )


TABLE = TrainableTable(ROWS, np.array([0, ~1, ~0], np.int32), FROZEN)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"remap": np.array([0, ~1])}, "3 tokens and dim 2, as `vectors`. Received: 2 tokens"),
        ({"vectors": np.ones((2, 3))}, "Received: 3 tokens and dim 3"),
        ({"remap": np.array([0, ~1, ~2])}, r"`remap\[2\]` is trainable row 2; expected less than 2"),
        ({"remap": np.array([0.0, 1.0, 2.0])}, "must be integers"),
        ({"padding": 3}, "`padding` must be an id from 0 to 2. Received: 3"),
    ],
)
def test_a_second_table_that_does_not_match_is_refused(tmp_path, changed, message):
    with pytest.raises(SplitError, match=message):
        write(tmp_path / "two.h5", TABLE, dataclasses.replace(TABLE, **changed))
    assert os.listdir(tmp_path) == []


def replaced(name, data):
    return lambda path: replace_array(path, name, data)


def in_head(change):
    return lambda path: rewrite_head(path, change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (in_head(remove("reverse/remap")), "the array `reverse/remap` is missing"),
        (in_head(remove("reverse_fingerprint")), "`reverse_fingerprint` is .*; expected text"),
        (in_head(remove("reverse_frozen_fingerprint")), "`reverse_frozen_fingerprint` is None; expected text"),
        (in_head(attribute("reverse_padding", 3)), "`reverse_padding` is 3; expected 0 to 2"),
        (in_head(attribute("reverse_fingerprint", FROZEN)), "its attribute `reverse_fingerprint`"),
        (in_head(attribute("reverse_remap_fingerprint", FROZEN)), "`reverse_remap_fingerprint`"),
        (replaced("reverse/remap", np.array([0, 1], "i4")), "`reverse/remap` has length 2; expected 3"),
        (replaced("reverse/remap", np.array([0, ~4, 1], "i4")), r"`reverse/remap\[1\]` is trainable row 4"),
        (replaced("reverse/vectors", np.zeros((2, 3), "f4")), "`reverse/vectors` has dim 3; expected 2"),
    ],
)
def test_a_damaged_second_table_is_refused(tmp_path, change, message):
    path = tmp_path / "two.h5"
    write(path, TABLE, TABLE)
    change(path)
    if "has dim" in message:
        rewrite_head(path, attribute("reverse_fingerprint", fingerprint_rows(np.zeros((2, 3), np.float32))))
    if "length" in message:
        rewrite_head(path, attribute("reverse_remap_fingerprint", fingerprint_remap(np.array([0, 1]))))
    with pytest.raises(TableFormatError, match=rf"two\.h5 .*{message}"):
        open_trainable(path, verify=True)


def test_two_trainable_tables_are_refused_as_a_pair(tmp_path):
    fingerprint = write_frozen(tmp_path / "frozen.h5", ROWS)
    write(tmp_path / "trainable.h5", dataclasses.replace(TABLE, frozen_fingerprint=fingerprint), TABLE)
    with pytest.raises(TableFormatError, match=r"trainable\.h5 holds two trainable tables.*Use load_trainable"):
        open_pair(tmp_path)
