"""Writing frozen tables: any layout, any words and names, and arguments that are checked before a file appears."""

import hashlib
import os

import h5py
import numpy as np
import pytest

from splitembed.errors import SplitError, VocabularyError
from splitembed.tables import fingerprint_rows, fingerprint_words, open_frozen, write_frozen
from tests.helpers.bits import same_bits

ROWS = np.arange(15, dtype=np.float32).reshape(5, 3)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f4"])
def test_layout_and_byte_order_do_not_matter(tmp_path, order, dtype):
    rows = np.asarray(ROWS, dtype, order=order)
    assert write_frozen(tmp_path / "frozen.h5", rows) == fingerprint_rows(ROWS) == fingerprint_rows(rows)
    same_bits(open_frozen(tmp_path / "frozen.h5").vectors, ROWS)


def test_a_strided_memory_map_is_written(tmp_path):
    np.save(tmp_path / "rows.npy", np.asfortranarray(np.arange(4_000_000, dtype=np.float32).reshape(-1, 4)))
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")[::2]
    write_frozen(tmp_path / "frozen.h5", rows)
    assert np.array_equal(open_frozen(tmp_path / "frozen.h5").vectors, rows)


def test_fingerprints_follow_the_specification(tmp_path):
    assert write_frozen(tmp_path / "frozen.h5", ROWS, words=list("abcde")) == (
        "sha256:" + hashlib.sha256(ROWS.astype("<f4").tobytes() + b"float32 5x3").hexdigest()
    )
    offsets = np.arange(6, dtype="<u8").tobytes()
    words = "sha256:" + hashlib.sha256(b"abcde" + offsets).hexdigest()
    assert fingerprint_words(open_frozen(tmp_path / "frozen.h5").words) == words
    with h5py.File(tmp_path / "frozen.h5") as file:
        assert file.attrs["words_fingerprint"].decode() == words


def test_the_zero_row_is_recorded(tmp_path):
    write_frozen(tmp_path / "frozen.h5", np.array([[1.0], [-0.0]], np.float32), zero_row=1)
    assert open_frozen(tmp_path / "frozen.h5").zero_row == 1


@pytest.mark.parametrize("zero_row", [0, 5, -1])
def test_the_zero_row_must_be_zero(tmp_path, zero_row):
    rows = np.ones((5, 2), np.float32)
    with pytest.raises(SplitError, match=f"all zero. Received: {zero_row}"):
        write_frozen(tmp_path / "frozen.h5", rows, zero_row=zero_row)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (ROWS, {"words": ["a"]}, "one word for each row, .*Received: 1 words, 5 rows"),
        (ROWS.astype(np.float64), {}, "cannot be stored as float64. Convert them to one of float32, float16"),
        (ROWS[0], {}, r"shape \(num_frozen, dim\)\. Received: shape \(3,\)"),
        (ROWS.astype(np.int8), {}, "with int8 rows.*Received: int8"),
        (ROWS, {"scale": np.ones(5, np.float32)}, "only with them. Received: float32"),
        (ROWS.astype(np.int8), {"scale": np.ones(4, np.float32)}, r"float32 \(5,\)\. Received: float32 \(4,\)"),
        (ROWS.astype(np.int8), {"scale": np.ones(5)}, r"Received: float64 \(5,\)"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_match_are_refused(tmp_path, rows, options, message):
    with pytest.raises(SplitError, match=message):
        write_frozen(tmp_path / "frozen.h5", rows, **options)
    assert os.listdir(tmp_path) == []


def test_a_word_that_cannot_be_stored_is_refused(tmp_path):
    with pytest.raises(VocabularyError, match="lone surrogate"):
        write_frozen(tmp_path / "frozen.h5", ROWS[:1], words=["\ud800"])
    assert os.listdir(tmp_path) == []


def test_the_source_may_be_long_but_has_no_nul(tmp_path):
    write_frozen(tmp_path / "frozen.h5", ROWS, source="é" * 100_000)
    assert open_frozen(tmp_path / "frozen.h5").source == "é" * 100_000
    with pytest.raises(SplitError, match="`source` must not contain NUL characters"):
        write_frozen(tmp_path / "frozen.h5", ROWS, source="a\0b")


def test_a_file_may_be_rewritten_from_its_own_map(tmp_path):
    path = tmp_path / "frozen.h5"
    write_frozen(path, ROWS, words=list("abcde"))
    table = open_frozen(path)
    assert write_frozen(path, table.vectors, words=table.words) == table.fingerprint
    same_bits(table.vectors, ROWS)


@pytest.mark.parametrize("name", ["with space.h5", "é\u2028.h5", "no-suffix", os.fsdecode(b"caf\xe9.h5")])
def test_any_file_name_works(tmp_path, name):
    write_frozen(tmp_path / name, ROWS, words=list("abcde"), source=name)
    table = open_frozen(str(tmp_path / name))
    assert (table.words, table.source) == (list("abcde"), name)


@pytest.mark.parametrize(
    ("row_of", "message"),
    [
        ([0, 2], "`row_of` must be from 0 to 1, as .*Received: 2"),
        ([0, -1], "`row_of` must be from 0 to 1, as .*Received: -1"),
        ([0.0, 1.0], "`row_of` must be integers"),
        ([0, 1, 1], "2 words, 3 rows"),
    ],
)
def test_rows_of_words_are_checked_before_anything_is_written(tmp_path, row_of, message):
    with pytest.raises(SplitError, match=message):
        write_frozen(tmp_path / "frozen.h5", np.eye(2, dtype=np.float32), words=["a", "b"], row_of=np.array(row_of))
    assert not list(tmp_path.iterdir())
