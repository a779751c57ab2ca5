"""The head: encoded, read again, and bounded. What is refused is in test_refusals."""

import io
import zlib

import pytest

from splitembed.tables.head import Head, HeadError, StoredArray, block_bytes, checksum_of_ends, read_head

PLACE = StoredArray("words/utf8", "|u1", (5,), 4096, 5, 7, 8)
HEAD = Head("splitembed.frozen", 4101, {"source": "é\udcff", "dim": 3}, {"words/utf8": PLACE})


@pytest.mark.parametrize("num_bytes", [4096, 8192])
def test_a_head_is_read_as_it_was_encoded(num_bytes):
    block = HEAD.encode(num_bytes)
    assert len(block) == num_bytes
    assert read_head(io.BytesIO(block)) == HEAD


def test_every_flipped_bit_of_a_head_is_found():
    block = HEAD.encode(4096)
    used = len(block.rstrip(b"\0"))
    for position in range(used):
        flipped = bytearray(block)
        flipped[position] ^= 1 << position % 8
        with pytest.raises(HeadError):
            read_head(io.BytesIO(flipped))


@pytest.mark.parametrize("size", [0, 15, 16, 55, 56, 200])
def test_a_head_that_is_cut_short_is_refused(size):
    with pytest.raises(HeadError):
        read_head(io.BytesIO(HEAD.encode(4096)[:size]))


def test_the_block_is_a_power_of_two_that_fits_and_is_bounded():
    assert [block_bytes({"source": "x" * size}) for size in (0, 900, 1_000, 20_000)] == [4096, 4096, 8192, 32768]
    # A character outside ASCII takes 6 bytes or 12.
    assert block_bytes({"source": "é" * 900}) == 16384
    with pytest.raises(HeadError, match="expected at most 1048576"):
        block_bytes({"source": "x" * (1 << 20)})


def test_the_ends_have_one_checksum():
    assert checksum_of_ends(b"ab", b"cd") == zlib.crc32(b"abcd")
