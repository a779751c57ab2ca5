"""Pickles: only loaded with allow_pickle=True, then those of gensim, and any pickled pairs and dicts."""

import bz2
import gzip
import pickle

import numpy as np
import pytest

from splitembed.errors import VectorFormatError
from splitembed.vectors import VectorSource, read_vectors
from splitembed.vectors.pairs.pickles import is_pickle
from tests.helpers.reference import table_of

WORDS = ["the", "of"]
MATRIX = np.array([[1, 2], [3, 4]], np.float32)
TABLE = dict(zip(WORDS, MATRIX.tolist(), strict=True))


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("a pickle was loaded",)


@pytest.mark.parametrize("protocol", range(2, 6))
@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress])
def test_B5_a_pickle_is_only_loaded_with_allow_pickle(tmp_path, protocol, compress):
    path = tmp_path / "v.txt"
    path.write_bytes(compress(pickle.dumps(Bomb(), protocol)))
    assert is_pickle(path)
    with pytest.raises(VectorFormatError, match=r"found a pickle, which can run any code .*pass allow_pickle=True"):
        read_vectors(path)
    with pytest.raises(VectorFormatError, match="found a pickle"):
        read_vectors((path, MATRIX), allow_pickle=True)


@pytest.mark.parametrize("content", [{"the": [1, 2], "of": [3, 4]}, (WORDS, MATRIX), [WORDS, MATRIX.tolist()]])
@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress])
@pytest.mark.parametrize("protocol", range(2, 6))
def test_pickled_pairs_and_dicts(tmp_path, content, compress, protocol):
    path = tmp_path / "v.pkl"
    path.write_bytes(compress(pickle.dumps(content, protocol)))
    assert table_of(read_vectors(path, allow_pickle=True)) == TABLE
    assert table_of(read_vectors(VectorSource(path, allow_pickle=True), ["of"])) == {"of": [3, 4]}


def test_old_protocols_too(tmp_path):
    path = tmp_path / "v.pkl"
    for protocol in (0, 1):
        path.write_bytes(pickle.dumps((WORDS, MATRIX), protocol))
        with pytest.raises(VectorFormatError, match="found"):
            read_vectors(path)
    path.write_bytes(pickle.dumps({"the": [1, 2], "of": [3, 4]}, 0))
    assert table_of(read_vectors(path, allow_pickle=True)) == TABLE


@pytest.mark.parametrize("content", ["glove.txt", ["the"], None, 7])
def test_a_pickle_of_anything_else_is_no_source(tmp_path, content):
    (tmp_path / "v.pkl").write_bytes(pickle.dumps(content))
    with pytest.raises(VectorFormatError, match=r"v\.pkl: found a pickle of .*; expected a dict"):
        read_vectors(tmp_path / "v.pkl", allow_pickle=True)


def test_a_pickle_cut_short_is_named(tmp_path):
    (tmp_path / "v.pkl").write_bytes(pickle.dumps((WORDS, MATRIX))[:60])
    with pytest.raises(VectorFormatError, match=r"v\.pkl: found a pickle that cannot be loaded here"):
        read_vectors(tmp_path / "v.pkl", allow_pickle=True)


@pytest.mark.parametrize(
    "content", [b"cnumpy 0.1 0.2\nthe 1 2\n", b"( 1 2\n", b"(lp 1 2\n", b"\xc2\x80 1 2\n", b"cgensim.x 1 2\nc 1 2\n"]
)
def test_words_that_look_like_the_mark_of_a_pickle(tmp_path, content):
    (tmp_path / "v.txt").write_bytes(content)
    for allow_pickle in (False, True):
        word = content.split(b" ")[0].decode()
        assert read_vectors(tmp_path / "v.txt", allow_pickle=allow_pickle).words[0] == word
