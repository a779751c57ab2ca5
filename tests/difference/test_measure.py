"""The rows that moved between two splits, compared with the dense matrices of both."""

import tracemalloc

import numpy as np
import pytest

from splitembed import SplitTable
from splitembed.difference import diff
from splitembed.errors import SplitError

NAMES = ["", "red", "sky", "usr", "lol"]
MATRIX = np.array([[0, 0], [1, 0], [0, 1], [2, 0.5], [1, 1]], np.float32)


@pytest.fixture
def before():
    return SplitTable.from_matrix(MATRIX, [3, 4], vocabulary=NAMES, padding=0)


def test_distances_and_cosines_equal_those_of_the_dense_matrices():
    generator = np.random.default_rng(0)
    matrix = generator.normal(size=(300, 7)).astype(np.float32)
    old = SplitTable.from_matrix(matrix, range(100))
    rows = old.trainable.copy()
    rows[::2] += generator.normal(size=(50, 7))
    new = old.with_trainable(rows)
    found = diff(old, new, top=10)
    a, b = old.combine().astype(float), new.combine().astype(float)
    distances = np.linalg.norm(b - a, axis=1)
    order = np.argsort(-distances, kind="stable")[:50]
    assert found.ids.tolist() == order.tolist() and (found.num_moved, found.num_common) == (50, 300)
    np.testing.assert_allclose(found.distances, distances[order])
    cosines = (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    np.testing.assert_allclose(found.cosines, cosines[order])
    assert [row.token for row in found.rows] == order[:10].tolist()
    np.testing.assert_allclose([row.norm_after for row in found.rows], np.linalg.norm(b, axis=1)[order[:10]])
    np.testing.assert_allclose([row.norm_before for row in found.rows], np.linalg.norm(a, axis=1)[order[:10]])


def test_moved_rows_have_their_nearest_tokens(before):
    rows = diff(before, before.with_trainable([[0.0, 3.0], [1.0, 1.0]]), nearest=1).rows
    assert [(row.token, row.nearest_before, row.nearest_after) for row in rows] == [("usr", ("red",), ("sky",))]
    assert diff(before, before.with_trainable([[0.0, 3.0], [1.0, 1.0]]), nearest=0).rows[0].nearest_after == ()


def test_a_row_is_not_its_own_neighbour(before):
    # Before the thaw, the token was frozen and nearest to itself.
    after = before.thaw(["red"])
    moved = diff(before, after.with_trainable([*after.trainable[:2], [0.5, 0.5]]), nearest=3).rows
    assert moved[0].token == "red" and moved[0].nearest_before == ("sky",) and moved[0].nearest_after == ("sky",)


def test_tokens_are_compared_by_name_across_ids(before):
    after = before.grow(["new"], oov_initializer="zeros").shrink(["red"])
    after = after.with_trainable([[2.0, 0.5], [5.0, 5.0], [1.0, 1.0]])
    found = diff(before, after)
    assert (found.num_moved, found.num_common, found.num_added, found.num_dropped) == (1, 4, 1, 1)
    assert found.rows[0].token == "lol" and found.ids.tolist() == [3]
    assert str(found).startswith("1 of 4 rows moved; 1 token added; 1 token dropped\n")


def test_thawing_and_freezing_moves_no_row(before):
    for after in (
        before,
        before.thaw(["red"]),
        before.freeze(["usr"]),
        before.compact(),
        before.thaw([1]).freeze([1, 3]),
    ):
        assert diff(before, after).num_moved == 0
        assert str(diff(before, after)) == "0 of 5 rows moved"


def test_changed_frozen_rows_are_found(before, tmp_path):
    after = before.with_frozen({"red": [3.0, 0.0], "sky": [0.0, 1.0]})
    assert [row.token for row in diff(before, after).rows] == ["red"]
    before.save(tmp_path / "a")
    opened = SplitTable.open(tmp_path / "a")
    assert diff(before, opened).num_moved == 0 and diff(opened, SplitTable.open(tmp_path / "a")).num_moved == 0


def test_rows_that_are_not_finite_come_first():
    old = SplitTable.from_arrays(
        [[1.0, 0.0]], [~0, ~1, ~2, ~3, 0], [[1.0, 1.0], [np.nan, 1.0], [0.0, 0.0], [-0.0, 1.0]]
    )
    new = old.with_trainable([[9.0, 9.0], [np.nan, 1.0], [np.nan, 0.0], [0.0, 1.0]])
    found = diff(old, new)
    # A NaN with the same bits and the sign of a zero do not count.
    assert found.ids.tolist() == [2, 0]
    assert np.isnan(found.distances[0]) and found.rows[0].nearest_after == ()
    assert found.to_dict()["rows"][0] == {
        "token": 2,
        "distance": None,
        "cosine": None,
        "norm_before": 0.0,
        "norm_after": None,
        "nearest_before": [],
        "nearest_after": [],
    }


def test_a_layer_is_compared_by_its_split(before):
    class Layer:
        def to_split(self):
            return before.with_trainable([[0.0, 3.0], [1.0, 1.0]])

    assert diff(before, Layer()).num_moved == 1


def test_invalid_arguments_are_refused(before):
    with pytest.raises(SplitError, match="must have the same dim. Received: dims 2 and 1"):
        diff(before, SplitTable.from_matrix([[1.0]], []))
    for options in ({"top": -1}, {"nearest": -1}):
        with pytest.raises(SplitError, match="must be 0 or more"):
            diff(before, before, **options)
    with pytest.raises(SplitError, match="`after` must be a SplitTable, or a layer that has one"):
        diff(before, MATRIX)


def test_memory_is_bounded():
    # 31 MB.
    matrix = np.ones((60_000, 128), np.float32)
    old = SplitTable.from_arrays(matrix, np.arange(60_000), np.empty((0, 128)))
    other = SplitTable.from_arrays(matrix * 2, np.arange(60_000), np.empty((0, 128)))
    tracemalloc.start()
    found = diff(old, other)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.num_moved == 60_000 and peak < matrix.nbytes
