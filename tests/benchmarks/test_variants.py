"""Contestants with bags of ids and with rounded rows, compared with NumPy, and notes of scenarios."""

import numpy as np
import pytest

from benchmarks.speed.checks import SMALL
from benchmarks.speed.contestants.bags import Combiner
from benchmarks.speed.contestants.opening import Opening
from benchmarks.speed.contestants.precision import Narrowed
from benchmarks.speed.outcome import Line, Outcome
from benchmarks.speed.scenarios import SCENARIOS

# `make test-all` runs it: it takes long, and tests the benchmarks and not the package.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return SMALL.make(tmp_path_factory.mktemp("problem"))


def test_rows_and_means_of_bags_agree_with_numpy(problem):
    contestant = Combiner(problem, "pool")
    contestant.take_first_steps()
    np.testing.assert_array_equal(contestant.answer(), problem.table[problem.question])
    np.testing.assert_allclose(contestant.means_before, problem.table[problem.question].mean(1), atol=1e-6)
    assert contestant.values({}).keys() == {"batch_bytes"}


def test_wrong_means_are_found(problem):
    contestant = Combiner(problem, "pool")
    contestant.take_first_steps()
    # Sums instead of means.
    contestant.means_before = contestant.means_before * 200
    with pytest.raises(AssertionError, match="The means differ from NumPy"):
        contestant.values({})


@pytest.mark.parametrize(
    ("dtype", "bytes_a_row", "error"),
    [("float32", 32, 0), ("float16", 16, 5e-4), ("bfloat16", 16, 4e-3), ("int8", 12, 2e-2)],
)
def test_bytes_and_errors_of_rounded_rows_agree_with_numpy(problem, dtype, bytes_a_row, error):
    contestant = Narrowed(problem, "forward", dtype=dtype)
    contestant.take_first_steps()
    assert (contestant.answer() is None) == (dtype != "float32")
    found = contestant.values({"dtype": dtype})
    assert found["frozen_bytes"] == bytes_a_row * (SMALL.num_tokens - SMALL.num_trainable)
    ids = np.flatnonzero(~problem.is_trainable)
    exact, stored = problem.table[ids], contestant.rows(ids[None])[0]
    errors = [np.linalg.norm(a - b) / np.linalg.norm(a) for a, b in zip(exact, stored, strict=True)]
    cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(exact, stored, strict=True)]
    # float32 is compared with float64.
    assert found["worst_row_error"] == pytest.approx(max(errors), rel=1e-3)
    assert found["mean_row_error"] == pytest.approx(np.mean(errors), rel=1e-3)
    assert found["cosine_distance"] == pytest.approx(1 - min(cosines), abs=3e-7)
    assert found["mean_row_error"] <= found["worst_row_error"] <= error
    assert (found["worst_row_error"] > 0) == (dtype != "float32")


def test_wrong_widened_rows_are_found(problem):
    contestant = Narrowed(problem, "forward", dtype="int8")
    contestant.take_first_steps()
    contestant.rows_before = contestant.rows_before + np.float32(1e-6)
    with pytest.raises(AssertionError, match="differ from NumPy"):
        contestant.answer()


@pytest.mark.parametrize(
    ("adam", "advice"),
    [
        ((0.0011, 0.0012, 0.0014), "both are equally good"),
        ((0.0011, 0.004, 0.2), "use LazyAdam from 100,000 trainable rows on"),
        ((0.01, 0.04, 0.2), "use LazyAdam from 20,000 trainable rows on"),
    ],
)
def test_advice_follows_from_the_measured_times(adam, advice):
    scenario = SCENARIOS["trainable-rows"]
    labels = [entry.label for entry in scenario.entries]
    seconds = dict(zip(labels, (0.001, 0.001, 0.001, *adam), strict=True))
    outcome = Outcome(scenario, {label: Line(label, [seconds[label]]) for label in labels})
    assert advice in outcome.note
    assert f"{adam[2] / 0.001:.2g} x at 1,000,000" in outcome.note
    outcome.lines[labels[0]].seconds = []
    assert outcome.note == ""


@pytest.mark.parametrize(("task", "weight"), [("open", 0), ("layer", 4 * SMALL.num_trainable * SMALL.dim)])
def test_memory_growth_is_reported_without_remap_and_without_weight(problem, task, weight):
    contestant = Opening(problem, task)
    np.testing.assert_array_equal(contestant.answer(), problem.table[problem.question])
    contestant.growth = 1_000_000
    found = contestant.values({})
    assert found["growth_without_remap_bytes"] == 1_000_000 - 4 * SMALL.num_tokens
    assert found["growth_without_weight_bytes"] == found["growth_without_remap_bytes"] - weight


def test_a_note_can_be_plain_text():
    assert Outcome(SCENARIOS["opening"], {}).note.startswith("20,000 trainable rows are 8 MB")
