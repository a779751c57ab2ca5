"""Ids without a token share one frozen zero row, through every change of a split and its files."""

from types import SimpleNamespace

import numpy as np
import pytest

from splitembed import SplitTable, build_split, report_coverage, save_frozen
from splitembed.errors import SplitError, VocabularyWarning
from splitembed.split.gaps import gap_ids
from splitembed.vocabulary import read_vocabulary

VECTORS = {"a": [1.0, 2.0], "b": [3.0, 4.0]}
OTHER = {"a": [5.0, 6.0], "[no token 2]": [9.0, 9.0]}
GAPPED = SimpleNamespace(token2id={"a": 0, "b": 1, "<x>": 5})


def gapped(padding, source=VECTORS, **options):
    return build_split(GAPPED, source, padding=padding, oov_initializer="zeros", **options)


@pytest.mark.parametrize("padding", [None, 4])
def test_gaps_share_one_frozen_zero_row(padding):
    split = gapped(padding)
    assert (split.num_frozen, split.num_trainable, split.trainable_ids.tolist()) == (3, 1, [5])
    assert split.remap[2] == split.remap[3] == split.remap[4] and not split.lookup([2, 3, 4]).any()
    assert gap_ids(split).tolist() == [2, 3] + [4] * (padding is None)
    assert split.coverage.num_gaps == len(gap_ids(split))
    assert f"ids without a token: {split.coverage.num_gaps}, with one zero row" in str(split.coverage)
    sizes = report_coverage(read_vocabulary(GAPPED, padding=padding), VECTORS).sizes
    assert sizes == split.coverage.sizes and split.coverage.num_tokens == 3


def test_a_gap_trains_only_where_it_is_named():
    split = gapped(None, trainable_tokens=[3])
    assert split.trainable_ids.tolist() == [3, 5] and gap_ids(split).tolist() == [2, 4]


@pytest.mark.parametrize("padding", [None, 4])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_gaps_stay_through_changes_and_files(padding, dtype, tmp_path):
    split = gapped(padding).with_frozen_dtype(dtype)
    split.save(tmp_path / "split")
    opened = SplitTable.open(tmp_path / "split", verify=True)
    gaps = gap_ids(split)
    np.testing.assert_array_equal(opened.combine(), split.combine())
    # The words of the saved table are those of tokens, and its zero row serves another split.
    assert list(opened.table.words) == ["a", "b", ""] and opened.table.zero_row == 2
    again = gapped(padding, tmp_path / "split" / "frozen.h5")
    assert again.table.path == tmp_path / "split" / "frozen.h5" and np.array_equal(gap_ids(again), gaps)
    for changed in (opened, opened.thaw(["a"]), opened.freeze(["<x>"]), opened.compact(), opened.grow(["c"])):
        assert np.array_equal(gap_ids(changed), gaps)
    assert gap_ids(opened.shrink(["a"])).tolist() == (gaps - 1).tolist()
    for missing in ("train", "keep"):
        other = opened.with_frozen(OTHER, missing=missing)
        assert other.vector_change.missing == ("b",) and np.array_equal(gap_ids(other), gaps)
        assert not other.lookup(gaps).any() and other.lookup([0]).tolist() == [[5.0, 6.0]]


@pytest.mark.parametrize("padding", [None, 4])
def test_new_gaps_share_the_zero_row(padding):
    split = gapped(padding)
    more = SimpleNamespace(token2id={**GAPPED.token2id, "a2": 6, "z": 9})
    grown = split.grow(more, {"a2": [7.0, 8.0]}, existing="skip", oov_initializer="zeros")
    assert grown.num_tokens == 10 and grown.trainable_ids.tolist() == [5, 9]
    assert gap_ids(grown).tolist() == [*gap_ids(split).tolist(), 7, 8] and grown.lookup([6]).tolist() == [[7.0, 8.0]]
    assert grown.num_frozen == split.num_frozen + 1


def test_a_shared_table_without_a_zero_row_is_refused(tmp_path):
    SplitTable.from_matrix([[1.0, 2.0]], [], vocabulary=["a"]).save_frozen(tmp_path / "frozen.h5")
    with pytest.raises(SplitError, match="no zero row for the padding id or ids without a token.*save_frozen"):
        gapped(None, tmp_path / "frozen.h5")
    save_frozen(tmp_path / "with_zero.h5", tmp_path / "frozen.h5")
    assert gapped(None, tmp_path / "with_zero.h5").num_trainable == 2


def test_blank_lines_of_a_file_are_gaps(tmp_path):
    (tmp_path / "tokens.txt").write_text("a\n\nz\n\nb\n")
    split = build_split(read_vocabulary(tmp_path / "tokens.txt", keep_lines=True), VECTORS)
    assert split.trainable_ids.tolist() == [2] and gap_ids(split).tolist() == [1, 3] and split.padding is None


def test_a_zero_row_of_a_word_is_no_gap():
    split = SplitTable.from_matrix([[0.0], [0.0], [1.0]], [], vocabulary=["the", "[no token 1]", "[no token 2]"])
    assert gap_ids(split).tolist() == [1]
    assert gap_ids(SplitTable.from_matrix([[0.0]], [])).tolist() == []


def test_a_stray_id_takes_no_rows():
    with pytest.warns(VocabularyWarning, match="99,997 of 100,000 ids have no token; .* that of '<x>'"):
        split = build_split(SimpleNamespace(token2id={"a": 0, "b": 1, "<x>": 99_999}), VECTORS)
    assert (split.num_tokens, split.num_frozen, split.num_trainable) == (100_000, 3, 1)
