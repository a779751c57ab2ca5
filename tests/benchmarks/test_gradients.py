"""The gradient-control scenario: contestants agree with NumPy, and the note lists the measured results."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.speed.checks import SMALL, check_step, frozen_rows_moved
from benchmarks.speed.contestants import gradient_control
from benchmarks.speed.contestants.gradient_control import momentum_moves
from benchmarks.speed.scenarios.gradients import SCENARIOS

# `make test-all` runs it: it takes long, and tests the benchmarks and not the package.
pytestmark = pytest.mark.slow

(SCENARIO,) = SCENARIOS
ENTRIES = {entry.label: entry for entry in SCENARIO.entries if entry.contestant.startswith("gradient_control.")}


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return SMALL.make(tmp_path_factory.mktemp("problem"))


def make_of(entry):
    return partial(getattr(gradient_control, entry.contestant.split(".")[1]), **entry.options)


@pytest.mark.parametrize("label", ENTRIES)
def test_contestants_agree_with_numpy_and_move_frozen_rows_as_expected(label, problem):
    make = make_of(ENTRIES[label])
    contestant = make(problem)
    contestant.take_first_steps()
    problem.check(contestant.answer())
    check_step(make)
    is_split = label.startswith("PartialEmbedding")
    assert frozen_rows_moved(make) == (not is_split)
    # LazyAdam does not move rows without a gradient, even if they have momentum.
    assert momentum_moves(make) == {"moved_by_momentum": not is_split and not label.endswith("LazyAdam")}


def test_check_of_momentum_starts_with_all_rows_trainable(problem):
    for label in ("PartialEmbedding, LazyAdam", "keep_gradient_rows, LazyAdam"):
        contestant = make_of(ENTRIES[label])(problem, all_rows=True, learning_rate=0.1)
        ids = np.flatnonzero(~problem.is_trainable)[None]
        before = contestant.rows(ids)
        contestant.step(0)
        after = contestant.rows(ids)
        assert np.any(after != before)
        contestant.freeze()
        contestant.step(1)
        np.testing.assert_array_equal(contestant.rows(ids), after)
        assert np.any(contestant.rows(problem.trainable_ids[None]) != problem.table[problem.trainable_ids])


def test_note_lists_the_methods_that_move_frozen_rows():
    found = {("keep_gradient_rows, Adam", "frozen_rows_moved"): 1.0}
    outcome = SimpleNamespace(value=lambda label, key: found.get((label, key), 0.0))
    assert SCENARIO.note(outcome).startswith(
        "Weight decay moves frozen rows with: keep_gradient_rows, Adam. Momentum from before the freeze moves frozen "
        "rows with: none."
    )
