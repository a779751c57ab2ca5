"""Storages of rows: rounding, exact widening, refusal of numbers out of range, and the entry for a new storage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed import SplitReversibleEmbedding, SplitTable
from splitembed.errors import SplitError
from splitembed.tables import FrozenWriter, fingerprint_rows, open_frozen, write_frozen
from splitembed.tables.storage import (
    STORAGES,
    Storage,
    encode_rows,
    storage_named,
    storage_of,
)
from tests.helpers.bits import same_bits
from tests.helpers.odd_words import float32_rows


def decode_rows(stored, scale=None):
    return storage_of(stored.dtype).decode(stored, scale)


# Half a unit in the last place, relative.
SPACING = {"float32": 0, "float16": 2**-11, "bfloat16": 2**-8}
finite_rows = float32_rows(st.integers(1, 4), st.integers(1, 4)).map(
    lambda rows: np.nan_to_num(rows, nan=0.5, posinf=1, neginf=-1).clip(-6e4, 6e4)
)


@given(finite_rows, st.sampled_from(sorted(SPACING)))
def test_floats_are_rounded_to_the_nearest(rows, dtype):
    stored, scale = encode_rows(rows, dtype)
    assert scale is None
    assert storage_of(stored.dtype).name == dtype
    # Half the smallest subnormal number.
    smallest = 2.0**-25 if dtype == "float16" else 2.0**-134
    error = np.abs(decode_rows(stored).astype(np.float64) - rows)
    assert (error <= np.maximum(np.abs(rows.astype(np.float64)) * SPACING[dtype], smallest)).all()


@given(finite_rows)
def test_int8_is_within_half_a_step(rows):
    stored, scale = encode_rows(rows, "int8")
    error = np.abs(decode_rows(stored, scale).astype(np.float64) - rows).max(axis=1)
    largest = np.abs(rows.astype(np.float64)).max(axis=1)
    # A row is off by half a step, by float32's rounding of the products, and where its scale is a subnormal number.
    assert (error <= largest / 127 * (0.5 + 1e-4) + 127 * 2.0**-149).all()


@given(st.integers(0, 2**16 - 1))
def test_every_bfloat16_is_encoded_as_itself(bits):
    stored = np.array([[bits]], np.uint16)
    again, _ = encode_rows(decode_rows(stored), "bfloat16")
    if np.isnan(decode_rows(stored)).all():
        assert np.isnan(decode_rows(again)).all()
    else:
        assert again == stored


def test_bfloat16_rounds_ties_to_even():
    rows = np.array([[0x3F808000, 0x3F818000, 0x3F808001, 0x7F800001, 0xFFFFFFFF]], np.uint32).view(np.float32)
    assert encode_rows(rows, "bfloat16")[0].tolist() == [[0x3F80, 0x3F82, 0x3F81, 0x7FC0, 0xFFFF]]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_infinity_and_nan_are_kept(dtype):
    rows = np.array([[np.nan, np.inf, -np.inf, -0.0]], np.float32)
    back = decode_rows(encode_rows(rows, dtype)[0])
    assert np.isnan(back[0, 0])
    same_bits(back[:, 1:], rows[:, 1:])


@pytest.mark.parametrize(
    ("value", "dtype", "shown"),
    [
        (70000.0, "float16", "70000.0"),
        (65520.0, "float16", "65520.0"),
        (3.4e38, "bfloat16", "3.4e+38"),
        (np.nan, "int8", "nan"),
        (-np.inf, "int8", "-inf"),
    ],
)
def test_a_number_out_of_range_is_refused_with_its_position(value, dtype, shown):
    rows = np.zeros((3, 4), np.float32)
    rows[1, 2] = value
    with pytest.raises(SplitError) as caught:
        encode_rows(rows, dtype, first_row=100)
    assert str(caught.value).startswith(f"Row 101, column 2 holds {shown}, which {dtype} cannot hold.")


def test_the_largest_numbers_in_range_are_kept():
    assert decode_rows(encode_rows(np.array([[65504.0]], np.float32), "float16")[0]).tolist() == [[65504.0]]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8"])
def test_stored_rows_are_read_from_a_file(tmp_path, dtype):
    rows = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)
    stored, scale = encode_rows(np.vstack([rows, np.zeros((1, 3), np.float32)]), dtype)
    with FrozenWriter(tmp_path / "a.h5", dtype=dtype, with_zero_row=True) as writer:
        writer.append(list("abcd"), rows[:4])
        writer.append(list("efg"), rows[4:])
    fingerprint = write_frozen(tmp_path / "b.h5", stored, scale=scale, words=[*"abcdefg", ""], zero_row=7)
    assert fingerprint == writer.fingerprint == fingerprint_rows(stored, scale)
    for name in ("a.h5", "b.h5"):
        table = open_frozen(tmp_path / name, verify=True)
        same_bits(table.vectors, stored)
        assert (table.dtype, table.mapped, table.zero_row) == (dtype, True, 7)
        same_bits(table.scale, scale)
        same_bits(table.take([[6, 0], [7, 6]]), decode_rows(stored, scale)[[[6, 0], [7, 6]]])


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint8, np.complex64, object, "U3"])
def test_other_dtypes_are_refused(dtype):
    with pytest.raises(SplitError, match="cannot be stored as .* one of float32, float16, bfloat16, int8"):
        storage_of(dtype)


def test_a_new_storage_is_one_entry(tmp_path, monkeypatch):
    """A storage of steps of 1/128 works in files, splits and layers once it is registered."""
    steps = Storage(
        "int16",
        np.dtype(np.int16),
        lambda rows: (np.rint(rows * np.float32(128)).astype(np.int16), np.full(len(rows), 1 / 128, np.float32)),
        lambda stored, scale: stored.astype(np.float32) * scale[..., None],
        has_scale=True,
        only_finite=True,
    )
    monkeypatch.setitem(STORAGES, "int16", steps)
    rows = [[0.25, 1.0], [0.5, 0.75], [2.0, 3.0]]
    split = SplitTable.from_matrix(rows, [1]).with_frozen_dtype("int16")
    assert (split.frozen_dtype, split.frozen.dtype, split.storage.table_bytes(2, 2)) == ("int16", np.int16, 16)
    split.save(tmp_path)
    opened = SplitTable.open(tmp_path, verify=True).freeze([1])
    assert opened.frozen_dtype == "int16" and opened.lookup([0, 1, 2]).tolist() == rows
    layer = SplitReversibleEmbedding(opened.thaw([0]))
    assert np.asarray(layer(np.array([2, 1, 0]))).tolist() == rows[::-1]
    assert np.asarray(layer(np.eye(2, dtype=np.float32), reverse=True)).T.tolist() == rows
    assert "frozen              3              6             24  int16" in layer.summary()
    with pytest.raises(SplitError, match="which int16 cannot hold"):
        encode_rows(np.array([[np.nan]], np.float32), "int16")


@pytest.mark.parametrize("storage", STORAGES.values(), ids=lambda storage: storage.name)
def test_a_storage_knows_its_bytes(storage):
    stored, scale = encode_rows(np.ones((5, 3), np.float32), storage.name)
    assert storage_of(stored.dtype) is storage_named(storage.name) is storage
    assert storage.table_bytes(5, 3) == stored.nbytes + (0 if scale is None else scale.nbytes)
    assert storage.has_scale == (scale is not None) and stored.itemsize == storage.num_bytes
    assert storage.is_bit_pattern == (storage.name == "bfloat16")
