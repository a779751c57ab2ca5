"""SplitTable against a dense matrix in NumPy."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed import SplitTable
from splitembed.errors import FingerprintError, SplitError, TokenIdError, UnknownTokenError
from splitembed.split import remap_of

MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_combine_is_the_inverse_of_split(mask, dim, seed):
    matrix = np.random.default_rng(seed).normal(size=(len(mask), dim)).astype(np.float32)
    split = SplitTable.from_matrix(matrix, mask)
    assert split.combine().tobytes() == matrix.tobytes()
    assert (split.num_trainable, split.num_frozen) == (sum(mask), len(mask) - sum(mask))
    again = SplitTable.from_matrix(split.combine(), split.trainable_ids)
    for part in ("frozen", "trainable", "remap"):
        np.testing.assert_array_equal(getattr(again, part), getattr(split, part))


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_remap_numbers_rows_in_id_order(mask):
    expected, rows = [], [0, 0]
    for is_trainable in mask:
        expected.append(~rows[True] if is_trainable else rows[False])
        rows[is_trainable] += 1
    assert remap_of(np.array(mask)).tolist() == expected


@given(st.data())
def test_lookup_reads_the_row_that_remap_names(data):
    num_frozen, num_trainable = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4))
    rows = [*range(num_frozen), *(~row for row in range(num_trainable))] or None
    if rows is None:
        return
    remap = data.draw(st.lists(st.sampled_from(rows), min_size=1, max_size=9))
    frozen, trainable = np.arange(num_frozen * 2.0).reshape(-1, 2), -1 - np.arange(num_trainable * 2.0).reshape(-1, 2)
    split = SplitTable.from_arrays(frozen, remap, trainable)
    ids = data.draw(st.lists(st.integers(0, len(remap) - 1), max_size=9))
    expected = [(frozen[remap[i]] if remap[i] >= 0 else trainable[~remap[i]]).tolist() for i in ids]
    assert split.lookup(ids).tolist() == expected


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 2), (1, 0, 2), (2, 1, 2, 1)])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_lookup_keeps_the_shape_of_ids(shape, dtype):
    ids = np.random.default_rng(0).integers(0, 4, shape).astype(dtype)
    result = SplitTable.from_matrix(MATRIX, [1]).lookup(ids)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, MATRIX[ids])


@pytest.mark.parametrize(
    ("ids", "named"), [([[0, 4]], 4), (-1, -1), (np.uint64(2**63), 2**63), (np.int64(2**32 + 1), 2**32 + 1)]
)
def test_lookup_refuses_ids_out_of_range(ids, named):
    with pytest.raises(TokenIdError, match=rf"Token id {named} is out of range: there are 4 tokens.* from 0 to 3"):
        SplitTable.from_matrix(MATRIX, [1]).lookup(ids)


@pytest.mark.parametrize("ids", [[0.0, 1.0], [True], ["a"]])
def test_lookup_refuses_what_is_no_integer(ids):
    with pytest.raises(SplitError, match="`ids` must be integers"):
        SplitTable.from_matrix(MATRIX, [1]).lookup(ids)


def test_rows_can_be_named_by_tokens_ids_or_a_mask():
    for chosen in (["b", "d"], [1, 3], ["b", 3], [False, True, False, True], [3, 1, 1]):
        split = SplitTable.from_matrix(MATRIX, chosen, vocabulary=list("abcd"))
        assert split.trainable_ids.tolist() == [1, 3]
        assert split.ids(["d", 0]).tolist() == [3, 0]
    with pytest.raises(UnknownTokenError, match="'z'"):
        SplitTable.from_matrix(MATRIX, ["z"], vocabulary=list("abcd"))
    with pytest.raises(UnknownTokenError, match="no vocabulary"):
        SplitTable.from_matrix(MATRIX, ["a"])
    with pytest.raises(TokenIdError, match="4"):
        SplitTable.from_matrix(MATRIX, [4])


def test_parts_are_read_only_and_a_memory_map_stays_one(tmp_path):
    np.save(tmp_path / "rows.npy", MATRIX)
    frozen = np.load(tmp_path / "rows.npy", mmap_mode="r")
    split = SplitTable.from_arrays(frozen, [0, ~0, 3], [[7.0, 8.0, 9.0]])
    assert np.shares_memory(split.frozen, frozen)
    for part in (split.frozen, split.trainable, split.remap):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 0


def test_the_caller_s_arrays_stay_writable():
    rows = MATRIX.copy()
    SplitTable.from_arrays(rows, [0], np.empty((0, 3)))
    rows[0] = 1


BAD_PARTS = {
    "remap names no frozen row": (dict(remap=[0, 4]), r"`remap\[1\]` is 4.* from 0 to 3"),
    "remap names no trainable row": (dict(remap=[~0, ~1]), r"`remap\[1\]` is -2.*there are 1"),
    "remap is empty": (dict(remap=np.empty(0, np.int32)), "at least one"),
    "remap is a matrix": (dict(remap=[[0]]), "one integer for each token"),
    "remap is fractional": (dict(remap=[0.5]), "one integer for each token"),
    "other dim": (dict(trainable=[[1.0, 2.0]]), "as many columns as `frozen`, 3. Received: 2"),
    "frozen is a vector": (dict(frozen=[1.0, 2.0]), r"`frozen` must be a matrix.*shape \(2,\)"),
    "no column": (dict(frozen=np.empty((2, 0))), "at least one column"),
    "text": (dict(frozen=[["a"]]), "matrix of numbers"),
    "beyond float32": (dict(trainable=[[1e39, 0.0, 0.0]]), r"beyond float32's range, such as .*1e\+39"),
    "vocabulary of another length": (dict(vocabulary=["a", "b"]), "2 tokens, 1 ids"),
    "padding trains": (dict(remap=[~0], padding=0), "must be frozen and zero, but it is trainable"),
    "padding is not zero": (dict(remap=[1], padding=0), "must be frozen and zero, but it is not zero"),
    "padding is no id": (dict(padding=1), "Token id 1 is out of range"),
}


@pytest.mark.parametrize("name", BAD_PARTS)
def test_parts_that_do_not_fit_are_refused(name):
    parts, message = BAD_PARTS[name]
    given_parts = {"frozen": MATRIX, "remap": [0], "trainable": [[1.0, 2.0, 3.0]], **parts}
    with pytest.raises((SplitError, TokenIdError), match=message):
        SplitTable.from_arrays(**given_parts)


def test_one_dense_matrix_with_padding():
    split = SplitTable.from_matrix([[0.0], [1.0], [2.0]], [1], padding=0)
    assert split.padding == 0 and split.lookup([0]).tolist() == [[0.0]]
    with pytest.raises(SplitError, match="padding id 0 must be frozen and zero"):
        SplitTable.from_matrix([[0.0], [1.0]], [0], padding=0)


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


def test_with_trainable_shares_everything_else():
    split = SplitTable.from_matrix(MATRIX, [1])
    other = split.with_trainable([[9.0, 9.0, 9.0]])
    assert other.frozen is split.frozen and other.remap is split.remap
    assert split.lookup([1]).tolist() == [MATRIX[1].tolist()] and other.lookup([1]).tolist() == [[9.0, 9.0, 9.0]]
    with pytest.raises(SplitError, match="must have 1 rows, as before. Received: 2"):
        split.with_trainable(MATRIX[:2])


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda split: pickle.loads(pickle.dumps(split))])
def test_copies_are_equal(duplicate):
    split = SplitTable.from_matrix(MATRIX, [1], vocabulary=list("abcd"))
    other = duplicate(split)
    assert other.combine().tolist() == MATRIX.tolist() and list(other.vocabulary) == list("abcd")


def test_one_token():
    assert SplitTable.from_matrix([[3.0]], []).lookup(0).tolist() == [3.0]
    assert SplitTable.from_matrix([[3.0]], [0]).lookup([[0]]).tolist() == [[[3.0]]]


LOW_PRECISION = {
    "float16": 2**-11,
    "bfloat16": 2**-8,
    "int8": 1 / 127,
}  # largest error, as a share of a row's largest value


@pytest.mark.parametrize("dtype", LOW_PRECISION)
def test_low_precision_rows_are_widened_as_they_are_read(dtype, tmp_path):
    matrix = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    matrix[0] = 0
    split = SplitTable.from_matrix(matrix, [3, 7], padding=0).with_frozen_dtype(dtype)
    assert split.frozen_dtype == dtype and split.frozen.nbytes == 48 * 8 * (1 if dtype == "int8" else 2)
    error = np.abs(split.combine() - matrix).max(axis=1)
    assert (error <= LOW_PRECISION[dtype] * np.abs(matrix).max(axis=1)).all() and error.max() > 0
    np.testing.assert_array_equal(split.lookup([0, 3, 7]), matrix[[0, 3, 7]])  # padding and trainable rows are exact
    split.save(tmp_path)
    opened = SplitTable.open(tmp_path, verify=True)
    assert opened.frozen_dtype == dtype and opened.fingerprint == split.fingerprint
    np.testing.assert_array_equal(opened.combine(), split.combine())
    again = split.with_frozen_dtype("float32")
    np.testing.assert_array_equal(again.combine(), split.combine())


def test_low_precision_refuses_what_it_cannot_hold():
    split = SplitTable.from_matrix([[1.0, 70000.0]], [])
    with pytest.raises(SplitError, match=r"Row 0, column 1 holds 70000.0, which float16 cannot hold"):
        split.with_frozen_dtype("float16")
    assert split.with_frozen_dtype("int8").lookup([0])[0, 1] == 70000.0
    with pytest.raises(SplitError, match="one factor a row"):
        SplitTable.from_arrays(np.zeros((2, 3), np.int8), [0], np.empty((0, 3)), scale=[1.0])


def test_a_split_never_changes_with_the_arrays_that_it_was_made_of():
    remap, trainable = np.array([0, ~0], np.int32), np.ones((1, 3), np.float32)
    split = SplitTable.from_arrays(MATRIX, remap, trainable)
    other = split.with_trainable(trainable)
    remap[:], trainable[:] = ~0, 5
    assert split.lookup([0, 1]).tolist() == other.lookup([0, 1]).tolist() == [MATRIX[0].tolist(), [1.0] * 3]


def test_rows_of_another_dtype_than_was_said_are_refused():
    with pytest.raises(SplitError, match="`frozen_dtype` is 'float16', but the rows are float32"):
        SplitTable(MATRIX, [0], np.empty((0, 3)), frozen_dtype="float16")


def test_a_split_whose_file_was_replaced_saves_its_own_rows(tmp_path):
    SplitTable.from_matrix(MATRIX, [1]).save(tmp_path / "a")
    old = SplitTable.open(tmp_path / "a").with_trainable([[7.0, 7.0, 7.0]])
    SplitTable.from_matrix(MATRIX + 1, [2]).save(tmp_path / "a")
    expected = old.combine()
    for name in ("b", "a"):
        old.save(tmp_path / name)
        np.testing.assert_array_equal(SplitTable.open(tmp_path / name, verify=True).combine(), expected)


def test_a_table_that_stands_by_itself_is_not_replaced(tmp_path):
    SplitTable.from_matrix(MATRIX, []).save_frozen(tmp_path / "frozen.h5")
    with pytest.raises(SplitError, match="other models may stand on"):
        SplitTable.from_matrix(MATRIX + 1, [1]).save(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(SplitError, match="Received a file"):
        SplitTable.from_matrix(MATRIX, [1]).save(tmp_path / "file")


@pytest.mark.parametrize("where", ["in memory", "in a file"])
def test_frozen_rows_that_were_changed_in_place_are_not_saved(where, tmp_path):
    """Under their old fingerprint no one could open them again."""
    frozen = MATRIX.copy()
    split = SplitTable.from_arrays(frozen, [0, ~0, 3], [[7.0, 8.0, 9.0]])
    expected = split.fingerprint
    if where == "in a file":
        split.save(tmp_path / "first")
        split = SplitTable.open(tmp_path / "first")
        content = bytearray((tmp_path / "first" / "frozen.h5").read_bytes())
        content[content.index(frozen.tobytes())] ^= 1
        with open(tmp_path / "first" / "frozen.h5", "r+b") as file:  # into the file itself, as no writer of ours does
            file.write(content)
    frozen += 1
    (tmp_path / "second").mkdir()
    with pytest.raises(FingerprintError, match=f"frozen.h5 are not {expected} any more, but sha256:.*changed in place"):
        split.save_frozen(tmp_path / "second" / "frozen.h5")
    assert not list((tmp_path / "second").iterdir())


def test_splits_share_only_rows_that_are_the_same():
    first, second = (SplitTable.from_arrays(MATRIX + shift, [0], np.empty((0, 3))) for shift in (0, 1))
    with pytest.raises(FingerprintError) as caught:
        first.sharing(second)
    assert first.fingerprint in str(caught.value) and second.fingerprint in str(caught.value)
    same = SplitTable.from_arrays(MATRIX.copy(), [1], np.empty((0, 3)))
    assert np.shares_memory(same.sharing(first).frozen, first.frozen)
    assert same.sharing(first).lookup([0]).tolist() == [MATRIX[1].tolist()]


def test_a_split_knows_whether_its_file_still_holds_it(tmp_path):
    split = SplitTable.from_arrays(MATRIX, [0], np.empty((0, 3)))
    assert split.frozen_file() is None
    split.save(tmp_path)
    opened = SplitTable.open(tmp_path)
    assert opened.frozen_file() == tmp_path / "frozen.h5"
    assert opened.detached().frozen_file() is None and opened.detached(keep_table=True).frozen_file() is not None
    SplitTable.from_arrays(MATRIX + 1, [0], np.empty((0, 3))).save_frozen(tmp_path / "frozen.h5")
    assert opened.frozen_file() is None
