"""Zip archives: the one file of vectors, or an error that lists the members."""

import io
import struct
import tracemalloc
import zipfile

import pytest

from splitembed.errors import VectorFormatError
from splitembed.vectors import read_vectors
from tests.helpers.packings import PACKERS, zipped
from tests.helpers.reference import f, table_of

TWO = b"the 1 2\nof 3 4\n"
THREE = b"the 1 2 3\nof 3 4 5\n"
TABLE = {"the": [1, 2], "of": [3, 4]}
GLOVE = {"v.2d.txt": TWO, "v.3d.txt": THREE, "__MACOSX/._v": b"\0\5\x16\7"}


def test_X1_chosen_by_member_or_by_dim(write):
    path = write(zipped(**GLOVE))
    assert table_of(read_vectors(path, member="v.2d.txt")) == TABLE
    assert table_of(read_vectors(path, dim=2)) == TABLE
    assert read_vectors(path, dim=3).dim == read_vectors(path, member="v.3d.txt").dim == 3
    with pytest.raises(VectorFormatError) as caught:
        read_vectors(path)
    assert str(caught.value) == (
        f"{path}: found 2 in a zip archive of 3 files; expected one file of vectors. Pass the name of one as `member`: "
        "'v.2d.txt' (15 bytes, dim 2); 'v.3d.txt' (19 bytes, dim 3); '__MACOSX/._v' (4 bytes)."
    )
    with pytest.raises(
        VectorFormatError, match=r"found 0 in a zip archive of 3 files; expected one file .* of dim 4\."
    ):
        read_vectors(path, dim=4)
    with pytest.raises(VectorFormatError, match=": found rows of dim 3; expected dim=2"):
        read_vectors(path, dim=2, member="v.3d.txt")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_every_compression_method_of_zip(write, method):
    assert table_of(read_vectors(write(zipped(TWO, method=method)))) == TABLE


@pytest.mark.parametrize(
    "name",
    [
        "__MACOSX/._v.txt",
        "a/.DS_Store",
        "README",
        "readme.md",
        "a/b/README.txt",
        "LICENSE",
        "licence.txt",
        "folder/",
        "Read_Me",
    ],
)
def test_extra_files_are_ignored(write, name):
    beside = b"" if name.endswith("/") else b"word 1 2\n"
    assert table_of(read_vectors(write(zipped(**{name: beside, "v.txt": TWO})))) == TABLE


def test_the_only_file_that_holds_vectors(write):
    members = {
        "meta.json": b'{"dim": 2}',
        "notes.txt": b"These are the vectors.\n",
        "model.bin": TWO,
        "table.npy": b"\x93NUMPY",
    }
    assert table_of(read_vectors(write(zipped(**members)))) == TABLE


def test_the_name_without_its_folders(write):
    path = write(zipped(**{"a/v.txt": TWO, "a/w.txt": THREE, "b/w.txt": TWO}))
    assert table_of(read_vectors(path, member="v.txt")) == TABLE
    assert table_of(read_vectors(path, member="b/w.txt")) == TABLE
    with pytest.raises(
        VectorFormatError, match=r"found 2 of 3 files in a zip archive called 'w\.txt'; expected one. Pass"
    ):
        read_vectors(path, member="w.txt")
    with pytest.raises(
        VectorFormatError, match=r"found 0 of 3 files .*'a/v\.txt' \(15 bytes\); 'a/w\.txt' \(19 bytes\)"
    ):
        read_vectors(path, member="a")


def test_an_extra_file_is_read_if_it_is_named(write):
    path = write(zipped(**{"README": TWO, "v.txt": THREE}))
    assert table_of(read_vectors(path, member="README")) == TABLE


def test_an_archive_without_vectors(write):
    for content in (zipped(**{"folder/": b""}), zipped(README=b"the 1 2\n"), b"PK\5\6" + bytes(18)):
        with pytest.raises(
            VectorFormatError, match=r"found 0 in a zip archive of \d files; expected one file of vectors"
        ):
            read_vectors(write(content))


