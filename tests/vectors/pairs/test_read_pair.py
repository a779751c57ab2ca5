"""Pairs of words and rows: a dict, (words, matrix), KeyedVectors and WordVectors give the same table."""

from collections import OrderedDict
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

from splitembed.errors import VectorFileWarning, VectorFormatError
from splitembed.vectors import WordVectors, iter_vectors, read_vectors
from splitembed.words import Words
from tests.helpers.reference import table_of

TABLE = {"the": [1.0, 2.0], "of": [3.0, 4.0], "": [0.5, 0.25]}
WORDS, MATRIX = list(TABLE), np.array(list(TABLE.values()))

SOURCES = {
    "dict of lists": TABLE,
    "dict of arrays": {word: np.float16(row) for word, row in TABLE.items()},
    "other mapping": MappingProxyType(OrderedDict(TABLE)),
    "pair": (WORDS, MATRIX),
    "pair of tuples": (tuple(WORDS), tuple(map(tuple, MATRIX))),
    "list of two": [WORDS, MATRIX.tolist()],
    "float32": (WORDS, MATRIX.astype(np.float32)),
    "big-endian": (WORDS, MATRIX.astype(">f4")),
    "Fortran order": (WORDS, np.asfortranarray(MATRIX, np.float32)),
    "words of NumPy": (np.array(WORDS), MATRIX),
    "words of ours": (Words.from_list(WORDS), MATRIX),
    "words of two kinds of str": (["the", np.str_("of"), ""], MATRIX),
    "keyed vectors": SimpleNamespace(index_to_key=WORDS, vectors=MATRIX),
    "WordVectors": WordVectors(WORDS, MATRIX.astype(np.float32), "by hand"),
    "WordVectors that share a matrix": WordVectors(
        WORDS, MATRIX[[2, 0, 1]].astype(np.float32), "by hand", row_of=np.array([1, 2, 0])
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_same_table(name):
    source = SOURCES[name]
    vectors = read_vectors(source, dim=2)
    assert table_of(vectors) == TABLE
    assert vectors.matrix.flags.c_contiguous and vectors.matrix.ctypes.data % 64 == 0
    assert all(isinstance(word, str) for word in vectors.words)
    assert table_of(read_vectors(source, ["", "unheard", "of"])) == {"of": [3.0, 4.0], "": [0.5, 0.25]}
    assert table_of(read_vectors(read_vectors(source))) == TABLE
    with pytest.raises(VectorFormatError, match=": found rows of dim 2; expected dim=3"):
        read_vectors(source, dim=3)


def test_the_rows_are_a_copy():
    matrix = MATRIX.astype(np.float32)
    vectors = read_vectors((WORDS, matrix))
    matrix[:] = 0
    assert table_of(vectors) == TABLE


def test_many_rows_are_read_in_blocks(tmp_path):
    matrix = np.memmap(tmp_path / "rows", np.float32, "w+", shape=(10_000, 3))
    matrix[:] = np.arange(30_000).reshape(10_000, 3)
    words = [f"w{number}" for number in range(10_000)]
    blocks = list(iter_vectors((words, matrix)))
    assert len(blocks) > 2 and [word for block in blocks for word in block.words] == words
    assert np.array_equal(np.concatenate([block.vectors for block in blocks]), matrix)
    assert table_of(read_vectors((words, matrix), ["w9999"])) == {"w9999": [29997, 29998, 29999]}


def test_empty_sources():
    assert read_vectors(([], np.zeros((0, 3)))).vectors.shape == (0, 3)
    assert read_vectors({}, dim=4).vectors.shape == (0, 4)
    with pytest.raises(VectorFormatError, match="dict: found no row and no `dim`"):
        read_vectors({})


def test_Y1_the_first_of_two_wins():
    with pytest.warns(VectorFileWarning, match=r"\(words, matrix\): duplicate words, .*: 1 \(first: row 2\)"):
        vectors = read_vectors((["the", "of", "the"], [[1, 1], [2, 2], [3, 3]]))
    assert table_of(vectors) == {"the": [1, 1], "of": [2, 2]}


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
def test_N3_values_that_are_not_finite(value):
    for source in ({"a": [1, 2], "b": [value, 3]}, (["a", "b"], np.array([[1, 2], [value, 3]]))):
        with pytest.raises(VectorFormatError, match=r"row 1: found \S+ in the row of 'b'"):
            read_vectors(source)
        with pytest.warns(VectorFileWarning, match=r"replaced by 0: 1 \(first: row 1\)"):
            vectors = read_vectors(source, non_finite="zero")
        assert table_of(vectors) == {"a": [1, 2], "b": [0, 3]}
        assert read_vectors(source, ["a"]).words == ["a"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ((["a"], [[1, 2], [3, 4]]), r"\(words, matrix\): found 1 words and rows of shape \(2, 2\)"),
        ((["a", "b"], [1, 2]), r"found 2 words and rows of shape \(2,\)"),
        ((["a", "b"], np.zeros((2, 2, 2))), r"found 2 words and rows of shape \(2, 2, 2\)"),
        ((["a", "b"], [[1, 2], [3]]), r"found 2 words and rows of shape \(\)"),
        (SimpleNamespace(index_to_key=["a"], vectors=np.zeros((2, 2))), "SimpleNamespace: found 1 words"),
        ((["a", 7], [[1, 2], [3, 4]]), "row 1: found 7 of type int; expected a str"),
        ((["a", b"b"], [[1, 2], [3, 4]]), "row 1: found b'b' of type bytes"),
        ({"a": [1, 2], 7: [3, 4]}, "row 1: found 7 of type int"),
        ({"a": [1, 2], "b": [3]}, r"row 1: found shape \(1,\) for 'b'; expected \(2,\)"),
        ({"a": [[1, 2]]}, r"row 0: found shape \(1, 2\) for 'a'"),
        ({"a": 1.0}, r"row 0: found shape \(\) for 'a'"),
        ({"a": ["0.1", "0.2"]}, "row 0: found dtype <U3; expected real numbers"),
        ({"a": [1, [2]]}, "row 0: found dtype object"),
        ({"a": [1, 2], "b": [1j, 2]}, "row 1: found dtype complex128"),
        ((["a"], [[True, False]]), "row 0: found dtype bool"),
        (SimpleNamespace(wv=SimpleNamespace()), "Found a whole model, SimpleNamespace; .* Pass model.wv"),
        (np.zeros((2, 2)), r"For one dense matrix in id order there is SplitTable\.from_matrix"),
        (["a", "b", "c"], r"`source` must be the path of .* Received: \['a', 'b', 'c'\] \(of type list"),
        (None, "Received: None"),
        (7, "Received: 7"),
    ],
)  # fmt: skip
def test_invalid_sources_are_refused(source, message):
    with pytest.raises(VectorFormatError, match=message):
        read_vectors(source)


def test_rows_that_words_share_stay_shared():
    shared = WordVectors(["a", "b", "c"], MATRIX.astype(np.float32), "by hand", row_of=np.array([2, 0, 2]))
    vectors = read_vectors(shared)
    assert vectors.words == ["a", "b", "c"] and vectors.row_of.tolist() == [1, 0, 1]
    assert vectors.matrix.tolist() == MATRIX[[0, 2]].tolist() and vectors.vectors.tolist() == shared.vectors.tolist()
    assert read_vectors(shared, ["b"]).row_of is None
    with pytest.warns(VectorFileWarning, match=r"duplicate words, .*: 1 \(first: row 1\)"):
        again = read_vectors(WordVectors(["a", "a", "b"], shared.matrix, row_of=np.array([2, 0, 2])))
    assert table_of(again) == {"a": MATRIX[2].tolist(), "b": MATRIX[2].tolist()}


def test_many_words_on_few_rows_in_blocks(monkeypatch):
    monkeypatch.setattr("splitembed.vectors.pairs.rows.NUM_BLOCK_ROWS", 7)
    generator = np.random.default_rng(0)
    matrix, row_of = generator.random((30, 3)).astype(np.float32), generator.integers(0, 30, 100)
    source = WordVectors([f"w{number}" for number in range(100)], matrix, row_of=row_of)
    for vocabulary in (None, [f"w{number}" for number in range(0, 200, 3)]):
        vectors = read_vectors(source, vocabulary)
        positions = [int(word[1:]) for word in vectors.words]
        assert np.array_equal(vectors.vectors, matrix[row_of[positions]])
        assert len(vectors.matrix) == len(set(row_of[positions].tolist()))
        blocks = list(iter_vectors(source, vocabulary))
        assert [word for block in blocks for word in block.words] == vectors.words
        assert np.array_equal(np.concatenate([block.vectors for block in blocks]), vectors.vectors)


def test_the_subwords_are_kept():
    source = WordVectors(["a"], np.ones((1, 2), np.float32), subwords="the subwords")
    assert read_vectors(source).subwords == "the subwords"


def test_sparse_and_masked_matrices_are_refused():
    sparse = SimpleNamespace(shape=(2, 2), dtype=np.dtype(float), toarray=None, __getitem__=None)
    with pytest.raises(VectorFormatError, match=r"found a sparse matrix.*Pass matrix\.toarray\(\)"):
        read_vectors((["a", "b"], sparse))
    with pytest.raises(VectorFormatError, match=r"found a masked array.*filled"):
        read_vectors((["a", "b"], np.ma.masked_equal([[1, 2], [3, 4]], 3)))


def test_a_masked_row_is_refused():
    with pytest.raises(VectorFormatError, match=r"dict, row 1: found a masked array; .*filled"):
        read_vectors({"the": [1, 2], "of": np.ma.array([1.0, 2.0], mask=[False, True])})
