"""Opened sources: each form is read whole and block by block, and shared rows are recognised."""

import contextlib

import numpy as np
import pytest

from splitembed.tables import open_frozen, write_frozen
from splitembed.vectors import Block, VectorSource, WordVectors
from splitembed.vectors.formats import open_vectors
from splitembed.vectors.open_request import OpenRequest
from splitembed.vectors.opened import RowStream, read_all, read_blocks, shares_rows
from splitembed.vectors.read import checks_of
from tests.helpers.reference import table_of

WORDS = ["the", "of", "and"]
MATRIX = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
TABLE = dict(zip(WORDS, MATRIX.tolist(), strict=True))


def forms(folder):
    (folder / "v.txt").write_text("the 1 2\nof 3 4\nand 5 6\n")
    write_frozen(folder / "frozen.h5", MATRIX, words=WORDS)
    return {"stream": folder / "v.txt", "table": open_frozen(folder / "frozen.h5"), "pair": (WORDS, MATRIX)}


@pytest.mark.parametrize("form", ["stream", "table", "pair"])
def test_each_form_gives_the_same_rows_whole_and_in_blocks(tmp_path, form):
    options = VectorSource(forms(tmp_path)[form])
    for read in (read_all, read_blocks):
        checks = checks_of(options)
        with contextlib.ExitStack() as stack:
            opened = open_vectors(OpenRequest(options, checks, stack))
            assert not shares_rows(opened)
            found = read(opened, checks)
            blocks = [found] if isinstance(found, WordVectors) else list(found)
        assert [word for block in blocks for word in block.words] == WORDS
        assert np.array_equal(np.concatenate([block.vectors for block in blocks]), MATRIX)


@pytest.mark.parametrize(
    ("source", "is_shared"),
    [
        (WordVectors(["a", "b"], MATRIX[:1], row_of=np.array([0, 0])), True),
        # Row 0 is padding, and every other word has its row alone.
        (({"red": 1, "sky": 2}, MATRIX), False),
        ({"the": [1.0]}, False),
    ],
)
def test_shared_rows_are_recognised(source, is_shared):
    options = VectorSource(source)
    with contextlib.ExitStack() as stack:
        assert shares_rows(open_vectors(OpenRequest(options, checks_of(options), stack))) is is_shared


def test_a_stream_brings_its_subwords():
    stream = RowStream(iter([Block(WORDS, MATRIX)]), open_subwords=lambda: "the subwords")
    vectors = read_all(stream, checks_of(VectorSource("v.bin")))
    assert table_of(vectors) == TABLE and vectors.subwords == "the subwords"
