"""Means of rows, mapped and streamed, against NumPy's mean."""

import io
import itertools
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from splitembed.vectors.fasttext import rows as fasttext_rows
from splitembed.vectors.fasttext.cursor import Cursor
from splitembed.vectors.fasttext.ngrams import Runs
from splitembed.vectors.fasttext.rows import map_rows, mean_mapped, mean_streamed
from splitembed.vectors.read_checks import ReadChecks


@st.composite
def runs_of(draw, num_rows):
    runs = draw(st.lists(st.lists(st.integers(0, num_rows - 1), max_size=9), max_size=7))
    return runs, Runs(np.array(list(itertools.chain(*runs)), np.int64), np.array(list(map(len, runs)), np.int64))


@given(runs_of(20), st.integers(1, 4), st.integers(1, 64), st.integers(0, 3))
def test_mapped_and_streamed_means_are_the_means(tmp_path_factory, drawn, dim, piece_bytes, position):
    lists, runs = drawn
    rows = np.random.default_rng(dim).standard_normal((20, dim)).astype("<f4")
    expected = [rows[run].mean(axis=0, dtype=np.float64) if run else np.zeros(dim) for run in lists]
    path = tmp_path_factory.getbasetemp() / "rows"
    # At any byte, because the rows of a model are not aligned.
    path.write_bytes(b"?" * position + rows.tobytes())
    with open(path, "rb") as file:
        mapped = mean_mapped(map_rows(file, position, 20, dim), runs, dim)
    with mock.patch.object(fasttext_rows, "PIECE_BYTES", piece_bytes):
        half = len(lists) // 2
        cut = int(runs.counts[:half].sum())
        pieces = [Runs(runs.rows[:cut], runs.counts[:half]), Runs(runs.rows[cut:], runs.counts[half:])]
        streamed = mean_streamed(Cursor(io.BytesIO(rows.tobytes()), ReadChecks("rows")), 20, pieces, dim)
    for means in (mapped, streamed):
        assert means.dtype == np.float32 and means.shape == (len(lists), dim)
        # Nine float32 additions of numbers of size 1: an error of a few units in the last place, 6e-8.
        np.testing.assert_allclose(means, np.reshape(expected, (-1, dim)), rtol=1e-6, atol=1e-6)


def test_a_mapped_mean_is_bit_for_bit_the_sum_in_order_times_the_reciprocal():
    rows = np.random.default_rng(0).standard_normal((30, 4)).astype("<f4")
    run = np.array([3, 29, 3, 11, 0, 17, 8])
    total = np.zeros(4, np.float32)
    for row in run:
        total += rows[row]
    mean = mean_mapped(rows.view("V16")[:, 0], Runs(run, np.array([7])), 4)[0]
    assert mean.tobytes() == (total * np.float32(1 / 7)).tobytes()


def test_a_row_that_very_many_words_share():
    runs = Runs(np.zeros(100_000, np.int64), np.ones(100_000, np.int64))
    means = mean_streamed(Cursor(io.BytesIO(np.float32([1, 2]).tobytes()), ReadChecks("rows")), 1, [runs], 2)
    assert means.shape == (100_000, 2) and (means == [1, 2]).all()
