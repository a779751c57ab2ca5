"""Formats named by content: what is read, and what is refused under its real name with the next step."""

import io
import json
import pickle
import sqlite3
import struct
import tarfile
import zipfile

import h5py
import numpy as np
import pytest
from reference import f

from splitembed.errors import TableFormatError, VectorFormatError
from splitembed.vectors import read_vectors


def written(write, *values) -> bytes:
    stream = io.BytesIO()
    write(stream, *values)
    return stream.getvalue()


def zipped() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("glove.2d.txt", "the 1 2\n")
    return stream.getvalue()


def tarred() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("glove.txt"))
    return stream.getvalue()


ROWS = {"the": [1.0, 2.0], "of": [3.0, 4.0]}
FOREIGN = {
    "fastText .bin model": b"\xba\x16\x4f\x2f\x0c\0\0\0",
    "fastText .bin model ": struct.pack("<9i", 10, 5, 5, 5, 5, 1, 2, 2, 1000),
    "pickle": b"\x80\x04",
    "pickle ": pickle.dumps(ROWS),
    "pickle  ": pickle.dumps(ROWS, protocol=2),
    "pickle   ": pickle.dumps(ROWS, protocol=0),
    "NumPy .npy array": written(np.save, np.eye(3)),
    "zip archive": zipped(),
    "zip archive ": written(lambda stream: np.savez(stream, a=np.eye(3))),
    "tar archive": tarred(),
    "UTF-16 text": "the 1 2\nof 3 4\n".encode("utf-16"),
    "web page": b"<!DOCTYPE html>...",
    "web page ": b"\xef\xbb\xbf\r\n<html>\n<head><title>404</title></head>\n<body>Not Found</body></html>\n",
    "JSON": json.dumps(ROWS).encode(),
    "JSON ": json.dumps(ROWS, indent=2).encode(),
    "JSON  ": b'[["the", 1, 2], ["of", 3, 4]]',
    "Git LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n",
    "SQLite database": b"SQLite format 3\0" + bytes(84),
    "Parquet": b"PAR1\x15\x04\x15\x10",
    "Zstandard": b"\x28\xb5\x2f\xfd\x24\x10",
    "7z archive": b"7z\xbc\xaf\x27\x1c\0\4",
    "RAR archive": b"Rar!\x1a\x07\x01\0",
    "safetensors": b"\x40\0\0\0\0\0\0\0" + b'{"weight":{"dtype":"F32"}}',
    "PDF": b"%PDF-1.7\n1 0 obj\n",
}
NEXT_STEP = {
    "pickle": "if you trust it",
    "fastText": ".vec",
    "zip": "Unpack",
    "NumPy": "numpy.load",
    "web page": "Download",
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("format", ["auto", "text", "word2vec-binary"])
def test_B5_H6_a_foreign_format_is_refused_by_its_name(write, name, format):  # noqa: A002
    path = write(FOREIGN[name])
    with pytest.raises(VectorFormatError) as caught:
        read_vectors(path, format=format)
    message = str(caught.value)
    assert message.startswith(f"{path}: found ") and name.strip() in message and "; expected text" in message
    assert all(step in message for key, step in NEXT_STEP.items() if key in name)


def test_a_pickle_is_never_loaded(write):
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("the pickle was loaded",)

    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(VectorFormatError, match="pickle"):
            read_vectors(write(pickle.dumps(Bomb(), protocol)))


def test_a_real_database_is_named(tmp_path):
    path = tmp_path / "vectors.magnitude"
    with sqlite3.connect(path) as database:
        database.execute("create table magnitude (key text)")
    with pytest.raises(VectorFormatError, match="SQLite"):
        read_vectors(path)


def test_a_foreign_hdf5_file_is_refused_by_name(tmp_path):
    path = tmp_path / "weights.h5"
    with h5py.File(path, "w") as file:
        file["layers"] = np.eye(2)
    with pytest.raises(TableFormatError, match="HDF5 file of something else"):
        read_vectors(path)


@pytest.mark.parametrize(
    "word", ["<html>", "<!DOCTYPE", "{", "[", "%PDF-1.4", "GGUF", "PAR1", "SQLite", "(dp0", "ustar", "7z"]
)
def test_a_word_that_a_format_begins_with_is_a_word(write, word):
    path = write(f"{word} 0.1 0.2\n<html> 0.3 0.4\n".encode() if word != "<html>" else b"<html> 0.1 0.2\n")
    assert word in read_vectors(path).words


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n \n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_an_empty_file(write, content):
    with pytest.raises(VectorFormatError, match=r"is empty \(\d bytes\); expected rows"):
        read_vectors(write(content))


@pytest.mark.parametrize(
    "content",
    [b"the quick brown fox\n", b"the\nof\nand\n", b"the,0.1,0.2\n", b"\0" * 100, b"2 2\nthe quick\nbrown fox\n", b"x"],
)
def test_what_has_no_name(write, content):
    with pytest.raises(
        VectorFormatError, match=r"found no rows of vectors; it starts with b'.*Expected lines of a word"
    ):
        read_vectors(write(content))


def test_format_refuses_the_other(write):
    path = write(b"2 2\nthe 0.1 0.2\nof 0.3 0.4\n")
    assert len(read_vectors(path, format="text")) == 2
    with pytest.raises(VectorFormatError, match="found text; expected word2vec-binary, as asked for"):
        read_vectors(path, format="word2vec-binary")
    path = write(b"2 2\nthe " + f(1, 2) + b"of " + f(3, 4))
    with pytest.raises(VectorFormatError, match="found word2vec-binary; expected text, as asked for"):
        read_vectors(path, format="text")


def test_format_word2vec_binary_takes_records_that_look_like_words(write):
    content = b"2 1\nthe abcdof efgh"
    with pytest.raises(VectorFormatError, match="no rows of vectors"):
        read_vectors(write(content))
    vectors = read_vectors(write(content), format="word2vec-binary")
    assert vectors.words == ["the", "of"]
    assert vectors.vectors.tobytes() == b"abcdefgh"


def test_an_unknown_format_is_refused(write):
    with pytest.raises(
        VectorFormatError, match=r"`format` must be one of auto, text, word2vec-binary\. Received: 'glove'"
    ):
        read_vectors(write(b"the 1 2\n"), format="glove")


def test_most_rows_decide_the_dim_where_no_header_does(write):
    rows = b"".join(b"w%d 0.5 0.25\n" % number for number in range(60))
    years = b"".join(b"in %d 0.5 0.25\n" % number for number in range(1900, 1940))
    vectors = read_vectors(write(years + rows))
    assert vectors.dim == 2 and vectors.words[:2] == ["in 1900", "in 1901"]
    with pytest.raises(VectorFormatError, match="line 41: found 2 numbers"):
        read_vectors(write(years + rows[:195]))
    assert read_vectors(write(years + rows[:195]), dim=2).words[39:42] == ["in 1939", "w0", "w1"]


def test_one_row_is_enough_to_bear_out_a_header(write):
    years = b"".join(b"in %d 0.5 0.25\n" % number for number in range(1900, 1950))
    vectors = read_vectors(write(b"51 2\n" + years + b"of 0.5 0.25\n"))
    assert vectors.dim == 2 and vectors.words[-2:] == ["in 1949", "of"]


def test_the_larger_of_two_dims_is_taken_so_that_no_row_is_misread(write):
    with pytest.raises(VectorFormatError, match=r"line 1: found 2 numbers .* expected a word and 3 numbers"):
        read_vectors(write(b"the 0.1 0.2\nof 0.1 0.2 0.3\n"))
