"""Labelled rows and masks are aligned by their labels, or refused, wherever they come in."""

import numpy as np
import pytest

from splitembed import SplitTable, build_split, read_vectors
from splitembed.errors import UnknownTokenError, VectorFileWarning, VocabularyError
from splitembed.vocabulary import align_counts, read_vocabulary
from splitembed.vocabulary.labels import align_rows, labels_of, labels_of_mask, refuse_labels

ROWS = [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]


class Labelled:
    """The parts of a pandas DataFrame or Series that are used, so that the tests run without pandas."""

    iloc = None

    def __init__(self, values, index):
        self.values, self.index = np.asarray(values), index
        self.dtype = self.values.dtype

    def __array__(self, dtype=None, copy=None):
        return self.values

    def __iter__(self):
        return iter(self.values)

    def to_numpy(self):
        return self.values

    def to_dict(self):
        return dict(zip(self.index, self.values, strict=True))


def by_pandas(values, index):
    pandas = pytest.importorskip("pandas")
    return (pandas.DataFrame if np.ndim(values) == 2 else pandas.Series)(values, index=index)


@pytest.fixture(params=[Labelled, by_pandas])
def labelled(request):
    return request.param


def test_a_matrix_is_aligned_by_its_labels(labelled):
    frame = labelled(ROWS, ["the", "cat", "sat"])
    split = SplitTable.from_matrix(frame, ["sat"], vocabulary=["sat", "the", "cat"])
    assert split.combine().tolist() == [[3, 3], [1, 1], [2, 2]] and split.trainable.tolist() == [[3, 3]]
    integers = SplitTable.from_matrix(labelled(ROWS, [1003, 1001, 1002]), [], vocabulary=[1001, 1002, 1003])
    assert integers.combine().tolist() == [[2, 2], [3, 3], [1, 1]]
    assert SplitTable.from_matrix(labelled(ROWS, [2, 0, 1]), []).combine().tolist() == [[2, 2], [3, 3], [1, 1]]
    numbered = SplitTable.from_matrix(labelled(ROWS, [0, 1, 2]), [], vocabulary=["sat", "the", "cat"])
    assert numbered.combine().tolist() == ROWS
    vectors = read_vectors((["cat", "the", "sat"], frame))
    assert vectors.take([0, 1]).tolist() == [[2, 2], [1, 1]]
    with pytest.warns(VectorFileWarning, match="duplicate words, first row kept: 1"):
        repeated = read_vectors((["the", "cat", "the"], labelled(ROWS, ["the", "cat", "the"])))
    assert repeated.words == ["the", "cat"]


@pytest.mark.parametrize(
    ("index", "vocabulary", "message"),
    [
        (["the", "cat", "dog"], ["sat", "the", "cat"], r"must be the tokens, each once. Received: none for 'sat'"),
        (["the", "cat", "cat"], ["sat", "the", "cat"], "Received: 1 duplicates"),
        (["the", "cat", "sat"], ["the", "cat"], "Received: 'sat', which is no token"),
        (["the", "cat", "sat"], None, r"must be the ids, as there is no `vocabulary`.* none for '0', '1', '2'"),
        ([2, 0, 1], ["sat", "the", "cat"], r"none for 'sat', 'the', 'cat'.* or pass to_numpy\(\) if row i"),
    ],
)
def test_other_labels_are_refused(labelled, index, vocabulary, message):
    with pytest.raises(VocabularyError, match=message):
        SplitTable.from_matrix(labelled(ROWS, index), [], vocabulary=vocabulary)


def test_labels_are_refused_where_rows_are_numbered(labelled):
    frame, split = labelled(ROWS, ["the", "cat", "sat"]), SplitTable.from_matrix(ROWS, [0, 1, 2])
    for operation in (
        lambda: SplitTable(frame, [0, 1, 2], []),
        lambda: SplitTable.from_arrays([[1.0, 1.0]], [~0, ~1, ~2], frame),
        lambda: split.with_trainable(frame),
    ):
        with pytest.raises(VocabularyError, match=r"must be without labels, .* Received: rows labelled 'the', 'cat'"):
            operation()


def test_a_mask_selects_its_labels(labelled):
    split = SplitTable.from_matrix(ROWS, [], vocabulary=["sat", "the", "cat"])
    mask = labelled([True, False, True], ["the", "cat", "sat"])
    assert split.ids(mask).tolist() == [1, 0] and split.thaw(mask).trainable_ids.tolist() == [0, 1]
    assert split.ids(labelled([False, True], [0, 2])).tolist() == [2]
    assert split.ids(labelled([False, True, True], [0, 1, 2])).tolist() == [1, 2]
    with pytest.raises(UnknownTokenError, match="dog"):
        split.ids(labelled([True], ["dog"]))


def test_counts_are_found_by_label(labelled):
    words, items = read_vocabulary(["sat", "the"]), read_vocabulary([1001, 1002])
    assert align_counts(labelled([5, 7], ["the", "sat"]), words).tolist() == [7, 5]
    assert align_counts(labelled([5, 7], [0, 1]), words).tolist() == [5, 7]
    assert align_counts(labelled([5, 7], [1002, 1001]), items).tolist() == [7, 5]
    assert align_counts({1002: 4}, items).tolist() == [0, 4]
    split = build_split([1001, 1002], {1001: [1.0]}, counts={1001: 2, 1002: 3}, train_most_frequent=1)
    assert split.num_trainable == 2
    with pytest.raises(VocabularyError, match=r"must have tokens \(str\) as keys. Received: keys of type int"):
        align_counts({0: 5, 1: 7}, words)


def test_plain_rows_are_unchanged():
    rows = np.ones((2, 1))
    assert align_rows("matrix", rows, ["a", "b"]) is rows and labels_of(ROWS) is None
    assert labels_of_mask([True, False]) is None and labels_of_mask(rows.astype(bool)) is None
    refuse_labels("matrix", rows)
