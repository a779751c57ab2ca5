"""Remaps in files: read as they were written, as ramps where these are shorter, in bounded memory."""

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.accuracy.memory import PeakMemory
from splitembed.errors import TableFormatError
from splitembed.tables import fingerprint_remap, fingerprints, open_trainable, write_trainable
from splitembed.tables.remap import fault_of_remap, ramp_starts
from tests.helpers.bits import same_bits
from tests.helpers.table_heads import attribute, replace_array, rewrite_head

FROZEN = "sha256:" + "0" * 64


def of_a_base(num_tokens, num_new=0, num_thawed=0):
    """Return the remap of a base table in id order with some thawed rows and new tokens at its end."""
    remap = np.arange(num_tokens + num_new, dtype=np.int32)
    thawed = np.random.default_rng(0).choice(num_tokens, num_thawed, replace=False)
    ids = np.concatenate([thawed, np.arange(num_tokens, num_tokens + num_new)]).astype(int)
    remap[ids] = ~np.arange(num_thawed + num_new)
    return remap


def write(path, remap):
    return write_trainable(path, np.zeros((max(-min(remap, default=0), 0), 1)), remap, frozen_fingerprint=FROZEN)


runs = st.lists(st.tuples(st.integers(-50, 2**31 - 51), st.integers(1, 50)), max_size=5)


@given(runs)
def test_a_remap_is_read_as_it_was_written(tmp_path_factory, drawn):
    parts = [row + np.arange(length) if row >= 0 else row - np.arange(min(length, row + 51)) for row, length in drawn]
    remap = np.concatenate([np.zeros(0, int), *parts]).astype(np.int32)
    path = tmp_path_factory.mktemp("remap") / "trainable.h5"
    write(path, remap)
    table = open_trainable(path, verify=True)
    same_bits(table.remap, remap)
    assert table.remap_fingerprint == fingerprint_remap(remap)


@pytest.mark.parametrize(
    ("remap", "as_ramps"),
    [
        (of_a_base(100_000, 10, 4_000), True),
        (of_a_base(100_000, 10, 20_000), False),
        (np.random.default_rng(0).permutation(10_000), False),
        (np.zeros(10_000, int), False),
        (np.arange(4), True),
        (np.arange(3), False),
        (np.arange(2**22 + 1), False),
        ([], False),
        ([0, 2**31 - 1, ~0, 2**31 - 1], False),
    ],
    ids=["some thawed", "many thawed", "random", "one row for all", "least", "too few", "too many", "none", "extremes"],
)
def test_few_ramps_are_stored_as_such(tmp_path, remap, as_ramps):
    path = tmp_path / "trainable.h5"
    remap = np.asarray(remap, np.int64)
    write(path, remap)
    with h5py.File(path) as file:
        assert isinstance(file["remap"], h5py.Group) == as_ramps
    same_bits(open_trainable(path, verify=True).remap, remap.astype(np.int32))


@pytest.mark.parametrize("block_bytes", [32, 64, 1 << 22])
def test_ramps_start_where_the_next_row_is_another(monkeypatch, block_bytes):
    monkeypatch.setattr(fingerprints, "BLOCK_BYTES", block_bytes)
    remap = np.array([5, 6, 7, -1, -2, -3, -3, 0, 1, -1, 2**31 - 1, -(2**31)], np.int32)
    assert ramp_starts(remap).tolist() == [0, 3, 6, 7, 9, 10, 11]
    assert ramp_starts(remap[:0]).tolist() == []
    assert ramp_starts(remap[:1]).tolist() == [0]


def test_a_long_remap_is_written_and_read_in_little_memory(tmp_path):
    remap = of_a_base(3_000_000, 10)
    with PeakMemory() as writing:
        write(tmp_path / "trainable.h5", remap)
    with PeakMemory() as reading:
        found = open_trainable(tmp_path / "trainable.h5").remap
    same_bits(found, remap)
    assert writing.growth is None or writing.growth < 20_000_000
    assert reading.growth is None or reading.growth < remap.nbytes + 20_000_000


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num_tokens", 0, "`num_tokens` is 0; expected 1 to 4194304"),
        ("num_tokens", 2**40, "`num_tokens` is 1099511627776; expected"),
        ("num_tokens", 7, "`remap/starts` must rise from 0 and stay below 7"),
        ("remap/starts", [], "`remap/rows` has length 3; expected 0"),
        ("remap/starts", [1, 7, 8], "must rise from 0"),
        ("remap/starts", [0, 7, 7], "must rise from 0"),
        ("remap/starts", [0, 8, 7], "must rise from 0"),
        ("remap/rows", [0, -1], "`remap/rows` has length 2; expected 3"),
        ("remap/rows", [0, -2, 8], "names a row that does not exist"),
        ("remap/rows", [-1, -1, 8], "names a row that does not exist"),
        ("remap/rows", [2**31 - 3, -1, 8], "names a row that does not exist"),
    ],
)
def test_damaged_ramps_are_refused(tmp_path, name, value, message):
    path = tmp_path / "trainable.h5"
    write(path, np.array([*range(7), ~0, *range(8, 20)]))
    if name == "num_tokens":
        rewrite_head(path, attribute(name, value))
    else:
        replace_array(path, name, np.array(value, np.int32))
    with pytest.raises(TableFormatError, match=f"trainable.h5 is damaged: .*{message}"):
        open_trainable(path)


def test_a_missing_trainable_row_is_named():
    assert fault_of_remap(np.array([0, ~0], np.int32), 1) == ""
    assert fault_of_remap(np.array([0, ~3], np.int32), 1) == "`remap[1]` is trainable row 3; expected less than 1."
