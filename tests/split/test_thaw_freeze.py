"""Rows that are thawed, frozen, dropped and carried over."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed import SplitTable
from splitembed.errors import SplitError, TokenIdError, UnknownTokenError
from splitembed.split.thaw_freeze import carried_rows, ids_before
from splitembed.tables import open_frozen, write_frozen
from tests.helpers.strategies import splits

MATRIX = np.arange(18, dtype=np.float32).reshape(6, 3)
NAMES = ["", "[UNK]", "the", "of", "usr", "lol"]
PRECISIONS = ("float32", "float16", "bfloat16", "int8")


def by_hand():
    """Return a split: padding and two words frozen, [UNK] and "lol" with one row, "usr"; and an unused frozen row."""
    frozen = np.array([MATRIX[2], MATRIX[3], [0, 0, 0], [9, 9, 9]], np.float32)
    return SplitTable.from_arrays(frozen, [2, ~0, 0, 1, ~1, ~0], [[5.0] * 3, [6.0] * 3], padding=0, vocabulary=NAMES)


def bits(split):
    return split.combine().tobytes()


@given(splits(), st.data())
def test_no_output_changes_by_a_bit_when_rows_are_thawed_and_frozen(split, data):
    ids = data.draw(st.lists(st.sampled_from([i for i in range(split.num_tokens) if i != split.padding] or [None])))
    ids = [i for i in ids if i is not None]
    thawed = split.thaw(ids)
    assert bits(thawed) == bits(split)
    assert set(thawed.trainable_ids) == {*split.trainable_ids, *ids}
    frozen = thawed.freeze(ids)
    assert bits(frozen) == bits(split)
    assert set(frozen.trainable_ids) == {*split.trainable_ids} - {*ids}


def test_a_thawed_row_follows_the_others_in_the_order_of_ids():
    split = by_hand()
    thawed = split.thaw(["of", "the", "the", "usr"])
    assert thawed.trainable.tolist() == [[5.0] * 3, [6.0] * 3, MATRIX[2].tolist(), MATRIX[3].tolist()]
    assert thawed.remap.tolist() == [2, ~0, ~2, ~3, ~1, ~0]
    for same in (split.thaw([3, 2]), split.thaw([i in (2, 3) for i in range(6)]), split.thaw("of").thaw(2)):
        assert set(same.trainable_ids) == {1, 2, 3, 4, 5} and bits(same) == bits(thawed)


def test_tokens_with_one_frozen_row_train_separately():
    split = SplitTable.from_arrays([[1.0]], [0, 0, 0], [])
    thawed = split.thaw([0, 2])
    assert thawed.remap.tolist() == [~0, 0, ~1]
    assert thawed.with_trainable([[5.0], [6.0]]).combine().tolist() == [[5.0], [1.0], [6.0]]


def test_one_of_several_tokens_with_one_trainable_row_is_frozen():
    split = by_hand().with_trainable([[7.0] * 3, [8.0] * 3])
    frozen = split.freeze(["lol"])
    assert frozen.trainable_ids.tolist() == [1, 4] and frozen.num_trainable == 2
    moved = frozen.with_trainable([[1.0] * 3, [2.0] * 3])
    assert moved.lookup([1, 4, 5]).tolist() == [[1.0] * 3, [2.0] * 3, [7.0] * 3]
    together = split.freeze(["lol", "[UNK]"])
    # Three used rows, and one row for both tokens.
    assert (together.num_trainable, together.num_frozen) == (1, 4)
    assert together.remap[1] == together.remap[5]


def test_remaining_trainable_rows_keep_their_order():
    split = SplitTable.from_arrays([[0.0]], [~0, ~1, ~2, ~3], [[1.0], [2.0], [3.0], [4.0]])
    frozen = split.freeze([2, 0])
    assert frozen.trainable.tolist() == [[2.0], [4.0]] and frozen.remap.tolist() == [0, ~0, 1, ~1]
    # The unused row 0 is dropped.
    assert frozen.frozen.tolist() == [[1.0], [3.0]]
    assert carried_rows(split, frozen).tolist() == [1, 3]


@pytest.mark.parametrize("operation", ["thaw", "freeze"])
def test_an_operation_without_effect_returns_the_split_itself(operation):
    split = by_hand()
    there = {"thaw": ["usr", 1], "freeze": ["the", 0]}[operation]
    for ids in ([], there, np.zeros(6, bool)):
        assert getattr(split, operation)(ids) is split


@pytest.mark.parametrize("operation", ["thaw", "freeze", "shrink"])
def test_unknown_tokens_are_refused(operation):
    move = getattr(by_hand(), operation)
    with pytest.raises(UnknownTokenError, match="'zzz' is not among the 6 tokens"):
        move(["the", "zzz"])
    with pytest.raises(TokenIdError, match="Token id 6 is out of range"):
        move([6])
    with pytest.raises(SplitError, match="one value for each of the 6 tokens"):
        move([True, False])


def test_thawing_the_padding_id_is_refused():
    for tokens in ([""], [0], np.ones(6, bool)):
        with pytest.raises(SplitError, match="The padding id 0 cannot be thawed: its row is always zero"):
            by_hand().thaw(tokens)


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_rows_of_low_precision_are_thawed_to_their_lookup(dtype):
    matrix = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    split = SplitTable.from_matrix(matrix, [1]).with_frozen_dtype(dtype)
    thawed = split.thaw([0, 5])
    assert bits(thawed) == bits(split) and thawed.frozen is split.frozen and thawed.frozen_dtype == dtype
    np.testing.assert_array_equal(thawed.trainable[1:], split.lookup([0, 5]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_low_precision_freezes_rows_that_it_holds_exactly(dtype):
    matrix = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    split = SplitTable.from_matrix(matrix, []).with_frozen_dtype(dtype)
    again = split.thaw([0, 5]).freeze([5, 0])
    assert bits(again) == bits(split) and again.frozen_dtype == dtype and again.num_frozen == 6


@pytest.mark.parametrize(("dtype", "row"), [("float16", [0.1, 1]), ("float16", [70000.0, 1]), ("bfloat16", [1.001, 1])])
def test_rows_that_a_low_precision_would_round_are_not_frozen(dtype, row):
    split = SplitTable.from_matrix([[1.0, 2.0], [0.5, 4.0], row], [1, 2], vocabulary=["the", "half", "odd"])
    low = split.with_frozen_dtype(dtype)
    with pytest.raises(
        SplitError,
        match=rf"The row of token 'odd' \(id 2\) cannot join the frozen rows: {dtype}",
    ):
        low.freeze(["odd", "half"])
    assert low.freeze(["half"]).lookup([1]).tolist() == [[0.5, 4.0]]
    # The way out that the message names.
    widened = low.compact().with_frozen_dtype("float32").freeze(["odd"])
    assert bits(widened) == bits(low)


def test_rows_between_the_steps_of_int8_are_not_frozen():
    split = SplitTable.from_matrix([[1.0, 2.0], [127.0, 3.0], [127.0, 0.5]], [1, 2]).with_frozen_dtype("int8")
    assert split.freeze([1]).lookup([1]).tolist() == [[127.0, 3.0]]
    with pytest.raises(SplitError, match="The row of id 2 cannot join the frozen rows: int8 does not hold it exactly"):
        split.freeze([2])


def test_shrink_returns_the_new_ids():
    split = by_hand()
    smaller = split.shrink(["of", "usr"])
    new_ids = smaller.id_mapping
    assert new_ids.dtype == np.int64 and new_ids.tolist() == [0, 1, 2, -1, -1, 3]
    assert list(smaller.vocabulary) == ["", "[UNK]", "the", "lol"] and smaller.padding == 0
    kept = np.flatnonzero(new_ids >= 0)
    np.testing.assert_array_equal(smaller.lookup(new_ids[kept]), split.lookup(kept))
    # The row of "usr" is dropped, the row of two other tokens is kept.
    assert smaller.trainable.tolist() == [[5.0] * 3]
    assert smaller.compact().id_mapping is new_ids and smaller.thaw(["the"]).id_mapping is None
    same = split.shrink([])
    assert same.remap is split.remap and same.id_mapping.tolist() == list(range(6)) and split.id_mapping is None


def test_ids_without_strings_shrink():
    split = SplitTable.from_matrix(MATRIX, [1, 4])
    smaller = split.shrink([0, 1])
    new_ids = smaller.id_mapping
    assert new_ids.tolist() == [-1, -1, 0, 1, 2, 3] and smaller.vocabulary is None
    np.testing.assert_array_equal(smaller.combine(), MATRIX[2:])
    assert carried_rows(split, smaller, new_ids).tolist() == [1]


def test_reserved_ids_are_dropped_only_with_the_option():
    split, counts = by_hand(), np.array([0, 0, 5, 1, 3, 4])
    with pytest.raises(SplitError, match=r"names the padding id 0 and the id 1 of \[UNK\].*or pass drop_reserved=True"):
        split.shrink(counts < 2)
    smaller = split.shrink(counts < 2, drop_reserved=True)
    new_ids = smaller.id_mapping
    assert list(smaller.vocabulary) == ["the", "usr", "lol"] and smaller.padding is None
    assert new_ids.tolist() == [-1, -1, 0, -1, 1, 2]
    np.testing.assert_array_equal(smaller.combine(), split.lookup([2, 4, 5]))
    slots = SplitTable.from_matrix(MATRIX[:3], [], vocabulary=["[UNK]", "[UNK]", "a"])
    with pytest.raises(SplitError, match=r"names the id 1 of \[UNK\], which"):
        slots.shrink([1])
    moved = SplitTable.from_matrix([[1.0], [0.0]], [], padding=1).shrink([0])
    assert moved.padding == 0


def test_dropping_all_tokens_is_refused():
    with pytest.raises(SplitError, match="must leave at least one token. Received: all 6"):
        by_hand().shrink(NAMES, drop_reserved=True)


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_compact_drops_unused_rows(dtype):
    split = by_hand().with_frozen_dtype(dtype).thaw(["the"]).shrink(["usr"])
    small = split.compact()
    # "of", padding; [UNK], "the".
    assert (small.num_frozen, small.num_trainable, small.frozen_dtype) == (2, 2, dtype)
    assert bits(small) == bits(split) and small.compact() is small
    # An unused trainable row.
    loose = SplitTable.from_arrays([[1.0]], [0, ~1], [[2.0], [3.0]])
    assert loose.compact().trainable.tolist() == [[3.0]] and loose.compact().frozen is loose.frozen


@pytest.fixture
def shared(tmp_path):
    """Return a split on a shared table with more words than tokens."""
    write_frozen(tmp_path / "glove.h5", MATRIX - MATRIX[0], words=["", "the", "of", "a", "to", "in"], zero_row=0)
    table = open_frozen(tmp_path / "glove.h5")
    return SplitTable(table.vectors, [0, 2, 1], np.empty((0, 3)), vocabulary=["", "of", "the"], padding=0, table=table)


def test_a_shared_table_stays_shared_until_rows_are_added(shared, tmp_path):
    for split in (shared.thaw(["of"]), shared.shrink(["of"]), shared.grow(["to", "zzz"])):
        assert split.frozen is shared.frozen and split.table is shared.table
        assert split.frozen_file() == tmp_path / "glove.h5"
        split.save(tmp_path / "model")
        assert [path.name for path in (tmp_path / "model").iterdir()] == ["trainable.h5"]


def test_freezing_on_a_shared_table_makes_a_new_table(shared, tmp_path):
    before = (tmp_path / "glove.h5").read_bytes()
    split = shared.thaw(["of"]).with_trainable([[7.0, 7.0, 7.0]]).freeze(["of"])
    assert split.table is None and split.frozen.tolist() == [[0.0] * 3, [3.0] * 3, [7.0] * 3]
    split.save(tmp_path / "model")
    opened = SplitTable.open(tmp_path / "model", verify=True)
    assert opened.combine().tolist() == [[0.0] * 3, [7.0] * 3, [3.0] * 3] and opened.padding == 0
    assert opened.table.zero_row == 0 and list(opened.table.words) == ["", "the", "of"]
    assert (tmp_path / "glove.h5").read_bytes() == before


def test_memory_is_that_of_the_changed_rows(tmp_path):
    """With a mapped table of 100 MB, only copies of used rows take more than the new rows and the remap."""
    num_frozen, dim = 100_000, 256
    write_frozen(tmp_path / "frozen.h5", np.broadcast_to(np.float32(0.5), (num_frozen, dim)))
    table = open_frozen(tmp_path / "frozen.h5")
    assert table.mapped and table.vectors.nbytes > 100e6
    split = SplitTable(table.vectors, np.arange(num_frozen), np.empty((0, dim)), table=table)
    used = split.shrink(np.arange(num_frozen) >= 1000).thaw([0, 1])

    def peak_of(operation):
        tracemalloc.start()
        operation()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    # A few arrays of ids.
    per_token = 64 * num_frozen
    assert peak_of(lambda: split.thaw(np.arange(10))) < per_token
    assert peak_of(lambda: split.grow(10, oov_initializer="zeros")) < per_token
    assert peak_of(lambda: split.shrink([5])) < per_token
    assert peak_of(lambda: used.freeze([0])) < per_token + 4 * used.trainable[0].nbytes * 1000


def test_carried_rows_are_matched_by_token():
    old = SplitTable.from_arrays([[0.0]], [~1, ~0, 0, ~0], [[1.0], [2.0]], vocabulary=["a", "b", "c", "d"])
    new = SplitTable.from_arrays([[0.0]], [~2, ~0, ~1, ~3], [[1.0]] * 5, vocabulary=["d", "zzz", "c", "a"])
    assert carried_rows(old, new).tolist() == [-1, -1, 0, 1, -1]
    assert carried_rows(old, new, [3, -1, 2, 0]).tolist() == [-1, -1, 0, 1, -1]
    assert carried_rows(old, new, [0, 1, 2, 3]).tolist() == [0, -1, 1, 0, -1]
    nameless = new.with_parts(vocabulary=None)
    assert carried_rows(old, nameless).tolist() == [0, -1, 1, 0, -1]


def test_the_first_trained_id_counts_where_ids_share_a_row():
    old = SplitTable.from_arrays([[0.0]], [0, ~1, ~0], [[1.0], [2.0]])
    new = SplitTable.from_arrays([[0.0]], [~0, ~0, ~0], [[2.0]])
    assert carried_rows(old, new).tolist() == [1]


def test_duplicate_tokens_are_matched_by_id_if_possible():
    old = SplitTable.from_arrays([[0.0]], [~0, ~1, ~2], [[1.0], [2.0], [3.0]], vocabulary=["[UNK]", "[UNK]", "a"])
    new = old.grow(["b"], oov_initializer="zeros")
    assert carried_rows(old, new).tolist() == [0, 1, 2, -1]
    assert ids_before(old, new, np.array([3, 1])).tolist() == [-1, 1]


@pytest.mark.parametrize("new_ids", [[0], [0, 1, 7], [0.0, 1.0, 2.0]])
def test_an_invalid_mapping_of_ids_is_refused(new_ids):
    split = SplitTable.from_matrix([[0.0], [1.0], [2.0]], [1])
    with pytest.raises(SplitError, match=r"`new_ids` must be integers \(3,\), ids below 3 or -1"):
        carried_rows(split, split, new_ids)
