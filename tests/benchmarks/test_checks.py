"""The checks of contestants accept a correct one and find wrong ones, which are written in NumPy."""

import numpy as np
import pytest

from benchmarks.speed.checks import SMALL, check_step, frozen_rows_moved
from benchmarks.speed.reference import loss_and_gradient


class Right:
    """A correct contestant: SGD and weight decay on the trainable rows only."""

    trains = True

    def __init__(self, problem, optimizer="sgd", learning_rate=0.1, weight_decay=0.0):
        self.problem, self.learning_rate, self.weight_decay = problem, learning_rate, weight_decay
        self.table = np.array(problem.table)

    def step(self, number):
        loss, gradient = loss_and_gradient(self.table, self.problem.batches[number], self.problem.head)
        self.update(self.change(gradient), self.problem.is_trainable)
        return loss

    def change(self, gradient):
        return gradient + self.weight_decay * self.table

    def update(self, change, rows):
        self.table[rows] -= self.learning_rate * change[rows]

    def rows(self, ids):
        return self.table[ids]


class Frozen(Right):
    """A contestant without trainable rows."""

    trains = False

    def update(self, change, rows):
        pass


class WrongLoss(Right):
    def step(self, number):
        return super().step(number) + 0.01


class NoTraining(Right):
    def update(self, change, rows):
        pass


class OnceForRepeats(Right):
    """A wrong contestant, which counts the gradient of a repeated id only once."""

    def change(self, gradient):
        counts = np.bincount(self.problem.batches[0].ravel(), minlength=len(gradient))
        return gradient / np.maximum(counts, 1)[:, None]


class DecaysAllRows(Right):
    """A contestant with masked gradients, whose weight decay moves every row."""

    def change(self, gradient):
        return gradient * self.problem.is_trainable[:, None] + self.weight_decay * self.table

    def update(self, change, rows):
        super().update(change, slice(None))


@pytest.mark.parametrize("make", [Right, Frozen, DecaysAllRows])
def test_correct_steps_pass(make):
    check_step(make)


@pytest.mark.parametrize(
    ("make", "message"),
    [(WrongLoss, "loss differs"), (NoTraining, "trained rows"), (OnceForRepeats, "trained rows")],
)
def test_wrong_steps_are_found(make, message):
    with pytest.raises(AssertionError, match=message):
        check_step(make)


@pytest.mark.parametrize(("make", "moved"), [(Right, False), (Frozen, False), (DecaysAllRows, True)])
def test_moved_frozen_rows_are_found(make, moved):
    assert frozen_rows_moved(make) is moved


def test_reference_gradient_agrees_with_finite_differences():
    rng = np.random.default_rng(0)
    table, head = rng.standard_normal((5, 3), np.float32), rng.standard_normal((3, 2), np.float32)
    ids = np.array([[0, 1, 1], [4, 4, 4]])
    _, gradient = loss_and_gradient(table, ids, head)
    for row, column in [(0, 0), (1, 2), (2, 1), (4, 1)]:
        losses = []
        for shift in (-1e-2, 1e-2):
            moved = table.copy()
            moved[row, column] += np.float32(shift)
            losses.append(loss_and_gradient(moved, ids, head)[0])
        # The loss is quadratic, so that central differences are exact except for the rounding of float32 rows.
        assert gradient[row, column] == pytest.approx((losses[1] - losses[0]) / 2e-2, abs=1e-4)


def test_small_problem_repeats_trainable_ids(tmp_path):
    batch = SMALL.make(tmp_path).batches[0]
    assert batch.size > len(np.unique(batch))
