"""Compressions: recognized by their first bytes, at most two nested, with one kind of error for damage; first bytes."""

import io

import pytest

from splitembed.errors import VectorFormatError
from splitembed.vectors import read_vectors
from splitembed.vectors.streams import compressions
from splitembed.vectors.streams.compressions import Counted, damage_named, decompressed, read_head
from tests.helpers.packings import COMPRESSIONS, PACKERS, zipped
from tests.helpers.reference import table_of

CONTENT = b"the 1 2\nof 3 4\n"

# Written by the tools: gzip -9n, bzip2 -9, xz -9, zstd -19, zip -X.
GOLDEN = {
    "gzip": "1f8b08000000000002032bc94855305430e2ca4f53305630e102001b089a3b0f000000",
    "bzip2": (
        "425a6839314159265359bc5a9c030000075980001040003c0003408400200021a069a0201a69a24d949019bdc3c5dc91"
        "4e14242f16a700c0"
    ),
    "xz": (
        "fd377a585a000004e6d6b446020021011c00000010cf58cc01000e746865203120320a6f66203320340a0000c672660d"
        "36d91da90001270fdf1afc6a1fb6f37d010000000004595a"
    ),
    "Zstandard": "28b52ffd0468790000746865203120320a6f66203320340aa5ff3c59",
    "zip": (
        "504b03040a0000000000000021141b089a3b0f0000000f00000005000000762e747874746865203120320a6f66203320"
        "340a504b01021e030a0000000000000021141b089a3b0f0000000f000000050000000000000001000000a48100000000"
        "762e747874504b0506000000000100010033000000320000000000"
    ),
}


@pytest.mark.parametrize("packing", GOLDEN)
def test_golden_bytes(packing):
    assert table_of(read_vectors(io.BytesIO(bytes.fromhex(GOLDEN[packing])))) == {"the": [1, 2], "of": [3, 4]}


@pytest.mark.parametrize(("outer", "inner"), list(zip(COMPRESSIONS, (*COMPRESSIONS[1:], "gzip"), strict=True)))
def test_compressed_twice(outer, inner):
    name, content = decompressed(io.BytesIO(PACKERS[outer](PACKERS[inner](CONTENT))), "v")
    assert (name, content.read()) == (f"{inner} in {outer}", CONTENT)


@pytest.mark.parametrize("packing", COMPRESSIONS)
def test_a_compressed_file_in_a_zip_archive(write, packing):
    path = write(zipped(**{"model.bin.gz": PACKERS[packing](CONTENT)}))
    assert table_of(read_vectors(path)) == {"the": [1, 2], "of": [3, 4]}


def test_a_zip_archive_in_a_compressed_file(write):
    with pytest.raises(VectorFormatError, match=r"found a zip archive inside another file.*Unpack it"):
        read_vectors(write(PACKERS["gzip"](zipped(CONTENT))))


class Slow(io.RawIOBase):
    """One byte at a time, as a pipe may give them."""

    def __init__(self, content):
        self._content = io.BytesIO(content)

    def readable(self):
        return True

    def readinto(self, buffer):
        return self._content.readinto(memoryview(buffer)[:1])


@pytest.mark.parametrize("packing", PACKERS)
def test_a_magic_number_read_byte_by_byte(packing):
    if packing != "zip":
        name, content = decompressed(Slow(PACKERS[packing](CONTENT)), "v")
        assert (name, content.read()) == ("" if packing == "plain" else packing, CONTENT)


def test_counted_bytes():
    counted = Counted(io.BytesIO(bytes(100)))
    assert [len(counted.read(60)), counted.num_bytes, len(counted.read(60)), counted.num_bytes] == [60, 60, 40, 100]
    assert counted.read(60) == b"" and counted.num_bytes == 100


def test_an_error_of_the_disk_is_raised_as_it_is():
    with pytest.raises(OSError, match="Input/output"), damage_named("v", "gzip", 0):
        raise OSError(5, "Input/output error")


@pytest.mark.parametrize("packing", COMPRESSIONS)
def test_damage_is_named_with_both_compressions_and_its_byte(write, packing):
    content = b"".join(b"w%d 0.%d\n" % (number, number * 7919) for number in range(50_000))
    packed = PACKERS[packing](content)
    path = write(PACKERS["gzip"](packed[: len(packed) // 2]))
    with pytest.raises(VectorFormatError, match=rf"{path}, byte \d+ after decompression: found {packing} in gzip data"):
        read_vectors(path)


@pytest.mark.parametrize(
    ("content", "num_bytes"),
    [
        (b"", 0),
        (b"ab", 2),
        (b"1234567\n", 8),
        (b"1\n2\n5678", 8),
        (b"1\n2\n56789", 8),
        (b"x" * 15 + b"\n3\n\n.", 16),
        (b"x" * 40, 32),
    ],
)
def test_a_head_has_two_lines_unless_they_are_too_long(monkeypatch, content, num_bytes):
    monkeypatch.setattr(compressions, "HEAD_BYTES", 8)
    monkeypatch.setattr(compressions, "LONG_HEAD_BYTES", 32)
    head, is_all = read_head(io.BytesIO(content))
    if content.startswith(b"x" * 15):
        assert head.count(b"\n") >= 2 or num_bytes == 32
    assert content.startswith(head) and len(head) >= min(num_bytes, len(content))
    assert not is_all or head == content