def test_a_long_list_is_cut(write):
    path = write(zipped(**{f"{number}.txt": TWO for number in range(30)}))
    with pytest.raises(VectorFormatError, match=r"'19\.txt' \(15 bytes, dim 2\); and 10 others\."):
        read_vectors(path)


def test_word2vec_binary_in_an_archive(write):
    binary = b"2 2\nthe " + f(1, 2) + b"of " + f(3, 4)
    path = write(zipped(**{"model.bin": binary, "model.txt": b"2 3\n" + THREE}))
    assert table_of(read_vectors(path, dim=2)) == TABLE


def test_zip64(write):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive, archive.open("v.txt", "w", force_zip64=True) as file:
        file.write(TWO)
    assert table_of(read_vectors(write(stream.getvalue()))) == TABLE


def patched(content: bytes, offset: int, value: int) -> bytes:
    """An archive of one file with 16 bits changed in both of its headers."""
    content = bytearray(content)
    central = content.rfind(b"PK\1\2")
    struct.pack_into("<H", content, 4 + offset, value)
    struct.pack_into("<H", content, central + 6 + offset, value)
    return bytes(content)


def test_an_encrypted_member(write):
    path = write(patched(zipped(TWO), 2, 1))
    with pytest.raises(VectorFormatError, match=r"found vectors\.txt encrypted; expected a file without a password"):
        read_vectors(path)


def test_an_unsupported_compression_method(write):
    path = write(patched(zipped(TWO), 4, 97))
    with pytest.raises(
        VectorFormatError, match=r"packed by a method that Python cannot read \(.*method.*\); expected a zip"
    ):
        read_vectors(path)


def test_a_bad_checksum(write):
    packed = bytearray(zipped(b"the 1 2\n" * 1000, method=zipfile.ZIP_STORED))
    packed[500] ^= 1
    with pytest.raises(VectorFormatError, match=r"vectors\.txt, byte \d+ after .* found zip data that is damaged.*CRC"):
        read_vectors(write(packed), strict=True)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_that_is_cut_short_anywhere(write, method):
    packed = zipped(TWO, method=method)
    for num_bytes in range(4, len(packed)):
        with pytest.raises(VectorFormatError, match="found a zip archive that is damaged or cut short"):
            read_vectors(write(packed[:num_bytes]))


def test_any_byte_changed_gives_the_rows_or_an_error(write):
    packed = zipped(TWO)
    for position in range(len(packed)):
        damaged = bytearray(packed)
        damaged[position] ^= 0x55
        try:
            vectors = read_vectors(write(damaged))
        except VectorFormatError:
            continue
        assert table_of(vectors) == TABLE, position


def test_a_wrong_size_in_the_archive_allocates_nothing(write):
    packed = bytearray(zipped(b"2 2\nthe " + f(1, 2) + b"of " + f(3, 4), method=zipfile.ZIP_STORED))
    central = packed.rfind(b"PK\1\2")
    # The size of the content.
    struct.pack_into("<I", packed, central + 24, 0xFFFFFFF0)
    path = write(packed)
    tracemalloc.start()
    assert table_of(read_vectors(path)) == TABLE
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


@pytest.mark.parametrize("packing", PACKERS)
def test_a_damaged_member_is_skipped_unless_it_is_named(write, packing):
    inner = PACKERS[packing](TWO * 500)
    path = write(zipped(**{"a.txt": TWO, "b.txt": inner[: len(inner) // 2] if packing != "plain" else b"?"}))
    assert table_of(read_vectors(path, ["the", "of"])) == TABLE
    with pytest.raises(VectorFormatError):
        read_vectors(path, member="b.txt")


def test_an_empty_archive_has_no_member_to_name(tmp_path):
    with zipfile.ZipFile(tmp_path / "v.zip", "w"):
        pass
    with pytest.raises(
        VectorFormatError, match="found 0 in a zip archive of 0 files; .* Pass an archive that holds a file of vectors"
    ):
        read_vectors(tmp_path / "v.zip")
