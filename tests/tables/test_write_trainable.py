"""Writing trainable tables: compressed remaps, and a second table for logits."""

import dataclasses
import os

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.accuracy.memory import PeakMemory
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
    assert path.stat().st_size < 20_000
    table = open_trainable(path, verify=True)
    same_bits(table.remap, remap)
    assert table.remap_fingerprint == fingerprint_remap(remap)
    # The rows are contiguous in the file.
    assert table.mapped == (os.name == "posix")
    with h5py.File(path) as file:
        assert file.attrs["format_version"] == 1
        assert file["remap"][-11:].tolist() == [255_999, *range(-1, -11, -1)]


@pytest.mark.parametrize(
    ("remap", "compressed"),
    [
        (of_a_base(4096), True),
        (of_a_base(4095), False),
        (of_a_base(100_000, 10, 4_000), True),
        (of_a_base(100_000, 10, 10_000), False),
        (np.random.default_rng(0).permutation(100_000), False),
        (np.zeros(100_000, int), False),
    ],
    ids=["least", "too few", "some thawed", "many thawed", "random", "one row for all"],
)
def test_a_remap_is_compressed_if_most_rows_are_consecutive(tmp_path, remap, compressed):
    path = tmp_path / "trainable.h5"
    write_trainable(path, np.zeros((10_010, 1), np.float32), remap, frozen_fingerprint=FROZEN)
    with h5py.File(path) as file:
        stored = file["remap"]
        assert (stored.compression, stored.shuffle) == (("gzip", True) if compressed else (None, False))
        assert stored.id.get_storage_size() <= (0.2 if compressed else 1) * 4 * len(remap)
        assert (stored.id.get_offset() is None) == compressed
    same_bits(open_trainable(path, verify=True).remap, remap.astype(np.int32))


def test_a_compressed_remap_is_written_and_read_in_little_memory(tmp_path):
    remap = of_a_base(3_000_000, 10)
    with PeakMemory() as writing:
        write_trainable(tmp_path / "trainable.h5", np.ones((10, 1)), remap, frozen_fingerprint=FROZEN)
    with PeakMemory() as reading:
        found = open_trainable(tmp_path / "trainable.h5").remap
    same_bits(found, remap)
    assert writing.growth is None or writing.growth < 12_000_000
    assert reading.growth is None or reading.growth < remap.nbytes + 12_000_000


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


def test_older_readers_refuse_two_tables_by_their_version(tmp_path):
    write(tmp_path / "one.h5", TABLE, None)
    write(tmp_path / "two.h5", TABLE, TABLE)
    versions = []
    for name in ("one.h5", "two.h5"):
        with h5py.File(tmp_path / name) as file:
            versions.append(int(file.attrs["format_version"]))
    assert versions == [1, 3]


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
    def change(file):
        del file[name]
        file[name] = data

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: file.__delitem__("reverse/remap"), "the dataset `reverse/remap` is missing, or"),
        (lambda file: file.attrs.__delitem__("reverse_fingerprint"), "`reverse_fingerprint` is .*; expected text"),
        (
            lambda file: file.attrs.__delitem__("reverse_frozen_fingerprint"),
            "`reverse_frozen_fingerprint` is None; expected text",
        ),
        (lambda file: file.attrs.__setitem__("reverse_padding", 3), "`reverse_padding` is 3; expected 0 to 2"),
        (lambda file: file.attrs.__setitem__("reverse_fingerprint", FROZEN), "its attribute `reverse_fingerprint`"),
        (lambda file: file.attrs.__setitem__("reverse_remap_fingerprint", FROZEN), "`reverse_remap_fingerprint`"),
        (replaced("reverse/remap", np.array([0, 1], "i4")), "`reverse/remap` has length 2; expected 3"),
        (replaced("reverse/remap", np.array([0, ~4, 1], "i4")), r"`reverse/remap\[1\]` is trainable row 4"),
        (replaced("reverse/vectors", np.zeros((2, 3), "f4")), "`reverse/vectors` has dim 3; expected 2"),
    ],
)
def test_a_damaged_second_table_is_refused(tmp_path, change, message):
    write(tmp_path / "two.h5", TABLE, TABLE)
    with h5py.File(tmp_path / "two.h5", "r+") as file:
        change(file)
        if "has dim" in message:
            file.attrs["reverse_fingerprint"] = fingerprint_rows(np.zeros((2, 3), np.float32))
        if "length" in message:
            file.attrs["reverse_remap_fingerprint"] = fingerprint_remap(np.array([0, 1]))
    with pytest.raises(TableFormatError, match=rf"two\.h5 .*{message}"):
        open_trainable(tmp_path / "two.h5", verify=True)


def test_two_trainable_tables_are_refused_as_a_pair(tmp_path):
    fingerprint = write_frozen(tmp_path / "frozen.h5", ROWS)
    write(tmp_path / "trainable.h5", dataclasses.replace(TABLE, frozen_fingerprint=fingerprint), TABLE)
    with pytest.raises(TableFormatError, match=r"trainable\.h5 holds two trainable tables.*Use load_trainable"):
        open_pair(tmp_path)
