"""The cursor: bytes are read, put back and skipped in order, and missing bytes are named by their position."""

import io

import pytest

from splitembed.errors import VectorFormatError
from splitembed.vectors.fasttext.cursor import Cursor
from splitembed.vectors.read_checks import ReadChecks
from splitembed.vectors.streams import compressions

CONTENT = b"0123456789"


@pytest.fixture(params=[None, len(CONTENT)], ids=["stream", "file"])
def cursor(request):
    checks = ReadChecks("model.bin")
    checks.unit = "byte"
    return Cursor(io.BytesIO(CONTENT), checks, request.param)


def test_bytes_are_read_in_order(cursor):
    assert (cursor.take(3, "the header"), cursor.position) == (b"012", 3)
    assert (cursor.take(0, "nothing"), cursor.position) == (b"", 3)
    assert (cursor.take(7, "the rest"), cursor.position) == (b"3456789", 10)
    assert (cursor.take_chunk(), cursor.position) == (b"", 10)


def test_bytes_put_back_are_read_first(cursor):
    cursor.take(2, "the header")
    cursor.put_back(b"xy")
    assert cursor.position == 0
    assert cursor.take(1, "the header") == b"x"
    cursor.put_back(b"x")
    assert cursor.take(1, "the header") == b"x"
    assert cursor.take(3, "the header") == b"y23"
    cursor.put_back(b"23")
    assert (cursor.take_chunk(), cursor.position) == (b"23", 4)
    assert cursor.take(1, "the header") == b"4"


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_skipped_bytes_are_not_read(cursor, monkeypatch, chunk):
    monkeypatch.setattr(compressions, "CHUNK_BYTES", chunk)
    cursor.take(2, "the header")
    cursor.put_back(b"1")
    cursor.skip(4, "the matrix")
    assert (cursor.position, cursor.take(2, "the rest")) == (5, b"56")
    cursor.skip(3, "the rest")
    assert cursor.take_chunk() == b""


def test_missing_bytes_are_named_by_their_position(cursor):
    cursor.take(4, "the header")
    with pytest.raises(VectorFormatError) as caught:
        cursor.skip(7, "the matrix")
    assert str(caught.value) == (
        "model.bin, byte 4: found 6 bytes of the matrix; expected 7 bytes. The file is damaged or cut short. Download "
        "it again."
    )


def test_a_read_past_the_end_is_an_error(cursor):
    cursor.take(4, "the header")
    with pytest.raises(VectorFormatError, match="byte 4: found 6 bytes of the header; expected 8 bytes"):
        cursor.take(8, "the header")
