"""Problems: Zipf-distributed ids, and the stated shares of trainable rows and tokens."""

import numpy as np
import pytest

from benchmarks.speed.problems import GloveSizes, Sizes, trainable_ranks, zipf_ranks

SIZES = Sizes(num_tokens=20_000, dim=4, num_trainable=1_000, num_batches=5)


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return SIZES.make(tmp_path_factory.mktemp("problem"))


def test_five_percent_of_rows_and_of_tokens_are_trainable(problem):
    assert len(problem.trainable_ids) == 1_000
    assert problem.batches.shape == (5, 64, 200)
    # The most frequent trainable id is about 2 % of the 64,000 draws.
    assert problem.is_trainable[problem.batches].mean() == pytest.approx(0.05, abs=0.01)


def test_ids_are_zipf_distributed_over_all_tokens(problem):
    counts = np.sort(np.bincount(problem.batches.ravel(), minlength=20_000))[::-1]
    expected = np.arange(1, 20_001) ** -1.2
    expected *= problem.batches.size / expected.sum()
    np.testing.assert_allclose(counts[:10], expected[:10], rtol=0.1)
    assert np.count_nonzero(counts) > 3_000


def test_ranks_stay_in_range_and_keep_their_proportions():
    ranks = zipf_ranks(50, 100_000, np.random.default_rng(0))
    counts = np.bincount(ranks, minlength=50)
    assert len(counts) == 50
    assert counts[0] / counts[1] == pytest.approx(2**1.2, rel=0.05)


@pytest.mark.parametrize(("num_ranks", "count"), [(200_000, 2_000), (200_000, 100_000), (400, 20)])
def test_trainable_ranks_have_their_share_of_the_probability(num_ranks, count):
    ranks = trainable_ranks(num_ranks, count, 0.05)
    weights = np.arange(1, num_ranks + 1) ** -1.2
    assert len(np.unique(ranks)) == count and ranks[-1] < num_ranks
    assert weights[ranks].sum() / weights.sum() == pytest.approx(0.05, abs=0.002)


def test_too_many_trainable_rows_are_the_rarest():
    assert trainable_ranks(10, 8, 0.05).tolist() == [2, 3, 4, 5, 6, 7, 8, 9]


def test_batches_have_the_stated_number_of_distinct_ids(tmp_path):
    problem = Sizes(num_tokens=5_000, dim=4, num_trainable=250, num_batches=3, num_distinct=1_000).make(tmp_path)
    for batch in problem.batches:
        distinct = np.unique(batch)
        assert len(distinct) == 1_000
        assert problem.is_trainable[distinct].sum() == 50


def test_mapped_split_and_split_in_memory_equal_the_table(problem):
    ids = np.arange(20_000)
    for mapped in (True, False):
        split = problem.split(mapped)
        assert split.num_trainable == 1_000
        np.testing.assert_array_equal(split.lookup(ids), problem.table)


def test_a_problem_on_real_vectors_has_the_first_of_them(tmp_path, monkeypatch):
    vectors = np.random.default_rng(0).standard_normal((1_000, 50), np.float32)
    monkeypatch.setattr("benchmarks.speed.problems.glove_50d", lambda: ([], vectors))
    problem = GloveSizes(400_000, 50, 20_000).shrunk().make(tmp_path)
    np.testing.assert_array_equal(problem.table, vectors[:800, :16])


def test_a_wrong_answer_is_refused(problem):
    right = problem.table[problem.question]
    problem.check(right)
    with pytest.raises(AssertionError, match="not those of the table"):
        problem.check(right + 1e-7)


def test_small_sizes_keep_the_kind_of_problem(tmp_path):
    small = Sizes(10_000_000, 64, 500_000, num_distinct=1_000).shrunk()
    assert small.num_tokens <= 20_000
    facts = small.make(tmp_path).facts()
    assert facts["distinct ids per batch"] == 40
