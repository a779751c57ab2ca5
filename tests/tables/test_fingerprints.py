"""Fingerprints: equal for equal numbers in any memory layout, different for any other."""

import hashlib

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.tables import fingerprint_remap, fingerprint_rows, fingerprint_words
from splitembed.words import Words, pack_words
from tests.helpers.odd_words import float32_rows, word_lists


def sha256(*parts: bytes) -> str:
    return "sha256:" + hashlib.sha256(b"".join(parts)).hexdigest()


@given(float32_rows(st.integers(0, 5), st.integers(1, 4)))
def test_rows_are_hashed_as_little_endian_bytes_then_shape(rows):
    expected = sha256(rows.astype("<f4").tobytes(), f"float32 {len(rows)}x{rows.shape[1]}".encode())
    assert fingerprint_rows(rows) == expected
    assert fingerprint_rows(rows.astype(">f4")) == expected
    assert fingerprint_rows(np.asfortranarray(rows)) == expected
    assert fingerprint_rows(np.repeat(rows, 2, axis=0)[::2]) == expected


def test_int8_rows_are_hashed_with_their_scale():
    rows, scale = np.array([[1, -1]], np.int8), np.array([0.5], np.float32)
    assert fingerprint_rows(rows, scale) == sha256(b"\x01\xff", scale.astype("<f4").tobytes(), b"int8 1x2")


@given(word_lists)
def test_words_are_hashed_as_bytes_then_offsets(words):
    utf8, offsets = pack_words(words)
    expected = sha256(utf8.tobytes(), offsets.astype("<u8").tobytes())
    assert fingerprint_words(words) == fingerprint_words(Words.from_arrays(utf8, offsets)) == expected


def test_a_remap_is_hashed_as_int32():
    assert fingerprint_remap(np.array([0, -1, 7])) == sha256(b"\0\0\0\0\xff\xff\xff\xff\x07\0\0\0")


def test_the_size_of_blocks_does_not_matter(tmp_path):
    # One block and a half.
    rows = np.random.default_rng(0).standard_normal((3_000, 500)).astype(np.float32)
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        dataset = file.create_dataset("rows", data=rows.astype(">f4"), chunks=(7, 500), compression="gzip")
        assert fingerprint_rows(dataset) == sha256(rows.astype("<f4").tobytes(), b"float32 3000x500")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32)),
        (np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32) * -1),
        (np.zeros((2, 2), np.float16), np.zeros((2, 2), np.uint16)),
    ],
)
def test_shape_dtype_and_every_bit_count(left, right):
    assert fingerprint_rows(left) != fingerprint_rows(right)


def test_the_ends_of_words_count():
    assert fingerprint_words(["ab", "c"]) != fingerprint_words(["a", "bc"])
