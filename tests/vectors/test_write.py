"""Files of vectors as they are written: golden bytes, the same rows when read back, and refusals that leave no file."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import SplitError, VectorFormatError, VocabularyError
from splitembed.vectors import read_vectors
from splitembed.vectors.write import FORMATS, write_vectors

WORDS = ["the", "é"]
MATRIX = np.array([[0.1, -2.0], [1e-7, 0.5]], np.float32)
GOLDEN = {
    "glove": "the 0.1 -2.0\né 1e-07 0.5\n".encode(),
    "word2vec": "2 2\nthe 0.1 -2.0\né 1e-07 0.5\n".encode(),
    "word2vec-binary": b"2 2\nthe %b\n\xc3\xa9 %b\n" % (struct.pack("<2f", 0.1, -2), struct.pack("<2f", 1e-7, 0.5)),
}


def write(path, words=WORDS, matrix=MATRIX, **options):
    return write_vectors(path, words, matrix.__getitem__, matrix.shape[1], **options)


@pytest.mark.parametrize("format", FORMATS)
def test_golden_bytes(tmp_path, format):  # noqa: A002
    assert write(tmp_path / "v", format=format) == []
    assert (tmp_path / "v").read_bytes() == GOLDEN[format]


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data())
def test_write_then_read_is_the_identity(tmp_path_factory, format, data):  # noqa: A002
    letters = st.characters(exclude_characters="\0\t\n\v\f\r \ufeff", exclude_categories=["Cs"])
    words = data.draw(st.lists(st.text(letters, min_size=1, max_size=5), min_size=2, max_size=9, unique=True))
    rows = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3)
    matrix = np.array(data.draw(st.lists(rows, min_size=len(words), max_size=len(words))), np.float32)
    path = tmp_path_factory.mktemp("write") / "v"
    write(path, words, matrix, format=format)
    options = {"format": "word2vec-binary-float32"} if format == "word2vec-binary" else {}
    vectors = read_vectors(path, dim=3, **options)
    assert vectors.words == words and vectors.vectors.tobytes() == matrix.tobytes()


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("", "is empty"),
        ("the", "is a duplicate"),
        ("a b", "holds ' '"),
        ("\ud800", "is not Unicode text"),
        ("x" * ((1 << 20) + 1), "has 1048577 bytes"),
    ],
)
def test_words_that_cannot_be_written_are_named_or_left_out(tmp_path, word, reason):
    matrix = np.ones((2, 1), np.float32)
    with pytest.raises(VocabularyError, match=rf"Word 1, .* cannot be written to a glove file: it {reason}"):
        write(tmp_path / "v", ["the", word], matrix)
    assert list(tmp_path.iterdir()) == []
    assert write(tmp_path / "v", ["the", word], matrix, skip_unwritable=True) == [word]
    assert (tmp_path / "v").read_bytes() == b"the 1.0\n"


@pytest.mark.parametrize(
    ("words", "matrix", "options", "error", "message"),
    [
        (WORDS, MATRIX, {"format": "npz"}, VectorFormatError, "`format` must be one of glove, word2vec, "),
        ([""], MATRIX[:1], {"skip_unwritable": True}, VocabularyError, "None of 1 words can be written to a glove"),
        (WORDS, np.array([[1.0], [np.nan]], np.float32), {}, SplitError, "The row of 'é' holds nan.*Fix the row"),
    ],
)  # fmt: skip
def test_an_error_leaves_no_file(tmp_path, words, matrix, options, error, message):
    with pytest.raises(error, match=message):
        write(tmp_path / "v", words, matrix, **options)
    assert list(tmp_path.iterdir()) == []


def test_blocks_of_any_size_give_the_same_file(tmp_path, monkeypatch):
    words, matrix = [f"w{number}" for number in range(50)], np.random.default_rng(0).normal(size=(50, 3))
    write(tmp_path / "whole", words, matrix.astype(np.float32))
    monkeypatch.setattr("splitembed.vectors.write.NUM_BLOCK_NUMBERS", 7)
    write(tmp_path / "blocks", words, matrix.astype(np.float32))
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "blocks").read_bytes()
