"""The dtype of word2vec binary is found from the positions of the words."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.vectors.word2vec.record_types import NUM_BYTES, find_dtype, have_line_feeds


def encode(words, rows, end=b"") -> bytes:
    return b"".join(word + b" " + row.tobytes() + end for word, row in zip(words, rows, strict=True))


@pytest.mark.parametrize("dtype", NUM_BYTES)
@pytest.mark.parametrize(("end", "dim", "is_all"), [(b"", 2, True), (b"\n", 7, False), (b"", 300, False)])
@pytest.mark.parametrize("kind", ["normal", "float16", "quarters", "zeros", "small", "large"])
def test_the_dtype_is_found(dtype, end, dim, kind, is_all):
    rows = np.random.default_rng(0).normal(0, 0.4, (300, dim))
    rows = {
        "normal": rows,
        # In a wider dtype, many bytes are zero.
        "float16": rows.astype(np.float16),
        "quarters": np.round(4 * rows) / 4,
        "zeros": np.where(rows > 0.8, rows, 0),
        "small": rows / 1000,
        "large": rows * 1000,
    }[kind].astype(dtype)
    words = [b"w%d" % number for number in range(300)]
    for num_rows in (3, 300):
        records = encode(words[:num_rows], rows[:num_rows], end)
        assert find_dtype(records, is_all, dim, num_rows) == dtype
        assert find_dtype(records, is_all, dim, 10**15) == dtype, "a header that counts wrong"
        assert find_dtype(records, is_all, dim, num_rows, (dtype,)) == dtype


@given(
    st.sampled_from(sorted(NUM_BYTES)),
    st.integers(2, 6),
    st.lists(st.text("abcdefg\u00e9\u043f", min_size=1, max_size=8), min_size=3, max_size=9, unique=True),
    st.sampled_from([b"", b"\n"]),
    st.integers(0, 2**32 - 1),
)
def test_the_dtype_of_whole_files_is_found(dtype, dim, words, end, seed):
    rows = np.random.default_rng(seed).normal(0, 0.4, (len(words), dim)).astype(dtype)
    assert find_dtype(encode([word.encode() for word in words], rows, end), True, dim, len(words)) == dtype


@given(
    st.sampled_from(sorted(NUM_BYTES)),
    st.lists(st.binary(max_size=6), min_size=1, max_size=6),
    st.integers(1, 4),
    st.data(),
)
def test_a_requested_dtype_is_accepted_if_the_records_end_with_the_file(dtype, words, dim, data):
    values = data.draw(st.lists(st.floats(), min_size=dim * len(words), max_size=dim * len(words)))
    words = [word.replace(b" ", b"").replace(b"\n", b"") for word in words]
    with np.errstate(over="ignore"):
        records = encode(words, np.array(values).astype(dtype).reshape(-1, dim))
    assert find_dtype(records, True, dim, len(words), (dtype,)) == dtype


def test_words_of_another_encoding_and_unusual_values():
    words = [f"\u0441\u043b\u043e\u0432\u043e{number}".encode("cp1251") for number in range(50)]
    rows = np.random.default_rng(0).normal(0, 0.4, (50, 30)).astype(np.float32)
    assert find_dtype(encode(words, rows), False, 30, 50) == "float32"
    # The dtype can be passed.
    assert find_dtype(encode(words, rows.astype(np.float16)), False, 30, 50) is None
    assert find_dtype(encode(words, rows.astype(np.float16)), False, 30, 50, ("float16",)) == "float16"
    words = [b"word%d" % number for number in range(50)]
    assert find_dtype(encode(words, rows * np.float32(1e30)), False, 30, 50) is None
    assert find_dtype(encode(words, rows * np.float32(1e30)), False, 30, 50, ("float32",)) == "float32"


def test_only_the_usual_dtype_is_accepted_for_one_record():
    row = struct.pack("<4f", 0.1, 0.2, 0.3, 0.4)
    assert find_dtype(b"the " + row, True, 4, 1) == "float32"
    assert find_dtype(b"the " + row, True, 8, 1) is None
    assert find_dtype(b"the " + row, True, 8, 1, ("float16",)) == "float16"
    assert find_dtype(b"the " + row[:9], True, 4, 1) is None


def test_without_a_whole_record_the_usual_dtype_is_returned():
    assert find_dtype(b"the " + bytes(100), False, 1000, 5) == "float32"
    assert find_dtype(b"", True, 2, 5) == "float32"


def test_bytes_without_words_fit_no_dtype():
    noise = np.random.default_rng(0).integers(0, 256, 100_000).astype(np.uint8).tobytes()
    for is_all in (True, False):
        assert find_dtype(noise, is_all, 50, 500) is None


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (b"", False),
        (b"a 1234", False),
        (b"a 1234\n", True),
        (b"a 1234\nb 1234", True),
        (b"a 1234\nb 1234c 1234\n", False),
    ],
)
def test_line_feeds(records, expected):
    assert have_line_feeds(records, 4) is expected
