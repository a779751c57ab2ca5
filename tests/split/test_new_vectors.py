"""Other pretrained vectors under trained rows: tokens that are found, missing or newly found."""

import numpy as np
import pytest

from splitembed import SplitTable, read_vocabulary
from splitembed.errors import SplitError, VectorFormatError
from splitembed.split.new_vectors import VectorChange
from splitembed.tables import open_frozen, write_frozen

NAMES = ["", "[UNK]", "the", "of", "usr", "lol"]
DENSE = np.array([[0, 0], [5, 5], [1, 1], [2, 2], [6, 6], [7, 7]], np.float32)
OTHER = {"the": [10.0, 10.0], "usr": [60.0, 60.0], "[UNK]": [99.0, 99.0], "spare": [1.0, 1.0], "": [98.0, 98.0]}


@pytest.fixture
def split():
    """Return a split in which padding, "the" and "of" are frozen; the other source has "usr", which trains."""
    return SplitTable.from_matrix(DENSE, [1, 4, 5], vocabulary=NAMES, padding=0)


@pytest.fixture
def other_table(tmp_path):
    rows = np.array([[10, 10], [60, 60], [1, 1], [0, 0]], np.float32)
    write_frozen(tmp_path / "other.h5", rows, words=["the", "usr", "spare", ""], zero_row=3)
    return tmp_path / "other.h5"


def test_missing_tokens_train_from_their_old_vector(split):
    other = split.with_frozen(OTHER)
    change = other.vector_change
    assert other.combine().tolist() == [[0, 0], [5, 5], [10, 10], [2, 2], [6, 6], [7, 7]]
    assert other.trainable.tolist() == [[5, 5], [6, 6], [7, 7], [2, 2]] and other.num_frozen == 2
    assert change == VectorChange("dict", num_found=1, missing=("of",), newly_found=("usr",))
    assert str(change).splitlines() == [
        "frozen tokens with a vector in dict: 1 of 2",
        "missing: 1 (train): 'of'",
        "newly found: 1 (keep): 'usr'",
    ]
    assert split.combine().tolist() == DENSE.tolist() and other.padding == 0 and other.coverage is None


def test_missing_tokens_can_keep_their_old_vector(split):
    other = split.with_frozen(OTHER, missing="keep")
    change = other.vector_change
    assert other.combine().tolist() == [[0, 0], [5, 5], [10, 10], [2, 2], [6, 6], [7, 7]]
    assert other.trainable_ids.tolist() == [1, 4, 5] and other.num_frozen == 3
    assert (change.missing, change.missing_rule) == (("of",), "keep")


def test_missing_tokens_can_be_refused(split):
    with pytest.raises(SplitError, match=r"dict has no vector for 1 frozen tokens: 'of'. .*missing=\"keep\""):
        split.with_frozen(OTHER, missing="error")
    other = split.with_frozen({**OTHER, "of": [20.0, 20.0]}, missing="error")
    change = other.vector_change
    assert other.lookup([3]).tolist() == [[20.0, 20.0]] and change.missing == ()


def test_newly_found_tokens_can_be_frozen(split):
    other = split.with_frozen(OTHER, newly_found="freeze")
    change = other.vector_change
    assert other.lookup([4]).tolist() == [[60.0, 60.0]] and other.trainable_ids.tolist() == [1, 3, 5]
    assert other.trainable.tolist() == [[5, 5], [7, 7], [2, 2]]
    assert (change.newly_found, change.newly_found_rule) == (("usr",), "freeze")


def test_tokens_that_trained_by_choice_are_not_newly_found(tmp_path):
    write_frozen(tmp_path / "old.h5", DENSE[[0, 2, 3]], words=["", "the", "of"], zero_row=0)
    table = open_frozen(tmp_path / "old.h5")
    split = SplitTable(table.vectors, [1, 2, ~0], [[6.0, 6.0]], vocabulary=["the", "of", "usr"], table=table)
    other = split.thaw(["the"]).with_frozen(OTHER, newly_found="freeze", missing="keep")
    change = other.vector_change
    assert change.newly_found == ("usr",) and other.trainable_ids.tolist() == [0]
    assert other.combine().tolist() == [[1, 1], [2, 2], [60, 60]]


def test_a_frozen_table_is_shared(split, other_table):
    other = split.with_frozen(other_table)
    assert other.table.path == other_table and other.num_frozen == 4
    assert np.shares_memory(other.frozen, other.table.vectors) and other.remap[0] == 3
    assert other.combine().tolist() == [[0, 0], [5, 5], [10, 10], [2, 2], [6, 6], [7, 7]]
    # A shared table cannot be extended.
    kept = split.with_frozen(other_table, missing="keep")
    assert kept.table is None and kept.num_frozen == 3
    np.testing.assert_array_equal(kept.combine(), other.combine())


