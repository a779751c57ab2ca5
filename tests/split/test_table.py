"""SplitTable against a dense matrix in NumPy."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed import SplitTable, build_split
from splitembed.errors import SplitError, TokenIdError, UnknownTokenError
from splitembed.split.frozen_rows import number_rows
from splitembed.split.table import split_of

MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)
CONFIG = {"num_oov_indices": 1, "mask_token": None, "oov_token": "[UNK]"}


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
    assert number_rows(np.array(mask)).tolist() == expected


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


def test_one_dense_matrix_with_padding():
    split = SplitTable.from_matrix([[0.0], [1.0], [2.0]], [1], padding=0)
    assert split.padding == 0 and split.lookup([0]).tolist() == [[0.0]]
    with pytest.raises(SplitError, match="padding id 0 must be frozen and zero"):
        SplitTable.from_matrix([[0.0], [1.0]], [0], padding=0)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda split: pickle.loads(pickle.dumps(split))])
def test_copies_are_equal(duplicate):
    split = SplitTable.from_matrix(MATRIX, [1], vocabulary=list("abcd"))
    other = duplicate(split)
    assert other.combine().tolist() == MATRIX.tolist() and list(other.vocabulary) == list("abcd")


def test_a_lookup_layer_is_kept_by_changes_and_left_out_of_copies():
    layer = SimpleNamespace(get_vocabulary=lambda: ["[UNK]", "a"], get_config=lambda: CONFIG)
    split = build_split(layer, {"a": [1.0]})
    changed = split.grow(["b"]).thaw(["a"]).with_trainable(np.ones((3, 1))).shrink(["b"]).detached()
    assert changed.lookup_layer is layer and copy.deepcopy(split).lookup_layer is None
    assert pickle.loads(pickle.dumps(split)).lookup_layer is None
    with pytest.raises(SplitError, match="A lookup layer needs tokens, and the ids of this split have no strings"):
        SplitTable.from_matrix(MATRIX, [1]).update_lookup(layer)


def test_one_token():
    assert SplitTable.from_matrix([[3.0]], []).lookup(0).tolist() == [3.0]
    assert SplitTable.from_matrix([[3.0]], [0]).lookup([[0]]).tolist() == [[[3.0]]]


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


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((), np.int32),
        ((0,), np.int64),
        ((3,), np.int8),
        ((2, 2), np.uint8),
        ((1, 0, 2), np.int32),
        ((2, 1, 2), np.uint64),
    ],
)
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
def test_lookup_refuses_other_dtypes_than_integers(ids):
    with pytest.raises(SplitError, match="`ids` must be integers"):
        SplitTable.from_matrix(MATRIX, [1]).lookup(ids)


def test_parts_are_read_only_and_a_memory_map_stays_one(tmp_path):
    np.save(tmp_path / "rows.npy", MATRIX)
    frozen = np.load(tmp_path / "rows.npy", mmap_mode="r")
    split = SplitTable.from_arrays(frozen, [0, ~0, 3], [[7.0, 8.0, 9.0]])
    assert np.shares_memory(split.frozen, frozen)
    for part in (split.frozen, split.trainable, split.remap):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 0


def test_arrays_of_the_caller_stay_writable():
    rows = MATRIX.copy()
    SplitTable.from_arrays(rows, [0], np.empty((0, 3)))
    rows[0] = 1


BAD_PARTS = {
    "remap names no frozen row": (dict(remap=[0, 4]), r"`remap\[1\]` is 4.* from 0 to 3"),
    "remap names no trainable row": (dict(remap=[~0, ~1]), r"`remap\[1\]` is -2.*there are 1"),
    "remap is empty": (dict(remap=np.empty(0, np.int32)), "at least one"),
    "remap is a matrix": (dict(remap=[[0]]), "must be integers"),
    "remap is fractional": (dict(remap=[0.5]), "must be integers"),
    "other dim": (dict(trainable=[[1.0, 2.0]]), "the 3 columns of `frozen`. Received: 2"),
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
def test_parts_that_do_not_match_are_refused(name):
    parts, message = BAD_PARTS[name]
    given_parts = {"frozen": MATRIX, "remap": [0], "trainable": [[1.0, 2.0, 3.0]], **parts}
    with pytest.raises((SplitError, TokenIdError), match=message):
        SplitTable.from_arrays(**given_parts)


def test_with_trainable_shares_everything_else():
    split = SplitTable.from_matrix(MATRIX, [1])
    other = split.with_trainable([[9.0, 9.0, 9.0]])
    assert other.frozen is split.frozen and other.remap is split.remap
    assert split.lookup([1]).tolist() == [MATRIX[1].tolist()] and other.lookup([1]).tolist() == [[9.0, 9.0, 9.0]]
    with pytest.raises(SplitError, match="must have 1 rows, as before. Received: 2"):
        split.with_trainable(MATRIX[:2])


def test_a_split_does_not_change_with_the_arrays_it_was_made_of():
    remap, trainable = np.array([0, ~0], np.int32), np.ones((1, 3), np.float32)
    split = SplitTable.from_arrays(MATRIX, remap, trainable)
    other = split.with_trainable(trainable)
    remap[:], trainable[:] = ~0, 5
    assert split.lookup([0, 1]).tolist() == other.lookup([0, 1]).tolist() == [MATRIX[0].tolist(), [1.0] * 3]


def test_rows_of_another_dtype_than_named_are_refused():
    with pytest.raises(SplitError, match="`frozen_dtype` is 'float16', but the rows are float32"):
        SplitTable(MATRIX, [0], np.empty((0, 3)), frozen_dtype="float16")


def test_replaced_parts_share_the_memory_of_the_others():
    split = SplitTable.from_arrays(MATRIX, [0, ~0, 3], [[7.0, 8.0, 9.0]], vocabulary=list("abc"))
    known = split.fingerprint, split.vocabulary_fingerprint, split.index, split.remap_fingerprint
    other = split.with_parts(remap=[3, ~0, 0])
    assert other.frozen is split.frozen and other.vocabulary is split.vocabulary
    np.testing.assert_array_equal(other.lookup([0, 1]), [MATRIX[3], [7, 8, 9]])
    assert (other.fingerprint, other.vocabulary_fingerprint) == known[:2] and other.index is known[2]
    assert other.remap_fingerprint != known[3]
    assert split.with_parts(frozen=MATRIX + 1).fingerprint != known[0]
    assert split.with_parts(vocabulary=list("xyz")).index == {"x": 0, "y": 1, "z": 2}
    with pytest.raises(SplitError, match=r"`remap\[0\]` is 4"):
        split.with_parts(remap=[4, 0, 0])


def test_other_frozen_rows_drop_the_scale_and_the_table(tmp_path):
    SplitTable.from_matrix(MATRIX, [1]).with_frozen_dtype("int8").save(tmp_path)
    opened = SplitTable.open(tmp_path)
    other = opened.with_parts(frozen=MATRIX)
    assert (other.frozen_dtype, other.scale, other.table) == ("float32", None, None)
    same = opened.with_parts(trainable=[[1.0, 2.0, 3.0]])
    assert same.table is opened.table and same.frozen_dtype == "int8"
    np.testing.assert_array_equal(same.lookup([0, 2]), opened.lookup([0, 2]))


def test_an_id_is_named_by_its_token_where_it_has_one():
    split = SplitTable.from_arrays(MATRIX, [0, 1], np.empty((0, 3)), vocabulary=["the", "the"])
    assert split.name_of(np.int64(1)) == "token 'the' (id 1)" and split.index == {"the": 0}
    assert SplitTable.from_arrays(MATRIX, [0], np.empty((0, 3))).name_of(0) == "id 0"


def test_the_split_of_a_layer_is_found():
    split = SplitTable.from_matrix(MATRIX, [1])
    layer = SimpleNamespace(to_split=lambda: split)
    assert split_of(split, "source") is split_of(layer, "source") is split
    with pytest.raises(SplitError, match="`source` must be a SplitTable, or a layer that has one. Received: 'usr' "):
        split_of("usr", "source")
