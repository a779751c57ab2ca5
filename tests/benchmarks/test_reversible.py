"""The scenarios of tied weights: contestants agree with NumPy, and only the trained Keras layer moves frozen rows."""

from functools import partial

import keras
import numpy as np
import pytest

from benchmarks.speed.checks import SMALL, check_step, frozen_rows_moved
from benchmarks.speed.contestants import reversible
from benchmarks.speed.contestants.reversible import loss_and_gradient, mixing
from benchmarks.speed.scenarios.reversible import SCENARIOS

# `make test-all` runs it: it takes long, and tests the benchmarks and not the package.
pytestmark = pytest.mark.slow

ENTRIES = {entry.label: entry for entry in SCENARIOS[0].entries}
# One entry of each kind: Keras's layer frozen and trained, a split by the problem, and a base in id order.
LABELS = (
    "keras ReversibleEmbedding, frozen",
    "keras ReversibleEmbedding, trainable, Adam",
    "splitembed, Adam",
    "splitembed, base in id order, ten rows train, Adam",
)


def make_of(entry):
    if entry.contestant.endswith("KerasReversible") and not hasattr(keras.layers, "ReversibleEmbedding"):
        pytest.skip("this Keras has no ReversibleEmbedding")
    return partial(getattr(reversible, entry.contestant.split(".")[1]), **entry.options)


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return SMALL.make(tmp_path_factory.mktemp("problem"))


@pytest.mark.parametrize("label", LABELS)
def test_contestants_agree_with_numpy(label, problem):
    entry = ENTRIES[label]
    make = make_of(entry)
    contestant = make(problem)
    if isinstance(contestant, reversible.Ours):
        assert contestant.layer.to_split().num_trainable == (contestant.few or SMALL.num_trainable)
    contestant.take_first_steps()
    problem.check(contestant.answer())
    check_step(make, reversible.reference_of, reversible.LEARNING_RATE)
    assert frozen_rows_moved(make) == (label == "keras ReversibleEmbedding, trainable, Adam")


def test_reference_gradient_agrees_with_finite_differences():
    generator = np.random.default_rng(0)
    table, ids = generator.normal(size=(5, 3)).astype(np.float32), generator.integers(0, 5, (2, 4))
    _, gradient = loss_and_gradient(table, ids, mixing(3))
    for index in np.ndindex(table.shape):
        losses = []
        for step in (1e-6, -1e-6):
            moved = table.astype(np.float64)
            moved[index] += step
            losses.append(loss_and_gradient(moved, ids, mixing(3))[0])
        np.testing.assert_allclose((losses[0] - losses[1]) / 2e-6, gradient[index], rtol=1e-4, atol=1e-8)
