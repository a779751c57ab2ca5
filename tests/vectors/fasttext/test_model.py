"""A model is read in one pass: its words, then the vectors of any words, from a file and from a stream."""

import io

import numpy as np
import pytest

from splitembed.errors import VectorFormatError
from splitembed.vectors.fasttext import model as model_module
from splitembed.vectors.fasttext.model import Model
from splitembed.vectors.read_checks import ReadChecks
from tests.helpers.fasttext_models import model_bytes, vector_of

WORDS = [b"the", b"of", b"and"]
OPTIONS = {"bucket": 5, "minn": 2, "maxn": 3}
ROWS = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
CONTENT = model_bytes(WORDS, ROWS, **OPTIONS)


@pytest.fixture(params=["file", "stream"])
def open_content(request, tmp_path):
    """Returns a function that makes a Model of bytes."""

    def open_content(content, **options):
        if request.param == "stream":
            return Model(io.BytesIO(content), ReadChecks("model.bin", **options), None)
        path = tmp_path / "model.bin"
        path.write_bytes(content)
        return Model(path.open("rb"), ReadChecks("model.bin", **options), len(content))

    return open_content


def test_words_and_their_rows(open_content):
    model = open_content(CONTENT)
    assert (model.header.dim, model.header.num_words) == (4, 3)
    found = model.find_words(frozenset([b"and", b"the", b"usr"]))
    assert (found.raw, found.rows.tolist()) == ([b"the", b"and"], [0, 2])


@pytest.mark.parametrize("at_once", [1, 2, 4096])
def test_the_vectors_of_any_words_in_the_order_given(open_content, monkeypatch, at_once):
    monkeypatch.setattr(model_module, "_WORDS_AT_ONCE", at_once)
    model = open_content(CONTENT)
    model.find_words(frozenset())
    queries = [b"of", b"usr", b"the", b"of", b""]
    own_rows = np.array([1, -1, 0, 1, -1])
    parts = list(model.iter_means(queries, own_rows))
    assert {len(part) for part in parts[:-1]} <= {at_once}
    expected = [vector_of(word, WORDS, ROWS, **OPTIONS) for word in queries]
    np.testing.assert_allclose(np.concatenate(parts), expected, rtol=1e-6, atol=1e-6)


def test_no_words_give_one_empty_block_after_the_model_was_checked(open_content):
    model = open_content(CONTENT)
    model.find_words(frozenset())
    assert [part.shape for part in model.iter_means([], np.zeros(0, np.int64))] == [(0, 4)]
    model = open_content(CONTENT[:-1])
    model.find_words(frozenset())
    with pytest.raises(VectorFormatError, match="bytes of the output matrix"):
        next(iter(model.iter_means([], np.zeros(0, np.int64))))


def test_another_dim_than_the_requested_one_is_an_error(open_content):
    with pytest.raises(VectorFormatError, match="found rows of dim 4; expected dim=3"):
        open_content(CONTENT, dim=3)
