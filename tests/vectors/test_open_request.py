"""Requests to open a source: each kind of source, and options that belong to another kind."""

import io

import numpy as np
import pytest

from splitembed.errors import VectorFormatError
from splitembed.tables import open_frozen, write_frozen
from splitembed.vectors import VectorSource, WordVectors, iter_vectors, read_vectors
from tests.helpers.reference import table_of

WORDS = ["the", "of"]
MATRIX = np.array([[1, 2], [3, 4]], np.float32)
TABLE = dict(zip(WORDS, MATRIX.tolist(), strict=True))
DICT = dict(zip(WORDS, MATRIX, strict=True))


def test_file_objects_and_standard_input(monkeypatch):
    content = b"the 1 2\nof 3 4\n"
    assert table_of(read_vectors(io.BytesIO(content))) == TABLE
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    vectors = read_vectors("-", ["of"])
    assert table_of(vectors) == {"of": [3, 4]} and vectors.source == "standard input"


def test_a_source_brings_its_options_to_every_reader():
    source = VectorSource({"the": [1.0, np.inf], "of": [3.0, 4.0]}, non_finite="zero")
    with pytest.warns(match="replaced by 0: 1"):
        assert read_vectors(source).vectors.tolist() == [[1, 0], [3, 4]]
    with pytest.warns(match="replaced by 0: 1"):
        assert next(iter(list(iter_vectors(source)))).vectors.tolist() == [[1, 0], [3, 4]]
    with pytest.raises(VectorFormatError, match="rows of dim 2; expected dim=3"):
        read_vectors(VectorSource(DICT, dim=3))
    for options in ({"dim": 2}, {"strict": True}, {"allow_pickle": True}, {"member": "a"}, {"datasets": "a"}):
        (name,) = options
        for read in (read_vectors, lambda *args, **options: list(iter_vectors(*args, **options))):
            with pytest.raises(VectorFormatError, match=f"Found `{name}` beside a VectorSource"):
                read(VectorSource(DICT), **options)


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match="dims"):
        list(iter_vectors(DICT, dims=2))


def test_options_of_other_sources_are_refused(tmp_path):
    write_frozen(tmp_path / "frozen.h5", MATRIX, words=WORDS)
    (tmp_path / "v.txt").write_text("the 1 2\nof 3 4\n")
    np.savez(tmp_path / "v.npz", np.array(WORDS), MATRIX)
    frozen, text, npz = (tmp_path / name for name in ("frozen.h5", "v.txt", "v.npz"))
    vectors = WordVectors(WORDS, MATRIX)
    for source in (
        DICT,
        (WORDS, MATRIX),
        vectors,
        open_frozen(frozen),
        frozen,
        tmp_path,
        text,
        "-",
        io.BytesIO(b"a 1"),
    ):
        with pytest.raises(VectorFormatError, match="Found datasets='a'; expected it only with HDF5"):
            read_vectors(source, datasets="a")
    for source in (DICT, (WORDS, MATRIX), vectors, open_frozen(frozen), frozen, npz, text):
        with pytest.raises(VectorFormatError, match="zip archive"):
            read_vectors(source, member="a")
    for source in (frozen, npz, tmp_path):
        with pytest.raises(VectorFormatError, match="; expected text, because of format='text'"):
            read_vectors(source, format="text")


def test_everything_that_is_accepted_is_listed():
    with pytest.raises(VectorFormatError) as caught:
        read_vectors(7)
    for name in ("text", "fastText .bin", "frozen.h5", ".npz", "HDF5", ".kv", "spaCy", "model2vec", '"-"', "dict"):
        assert name in str(caught.value)
