"""Files of splits: saved and opened in any precision, and shared where the rows are equal."""

import operator
import os

import numpy as np
import pytest

from splitembed import SplitTable
from splitembed.errors import FingerprintError, SplitError
from splitembed.split import files
from splitembed.tables import frozen_name, open_frozen

MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_save_then_open_is_the_identity(tmp_path):
    words = ["", "[UNK]", "a b", "\u2028\0\n"]
    split = SplitTable.from_matrix(MATRIX - MATRIX[0], [1, 3], vocabulary=words, padding=0)
    split.save(tmp_path)
    opened = SplitTable.open(tmp_path, verify=True)
    for part in ("frozen", "trainable", "remap"):
        np.testing.assert_array_equal(getattr(opened, part), getattr(split, part))
    assert list(opened.vocabulary) == words and opened.padding == 0
    for name in ("fingerprint", "remap_fingerprint", "vocabulary_fingerprint"):
        assert getattr(opened, name) == getattr(split, name)


def test_ids_without_strings_save_and_open(tmp_path):
    SplitTable.from_matrix(MATRIX, [2]).save(tmp_path)
    opened = SplitTable.open(tmp_path)
    assert opened.vocabulary is None and opened.combine().tolist() == MATRIX.tolist()


def test_a_split_on_an_existing_table_saves_the_trainable_table_alone(tmp_path):
    SplitTable.from_matrix(MATRIX, [1]).save(tmp_path / "first")
    opened = SplitTable.open(tmp_path / "first")
    opened.with_trainable([[5.0, 5.0, 5.0]]).save(tmp_path / "second")
    assert [path.name for path in (tmp_path / "second").iterdir()] == ["trainable.h5"]
    again = SplitTable.open(tmp_path / "second")
    assert again.lookup([1]).tolist() == [[5.0, 5.0, 5.0]]
    np.testing.assert_array_equal(again.frozen, opened.frozen)


LOW_PRECISION = {
    "float16": 2**-11,
    "bfloat16": 2**-8,
    "int8": 1 / 127,
    # Largest error, relative to the largest value of the row.
}


@pytest.mark.parametrize("dtype", LOW_PRECISION)
def test_low_precision_rows_are_widened_as_they_are_read(dtype, tmp_path):
    matrix = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    matrix[0] = 0
    split = SplitTable.from_matrix(matrix, [3, 7], padding=0).with_frozen_dtype(dtype)
    assert split.frozen_dtype == dtype and split.frozen.nbytes == 48 * 8 * (1 if dtype == "int8" else 2)
    error = np.abs(split.combine() - matrix).max(axis=1)
    assert (error <= LOW_PRECISION[dtype] * np.abs(matrix).max(axis=1)).all() and error.max() > 0
    # Padding and trainable rows are exact.
    np.testing.assert_array_equal(split.lookup([0, 3, 7]), matrix[[0, 3, 7]])
    split.save(tmp_path)
    opened = SplitTable.open(tmp_path, verify=True)
    assert opened.frozen_dtype == dtype and opened.fingerprint == split.fingerprint
    np.testing.assert_array_equal(opened.combine(), split.combine())
    again = split.with_frozen_dtype("float32")
    np.testing.assert_array_equal(again.combine(), split.combine())


def test_numbers_that_a_precision_cannot_hold_are_refused():
    split = SplitTable.from_matrix([[1.0, 70000.0]], [])
    with pytest.raises(SplitError, match=r"Row 0, column 1 holds 70000.0, which float16 cannot hold"):
        split.with_frozen_dtype("float16")
    assert split.with_frozen_dtype("int8").lookup([0])[0, 1] == 70000.0
    with pytest.raises(SplitError, match="one factor a row"):
        SplitTable.from_arrays(np.zeros((2, 3), np.int8), [0], np.empty((0, 3)), scale=[1.0])


