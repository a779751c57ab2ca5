"""Words and matrix in one .npz."""

import numpy as np
import pytest

from splitembed.errors import VectorFileWarning, VectorFormatError
from splitembed.vectors import VectorSource, iter_vectors, read_vectors
from tests.helpers.reference import table_of

WORDS = ["the", "é", "of"]
MATRIX = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
TABLE = dict(zip(WORDS, MATRIX.tolist(), strict=True))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("words", [np.array(WORDS), np.array([word.encode() for word in WORDS])])
@pytest.mark.parametrize("matrix", [MATRIX, np.asfortranarray(MATRIX), MATRIX.astype(">f8")])
def test_the_only_words_and_the_only_matrix(tmp_path, save, words, matrix):
    save(tmp_path / "v", tokens=words, weights=matrix, counts=np.arange(3))
    path = tmp_path / "v.npz"
    assert table_of(read_vectors(path)) == TABLE
    assert table_of(read_vectors(str(path), ["of", "unheard"])) == {"of": [5, 6]}
    assert table_of(read_vectors(path, datasets=("tokens", "weights"))) == TABLE
    assert [block.words for block in iter_vectors(VectorSource(path), ["é"])] == [["é"]]
    assert table_of(read_vectors((WORDS, path))) == TABLE
    assert table_of(read_vectors(VectorSource((WORDS, path), datasets="weights"))) == TABLE
    with pytest.raises(VectorFormatError, match=r"v\.npz: found rows of dim 2; expected dim=3"):
        read_vectors(path, dim=3)


def test_several_arrays_must_be_named(tmp_path):
    path = tmp_path / "v.npz"
    np.savez(path, a=np.array(WORDS), b=MATRIX, c=2 * MATRIX)
    with pytest.raises(VectorFormatError, match=r"found 2 arrays .*; expected one matrix.* 'b' \(3, 2\) float32"):
        read_vectors(path)
    with pytest.raises(VectorFormatError, match="found 2 arrays that may be meant; expected one matrix"):
        read_vectors((WORDS, path))
    assert read_vectors(path, ["of"], datasets=("a", "c")).vectors.tolist() == [[10, 12]]
    with pytest.raises(VectorFormatError, match="found no array 'd'; expected one. It holds 'a'"):
        read_vectors(path, datasets=("a", "d"))
    for datasets in ("a", ("a",), ("a", 1)):
        with pytest.raises(VectorFormatError, match="expected the names of the words and of the matrix"):
            read_vectors(path, datasets=datasets)
    with pytest.raises(VectorFormatError, match="expected the name of the matrix alone"):
        read_vectors((WORDS, path), datasets=("a", "b"))
    with pytest.raises(VectorFormatError, match=r"found words of shape \(3, 2\) .* Name the words first"):
        read_vectors(path, datasets=("b", "a"))


def test_words_of_another_number_are_refused(tmp_path):
    np.savez(tmp_path / "v.npz", a=np.array(WORDS[:2]), b=MATRIX)
    with pytest.raises(VectorFormatError, match=r"v\.npz: found 2 words and rows of shape \(3, 2\)"):
        read_vectors(tmp_path / "v.npz")


def test_words_as_python_objects_only_where_pickles_are_allowed(tmp_path):
    np.savez(tmp_path / "v.npz", words=np.array(WORDS, object), matrix=MATRIX)
    with pytest.raises(
        VectorFormatError, match=r"v\.npz, 'words': found an array of Python objects.*allow_pickle=True"
    ):
        read_vectors(tmp_path / "v.npz")
    assert table_of(read_vectors(tmp_path / "v.npz", allow_pickle=True)) == TABLE


def test_Y1_and_N3_and_words_that_are_not_utf8(tmp_path):
    np.savez(tmp_path / "v.npz", a=np.array([b"a", b"\xff", b"a"]), b=[[1, np.nan], [2, 3], [4, 5]])
    with pytest.raises(VectorFormatError, match=r"v\.npz, row 0: found nan in the row of 'a'"):
        read_vectors(tmp_path / "v.npz")
    with pytest.warns(
        VectorFileWarning, match="duplicate words.*: 1 .*not valid UTF-8.*: 1 .*replaced by 0: 1"
    ) as caught:
        vectors = read_vectors(tmp_path / "v.npz", non_finite="zero")
    assert table_of(vectors) == {"a": [1, 0], "\udcff": [2, 3]} and len(caught) == 1
    with pytest.raises(VectorFormatError, match="strict=True"):
        read_vectors(tmp_path / "v.npz", non_finite="zero", strict=True)


def test_empty_tables(tmp_path):
    np.savez(tmp_path / "v.npz", a=np.array([], "U1"), b=np.zeros((0, 3)))
    assert read_vectors(tmp_path / "v.npz").matrix.shape == (0, 3)
