"""Checks on a small problem: whether a contestant computes the same as NumPy, and whether frozen rows move."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed.problems import Problem, Sizes
from benchmarks.speed.reference import loss_and_gradient

SMALL = Sizes(num_tokens=300, dim=8, num_trainable=30, batch_size=4, length=25, num_batches=5, trainable_share=0.2)
# The loss is a mean of means, so that a step of SGD with a usual rate would be too small to check.
_LEARNING_RATE = 10.0
_WEIGHT_DECAY = 0.1

Make = Callable[..., Any]


def reference_of(problem: Problem) -> tuple[float, NDArray[np.float64]]:
    """Return the loss of the first batch of a problem, and its gradient with respect to the table."""
    return loss_and_gradient(problem.table, problem.batches[0], problem.head)


def check_step(
    make: Make,
    reference: Callable[[Problem], tuple[float, NDArray[np.float64]]] = reference_of,
    learning_rate: float = _LEARNING_RATE,
) -> None:
    """Check the loss, and the trainable rows after one step of SGD, against NumPy.

    Args:
        make: a function that takes a problem, `optimizer` and `learning_rate`, and returns the contestant.
        reference: returns the loss of the problem's first batch, and its gradient `(num_tokens, dim)`.
        learning_rate: of the step.

    Raises:
        AssertionError: the contestant computes something else.
    """
    with tempfile.TemporaryDirectory() as folder:
        problem = SMALL.make(Path(folder))
        contestant = make(problem, optimizer="sgd", learning_rate=learning_rate)
        loss, gradient = reference(problem)
        np.testing.assert_allclose(contestant.step(0), loss, rtol=1e-4, err_msg="The loss differs from NumPy.")
        ids = problem.trainable_ids[: getattr(contestant, "few", None)]
        expected = problem.table[ids] - contestant.trains * learning_rate * gradient[ids]
        # The rounding of float32 in sums of a hundred terms, for rows of size 0.1.
        np.testing.assert_allclose(
            contestant.rows(ids[None])[0], expected, atol=2e-6, err_msg="The trained rows differ from NumPy."
        )


def frozen_rows_moved(make: Make) -> bool:
    """Return whether frozen rows have changed after steps with momentum and weight decay.

    Args:
        make: a function that takes a problem, `learning_rate` and `weight_decay`, and returns the contestant.
    """
    with tempfile.TemporaryDirectory() as folder:
        problem = SMALL.make(Path(folder))
        contestant = make(problem, learning_rate=0.1, weight_decay=_WEIGHT_DECAY)
        for number in range(problem.sizes.num_batches):
            contestant.step(number)
        ids = np.flatnonzero(~problem.is_trainable)
        return bool(np.any(contestant.rows(ids[None])[0] != problem.table[ids]))