def test_a_split_whose_file_was_replaced_saves_its_own_rows(tmp_path):
    SplitTable.from_matrix(MATRIX, [1]).save(tmp_path / "a")
    old = SplitTable.open(tmp_path / "a").with_trainable([[7.0, 7.0, 7.0]])
    SplitTable.from_matrix(MATRIX + 1, [2]).save(tmp_path / "a")
    expected = old.combine()
    for name in ("b", "a"):
        old.save(tmp_path / name)
        np.testing.assert_array_equal(SplitTable.open(tmp_path / name, verify=True).combine(), expected)


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_frozen_table_of_the_user_is_never_replaced(tmp_path):
    """Other models may use it. The split's own rows stand under their fingerprint beside it."""
    SplitTable.from_matrix(MATRIX, []).save_frozen(tmp_path / "frozen.h5")
    theirs = (tmp_path / "frozen.h5").read_bytes()
    for shift in (1, 2):
        split = SplitTable.from_matrix(MATRIX + shift, [1])
        split.save(tmp_path)
        assert (tmp_path / "frozen.h5").read_bytes() == theirs
        assert files_in(tmp_path) == [frozen_name(split.fingerprint), "frozen.h5", "trainable.h5"]
        np.testing.assert_array_equal(SplitTable.open(tmp_path, verify=True).combine(), MATRIX + shift)
        SplitTable.open(tmp_path).with_trainable([[7, 8, 9]]).save(tmp_path)
        assert files_in(tmp_path) == [frozen_name(split.fingerprint), "frozen.h5", "trainable.h5"]


def test_a_frozen_table_of_the_user_with_the_same_rows_is_used_and_kept(tmp_path):
    split = SplitTable.from_matrix(MATRIX, [1])
    split.save_frozen(tmp_path / "frozen.h5")
    split.save(tmp_path)
    assert files_in(tmp_path) == ["frozen.h5", "trainable.h5"]
    SplitTable.from_matrix(MATRIX + 1, [1]).save(tmp_path)
    assert open_frozen(tmp_path / "frozen.h5").fingerprint == split.fingerprint


def test_saving_needs_nothing_of_the_files_that_a_split_was_opened_from(tmp_path):
    SplitTable.from_matrix(MATRIX, [1], vocabulary=list("abcd")).save(tmp_path / "first")
    split = SplitTable.open(tmp_path / "first").with_trainable([[7, 8, 9]])
    expected = split.combine()
    (tmp_path / "first" / "trainable.h5").unlink()
    (tmp_path / "first" / "trainable.h5").write_bytes(b"another's")
    (tmp_path / "first" / "frozen.h5").unlink()
    (tmp_path / "first").rename(tmp_path / "elsewhere")
    split.save(tmp_path / "second")
    again = SplitTable.open(tmp_path / "second", verify=True)
    np.testing.assert_array_equal(again.combine(), expected)
    assert list(again.vocabulary) == list("abcd")


def test_the_folder_must_not_be_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SplitError, match="Received a file"):
        SplitTable.from_matrix(MATRIX, [1]).save(tmp_path / "file")


