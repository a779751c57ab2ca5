"""Unreadable sources: each unsupported format is refused by name with the next step."""

import io
import json
import pickle
import sqlite3
import tarfile

import numpy as np
import pytest

from splitembed.errors import VectorFormatError
from splitembed.vectors import read_vectors
from tests.helpers.packings import COMPRESSIONS, PACKERS, zipped


def written(write, *values) -> bytes:
    stream = io.BytesIO()
    write(stream, *values)
    return stream.getvalue()


def tarred() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("glove.txt"))
    return stream.getvalue()


ROWS = {"the": [1.0, 2.0], "of": [3.0, 4.0]}
FOREIGN = {
    "a pickle": (b"\x80\x04", "trust"),
    "a pickle ": (pickle.dumps(ROWS), "trust"),
    "a pickle  ": (pickle.dumps(ROWS, protocol=2), "trust"),
    "a pickle   ": (pickle.dumps(ROWS, protocol=0), "trust"),
    "a NumPy .npy array": (written(np.save, np.eye(3)), "numpy.load"),
    "a tar archive": (tarred(), "Unpack"),
    "UTF-16 text": ("the 1 2\nof 3 4\n".encode("utf-16"), "UTF-8"),
    "a web page": (b"<!DOCTYPE html>...", "Download"),
    "a web page ": (
        b"\xef\xbb\xbf\r\n<html>\n<head><title>404</title></head>\n<body>Not Found</body></html>\n",
        "Download",
    ),
    "JSON": (json.dumps(ROWS).encode(), "json"),
    "JSON ": (json.dumps(ROWS, indent=2).encode(), "json"),
    "JSON  ": (b'[["the", 1, 2], ["of", 3, 4]]', "json"),
    "a Git LFS pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n",
        "git lfs pull",
    ),
    "an SQLite database": (b"SQLite format 3\0" + bytes(84), "library"),
    "a Parquet file": (b"PAR1\x15\x04\x15\x10", "library"),
    "a 7z archive": (b"7z\xbc\xaf\x27\x1c\0\4", "Unpack"),
    "a RAR archive": (b"Rar!\x1a\x07\x01\0", "Unpack"),
    "a PDF document": (b"%PDF-1.7\n1 0 obj\n", "Download"),
    "an HDF5 file": (b"\x89HDF\r\n\x1a\n" + bytes(88), "Decompress it first"),
    "a safetensors file": (b"\x40\0\0\0\0\0\0\0" + b'{"weight":{"dtype":"F32"}}', "Decompress it first"),
}
# A plain file of these formats has words beside it, or is refused by its own reader.
READ_BY_PATH = {"a NumPy .npy array", "an HDF5 file", "a safetensors file"}


@pytest.mark.parametrize("name", FOREIGN)
def test_B5_H6_a_foreign_format_is_refused_by_its_name(deliver, name):
    content, next_step = FOREIGN[name]
    source = deliver(content)
    if name in READ_BY_PATH:
        source = io.BytesIO(content)
    with pytest.raises(VectorFormatError) as caught:
        read_vectors(source)
    message = str(caught.value)
    assert f": found {name.strip()}" in message and "; expected " in message and next_step in message


@pytest.mark.parametrize("format", ["text", "word2vec-binary", "word2vec-binary-float16", "fasttext-bin"])
def test_a_foreign_format_is_refused_for_every_value_of_format(tmp_path, format):  # noqa: A002
    path = tmp_path / "vectors.txt"
    path.write_bytes(FOREIGN["a web page"][0])
    with pytest.raises(VectorFormatError, match="found a web page"):
        read_vectors(path, format=format)


def test_B5_a_pickle_is_never_loaded(packed):
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("the pickle was loaded",)

    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(VectorFormatError, match="pickle"):
            read_vectors(packed(pickle.dumps(Bomb(), protocol)))


def test_B5_a_fasttext_model_that_is_all_magic(deliver):
    with pytest.raises(VectorFormatError, match=r"found a fastText \.bin model of dim 0; .* get it again"):
        read_vectors(deliver(b"\xba\x16\x4f\x2f\x0c\0\0\0"))


@pytest.mark.parametrize("outer", COMPRESSIONS)
@pytest.mark.parametrize("inner", [*COMPRESSIONS, "zip"])
def test_data_compressed_three_times(write, outer, inner):
    path = write(PACKERS[outer](PACKERS[outer](PACKERS[inner](b"the 1 2\n"))))
    with pytest.raises(
        VectorFormatError, match=f"found {'a zip archive' if inner == 'zip' else inner + ' data'} inside"
    ):
        read_vectors(path)


ARCHIVES = {
    "a NumPy .npz archive": ["words.npy", "vectors.npy"],
    "a Keras model": ["metadata.json", "config.json", "model.weights.h5"],
    "a PyTorch file": ["archive/data.pkl", "archive/data/0", "archive/version"],
    "an Office document": ["[Content_Types].xml", "word/document.xml"],
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_formats_that_are_zip_archives(name):
    archive = io.BytesIO(zipped(**dict.fromkeys(ARCHIVES[name], b"the 1 2\n")))
    with pytest.raises(VectorFormatError, match=f"the open file: found {name}.*; expected text"):
        read_vectors(archive)


def test_a_real_database_is_named(tmp_path):
    path = tmp_path / "vectors.magnitude"
    with sqlite3.connect(path) as database:
        database.execute("create table magnitude (key text)")
    with pytest.raises(VectorFormatError, match="SQLite"):
        read_vectors(path)


@pytest.mark.parametrize(
    "word", ["<html>", "<!DOCTYPE", "{", "[", "%PDF-1.4", "GGUF", "PAR1", "SQLite", "(dp0", "ustar", "7z"]
)
def test_a_word_that_a_format_begins_with_is_a_word(write, word):
    path = write(f"{word} 0.1 0.2\n<html> 0.3 0.4\n".encode() if word != "<html>" else b"<html> 0.1 0.2\n")
    assert word in read_vectors(path).words