def test_a_table_of_low_precision_is_shared_as_it_is(split, other_table, tmp_path):
    table = open_frozen(other_table)
    words = SplitTable(table.vectors, [0, 1, 2, 3], np.empty((0, 2)), vocabulary=list(table.words), padding=3)
    words.with_frozen_dtype("int8").save_frozen(tmp_path / "int8.h5")
    other = split.with_frozen(tmp_path / "int8.h5", missing="train")
    assert other.frozen_dtype == "int8" and np.shares_memory(other.scale, other.table.scale)
    np.testing.assert_array_equal(other.lookup([0, 2]), [[0, 0], [10, 10]])
    kept = split.with_frozen(tmp_path / "int8.h5", missing="keep")
    assert kept.frozen_dtype == "float32" and kept.lookup([3]).tolist() == [[2.0, 2.0]]


def test_padding_needs_a_zero_row(split, tmp_path):
    write_frozen(tmp_path / "other.h5", DENSE[2:4], words=["the", "of"])
    with pytest.raises(SplitError, match="other.h5 has no zero row for the padding id.*save_frozen"):
        split.with_frozen(tmp_path / "other.h5")
    without = split.shrink([0], drop_reserved=True)
    assert without.with_frozen(tmp_path / "other.h5").num_frozen == 2


def test_fallbacks_are_tried(split):
    change = split.with_frozen({"OF": [1.0, 1.0]}, fallbacks=["upper"]).vector_change
    assert change.missing == ("the",) and change.num_found == 1


def test_a_vocabulary_has_the_spellings_of_tokens():
    names = ["<pad>", "▁the", "▁of", "spare"]
    split = SplitTable.from_matrix(DENSE[[0, 2, 3, 4]], [2], vocabulary=names, padding=0)
    vectors = {"the": [10.0, 10.0], "of": [20.0, 20.0], "<pad>": [1.0, 1.0], "spare": [3.0, 3.0]}
    # "spare" was appended to these.
    tokens = read_vocabulary(names[:3], padding=0, marks="metaspace")
    other = split.with_frozen(vectors, newly_found="freeze", vocabulary=tokens)
    change = other.vector_change
    assert other.combine().tolist() == [[0, 0], [10, 10], [20, 20], [3, 3]] and change.newly_found == ("▁of",)
    with pytest.raises(SplitError, match="`vocabulary` must hold the 4 tokens of the split.* Received: 3 tokens"):
        split.with_frozen(vectors, vocabulary=["▁the", "<pad>", "spare"])


def test_ids_without_strings_need_a_vocabulary():
    split = SplitTable.from_matrix(DENSE[:4], [1], padding=0)
    with pytest.raises(SplitError, match="the ids of this split have no strings. Pass `vocabulary`"):
        split.with_frozen(OTHER)
    by_digits = split.with_frozen({"0": [8.0, 8.0], "3": [9.0, 9.0]}, vocabulary=4)
    change = by_digits.vector_change
    assert by_digits.combine().tolist() == [[0, 0], [5, 5], [1, 1], [9, 9]] and change.missing == ("2",)
    by_name = split.with_frozen(OTHER, vocabulary=["", "usr", "the", "of"])
    assert by_name.lookup([2]).tolist() == [[10.0, 10.0]] and by_name.vocabulary is None
    with pytest.raises(SplitError, match="must hold the 4 tokens of the split.* Received: 5 tokens"):
        split.with_frozen(OTHER, vocabulary=5)


def test_missing_tokens_with_one_row_keep_it_or_train_separately():
    split = SplitTable.from_arrays(DENSE[2:4], [0, 0, 1], np.empty((0, 2)), vocabulary=["a", "b", "the"])
    kept = split.with_frozen(OTHER, missing="keep")
    assert kept.num_frozen == 2 and kept.remap[0] == kept.remap[1]
    trains = split.with_frozen(OTHER)
    assert trains.num_trainable == 2 and trains.combine().tolist() == kept.combine().tolist()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"missing": "drop"}, SplitError, "`missing` must be one of train, keep, error.*missing='drop'"),
        ({"newly_found": "train"}, SplitError, "`newly_found` one of keep, freeze.*newly_found='train'"),
        ({"source": {"the": [1.0, 2.0, 3.0]}}, VectorFormatError, "rows of dim 3; expected dim=2"),
        ({"fallbacks": ["loud"]}, SplitError, "loud"),
    ],
)
def test_invalid_arguments_are_refused(split, options, error, message):
    with pytest.raises(error, match=message):
        split.with_frozen(**{"source": OTHER, **options})