STEPS = ["save_frozen", "save_trainable", "tables.synchronize_folder"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_save_that_stops_anywhere_leaves_one_split_or_the_other(tmp_path, monkeypatch, step, when):
    SplitTable.from_matrix(MATRIX, [1]).save(tmp_path)
    new, target = SplitTable.from_matrix(MATRIX + 1, [2]), f"splitembed.split.files.{step}"
    call = operator.attrgetter(step)(files)

    def stop(*arguments, **options):
        if when == "after":
            call(*arguments, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(target, stop)
        with pytest.raises(KeyboardInterrupt):
            new.save(tmp_path)
    is_new = step != "save_frozen" and (step, when) != ("save_trainable", "before")
    np.testing.assert_array_equal(SplitTable.open(tmp_path, verify=True).combine(), MATRIX + is_new)
    # The next save puts the names in order.
    new.save(tmp_path)
    assert files_in(tmp_path) == ["frozen.h5", "trainable.h5"]
    np.testing.assert_array_equal(SplitTable.open(tmp_path, verify=True).combine(), MATRIX + 1)


@pytest.mark.parametrize("where", ["in memory", "in a file"])
def test_frozen_rows_that_were_changed_in_place_are_not_saved(where, tmp_path):
    """They could not be opened again with their old fingerprint."""
    frozen = MATRIX.copy()
    split = SplitTable.from_arrays(frozen, [0, ~0, 3], [[7.0, 8.0, 9.0]])
    expected = split.fingerprint
    if where == "in a file":
        split.save(tmp_path / "first")
        split = SplitTable.open(tmp_path / "first")
        content = bytearray((tmp_path / "first" / "frozen.h5").read_bytes())
        content[content.index(frozen.tobytes())] ^= 1
        # In place, which our own writers never do.
        with open(tmp_path / "first" / "frozen.h5", "r+b") as file:
            file.write(content)
    frozen += 1
    (tmp_path / "second").mkdir()
    with pytest.raises(
        FingerprintError,
        match=f"frozen.h5: the rows have the fingerprint sha256:.* expected {expected}.* in place",
    ):
        split.save_frozen(tmp_path / "second" / "frozen.h5")
    assert not list((tmp_path / "second").iterdir())


def test_splits_share_only_equal_rows():
    first, second = (SplitTable.from_arrays(MATRIX + shift, [0], np.empty((0, 3))) for shift in (0, 1))
    with pytest.raises(FingerprintError) as caught:
        first.sharing(second)
    assert first.fingerprint in str(caught.value) and second.fingerprint in str(caught.value)
    same = SplitTable.from_arrays(MATRIX.copy(), [1], np.empty((0, 3)))
    assert np.shares_memory(same.sharing(first).frozen, first.frozen)
    assert same.sharing(first).lookup([0]).tolist() == [MATRIX[1].tolist()]


def test_frozen_file_is_the_file_that_still_holds_the_rows(tmp_path):
    split = SplitTable.from_arrays(MATRIX, [0], np.empty((0, 3)))
    assert split.frozen_file() is None
    split.save(tmp_path)
    opened = SplitTable.open(tmp_path)
    assert opened.frozen_file() == tmp_path / "frozen.h5"
    assert opened.detached().frozen_file() is None and opened.detached(keep_table=True).frozen_file() is not None
    SplitTable.from_arrays(MATRIX + 1, [0], np.empty((0, 3))).save_frozen(tmp_path / "frozen.h5")
    assert opened.frozen_file() is None


def test_many_small_files_find_their_one_frozen_table(tmp_path, monkeypatch):
    """It is found by its fingerprint in any folder of SPLITEMBED_PATH, under any name."""
    SplitTable.from_arrays(MATRIX, [0], np.empty((0, 3))).save(tmp_path / "base")
    base = SplitTable.open(tmp_path / "base")
    models = {
        "thawed": base.thaw([0]),
        "shrunk": base.grow(2, oov_initializer="zeros").shrink([0]),
        "trained": base.thaw([0]).with_trainable([[5.0, 5.0, 5.0]]),
    }
    for name, split in models.items():
        split.save(tmp_path / name)
        assert [path.name for path in (tmp_path / name).iterdir()] == ["trainable.h5"]
    (tmp_path / "tables").mkdir()
    os.replace(tmp_path / "base" / "frozen.h5", tmp_path / "tables" / "under another name.h5")
    with pytest.raises(FileNotFoundError, match="SPLITEMBED_PATH"):
        SplitTable.open(tmp_path / "thawed")
    monkeypatch.setenv("SPLITEMBED_PATH", os.pathsep.join([str(tmp_path / "empty"), str(tmp_path / "tables")]))
    for name, split in models.items():
        opened = SplitTable.open(tmp_path / name, verify=True)
        assert opened.table.path == tmp_path / "tables" / "under another name.h5" and opened.table.mapped
        np.testing.assert_array_equal(opened.combine(), split.combine())


def test_the_frozen_table_of_the_split_before_does_not_stay(tmp_path):
    frozen = tmp_path / "model" / "frozen.h5"
    SplitTable.from_matrix(MATRIX, [1]).save(tmp_path / "shared")
    shared = SplitTable.open(tmp_path / "shared")
    SplitTable.from_matrix(MATRIX + 1, [1]).save(tmp_path / "model")
    shared.save(tmp_path / "model")
    assert not frozen.exists()
    assert SplitTable.open(tmp_path / "model").frozen_file() == tmp_path / "shared" / "frozen.h5"
    # A table that is not of the split before may be used by others.
    SplitTable.from_matrix(MATRIX + 2, [1]).save_frozen(frozen)
    shared.save(tmp_path / "model")
    assert frozen.exists()
    # The split's own table stays too.
    shared.save(tmp_path / "shared")
    assert SplitTable.open(tmp_path / "shared").fingerprint == shared.fingerprint
