"""Compressed frames: concatenated frames are read, padding is skipped, other bytes are damage."""

import bz2
import io
import lzma
import sys
import tracemalloc

import pytest
import zstandard

from splitembed.errors import VectorFormatError
from splitembed.vectors import read_vectors
from splitembed.vectors.streams import frames
from splitembed.vectors.streams.frames import Frames
from tests.helpers.packings import COMPRESSIONS, PACKERS, zipped
from tests.helpers.reference import table_of

# RFC 8878: a frame of 5 bytes outside the content.
SKIPPABLE = b"\x5a\x2a\x4d\x18\x05\0\0\0hello"
TABLE = {"the": [1, 2], "of": [3, 4]}


@pytest.mark.parametrize("packing", COMPRESSIONS)
@pytest.mark.parametrize("end", [b"", bytes(4), bytes(200_000)])
def test_concatenated_frames_are_one(write, packing, end):
    pack = PACKERS[packing]
    content = pack(b"the 1 2\no") + pack(b"") + pack(b"f 3 4\n") + end
    assert table_of(read_vectors(write(content))) == TABLE


@pytest.mark.parametrize("packing", ["bzip2", "xz", "Zstandard"])
def test_padding_between_frames(write, packing):
    pack = PACKERS[packing]
    assert table_of(read_vectors(write(pack(b"the 1 2\no") + bytes(8) + pack(b"f 3 4\n")))) == TABLE


@pytest.mark.parametrize("packing", COMPRESSIONS)
@pytest.mark.parametrize("end", [b"more than a few bytes of something", b"\0\0\0\1"])
def test_other_bytes_after_a_frame_are_damage(write, packing, end):
    pack = PACKERS[packing]
    # Otherwise the rows of the second frame would be lost silently.
    for rest in (end, end + pack(b"of 3 4\n")):
        with pytest.raises(VectorFormatError, match=f"found {packing} data that is damaged or cut short"):
            read_vectors(write(pack(b"the 1 2\n") + rest))


def test_a_frame_of_another_compression_is_damage(write):
    for packing in ("bzip2", "xz", "Zstandard"):
        other = "xz" if packing == "bzip2" else "bzip2"
        with pytest.raises(VectorFormatError, match=f"found {packing} data that is damaged"):
            read_vectors(write(PACKERS[packing](b"the 1 2\n") + PACKERS[other](b"of 3 4\n")))


@pytest.mark.parametrize(
    "content",
    [
        zstandard.compress(b"the 1 2\n") + SKIPPABLE + zstandard.compress(b"of 3 4\n"),
        SKIPPABLE + zstandard.compress(b"the 1 2\nof 3 4\n") + SKIPPABLE,
        zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress(b"the 1 2\nof 3 4\n"),
    ],
)
def test_zstandard_frames_of_other_tools(write, content):
    assert table_of(read_vectors(write(content))) == TABLE


@pytest.mark.parametrize("library", ["zstandard", "compression.zstd"])
def test_each_library_reads_the_same(monkeypatch, library):
    module = pytest.importorskip(library)
    for name in ("zstandard", "compression.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, library, module)
    content = b"".join(b"w%d 1 %d\n" % (number, number) for number in range(100_000))
    packed = [zstandard.compress(part) for part in (content[:700_000], content[700_000:])]
    whole = SKIPPABLE + packed[0] + bytes(3) + packed[1]
    assert frames.open_zstd(io.BufferedReader(io.BytesIO(whole)), "").read() == content
    for damaged in (whole[:-1], whole[:40], whole[:-50] + b"x" * 50, whole + b"x"):
        with pytest.raises(EOFError):
            frames.open_zstd(io.BufferedReader(io.BytesIO(damaged)), "").read()


@pytest.mark.parametrize("pack", [bytes, lambda data: zipped(**{"a.zst": data, "b.txt": b"the 1 2\n"})])
def test_a_missing_library_is_named_with_its_extra(monkeypatch, write, pack):
    for name in ("zstandard", "compression.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    path = write(pack(zstandard.compress(b"the 1 2\n")))
    with pytest.raises(ImportError, match=rf'{path}.* needs the library zstandard, .* "splitembed\[zstd\]"'):
        read_vectors(path)


@pytest.mark.parametrize(
    ("packing", "most_bytes"), [("bzip2", 10_000_000), ("xz", 10_000_000), ("Zstandard", 80_000_000)]
)
def test_highly_compressed_data_is_decompressed_in_pieces(packing, most_bytes):
    packed = PACKERS[packing](b"0" * 100_000_000)
    opener = {"bzip2": bz2.BZ2Decompressor, "xz": lzma.LZMADecompressor}.get(packing)
    file = io.BufferedReader(io.BytesIO(packed))
    content = Frames(file, opener) if opener else frames.open_zstd(file, "")
    tracemalloc.start()
    num_bytes = sum(iter(lambda: len(content.read(1 << 20)), 0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert num_bytes == 100_000_000 and peak < most_bytes
