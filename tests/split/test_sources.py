"""What vectors have for the tokens of a split: places and rows, in place where they are the split's own."""

import numpy as np
import pytest

from splitembed import SplitTable, read_vocabulary
from splitembed.errors import VectorFileWarning
from splitembed.matching.match import find_candidates
from splitembed.split.sources import is_own, own_vectors, read_source
from splitembed.tables import open_frozen, write_frozen
from splitembed.vectors import WordVectors, read_vectors
from splitembed.vectors.source import VectorSource

ROWS = np.array([[1, 2], [3, 4], [0, 0]], np.float32)


def test_only_what_can_match_is_read():
    candidates = find_candidates(read_vocabulary(["usr", "The"]), ["lower"])
    vectors = read_source({"the": [1.0, 2.0], "of": [3.0, 4.0]}, candidates, 2)
    assert vectors.words == ["the"] and candidates.match_vectors(vectors).rows.tolist() == [-1, 0]
    source = VectorSource({"the": [1.0, np.inf]}, non_finite="zero", dim=2)
    with pytest.warns(VectorFileWarning):
        assert read_source(source, candidates, 2).vectors.tolist() == [[1.0, 0.0]]


def test_the_words_of_a_split_are_its_frozen_tokens_in_place():
    split = SplitTable.from_arrays(ROWS, [2, 1, ~0, 1], [[9.0, 9.0]], vocabulary=["", "of", "usr", "off"], padding=0)
    vectors = own_vectors(split)
    assert list(vectors.words) == ["of", "off"] and vectors.row_of.tolist() == [1, 1]
    assert vectors.table.vectors is split.frozen and is_own(split, vectors)
    np.testing.assert_array_equal(vectors.take([0, 1]), ROWS[[1, 1]])
    assert not len(own_vectors(split.with_parts(vocabulary=None)))


def test_the_words_of_a_split_on_a_table_are_the_table_s(tmp_path):
    write_frozen(tmp_path / "one.h5", ROWS, words=["the", "of", "", "an"], row_of=np.array([0, 1, 2, 0]), zero_row=2)
    write_frozen(tmp_path / "two.h5", ROWS + 1, words=["the", "of", "an"])
    table, other = open_frozen(tmp_path / "one.h5"), open_frozen(tmp_path / "two.h5")
    split = SplitTable(table.vectors, [0], np.empty((0, 2)), vocabulary=["the"], table=table)
    vectors = own_vectors(split)
    assert list(vectors.words) == ["the", "of", "", "an"] and vectors.row_of.tolist() == [0, 1, 2, 0]
    assert is_own(split, vectors)
    assert is_own(split, WordVectors(table.words, None, table=open_frozen(tmp_path / "one.h5")))
    assert not is_own(split, WordVectors(other.words, None, table=other))
    assert not is_own(split, WordVectors(["the"], ROWS[:1]))


def test_a_blank_word_of_a_table_is_none(tmp_path):
    candidates = find_candidates(read_vocabulary(["of", ""], padding=None))
    vectors = WordVectors(["", "of", "of"], ROWS, row_of=np.array([2, 0, 1]))
    assert candidates.match_vectors(vectors).rows.tolist() == [1, 0]
    write_frozen(tmp_path / "t.h5", ROWS, words=["", "of", "of"])
    assert candidates.match_vectors(read_vectors(tmp_path / "t.h5")).rows.tolist() == [1, -1]


def test_rows_are_named_by_places():
    assert WordVectors(["", "of", "of"], ROWS, row_of=np.array([2, 0, 1])).rows([1, -1]).tolist() == [0, -1]
    assert WordVectors(["a", "b", "c"], ROWS).rows([2, -1]).tolist() == [2, -1]
