"""That contestants train the same thing, and whether frozen rows stay: a contestant goes in, facts come out.

Both are measured on a small problem, with the contestant's own code.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.problems import Sizes
from benchmarks.speed.reference import loss_and_gradient

SMALL = Sizes(num_tokens=300, dim=8, num_trainable=30, batch_size=4, length=25, num_batches=5, trainable_share=0.2)
_LEARNING_RATE = 10.0  # so that a step of SGD shows: the loss is a mean of means
_WEIGHT_DECAY = 0.1

Make = Callable[..., Any]


def check_step(make: Make) -> None:
    """Raises unless the loss is NumPy's, and one step of plain SGD moves the trainable rows as NumPy says.

    Args:
        make: takes a problem, `optimizer` and `learning_rate`, and returns the contestant.
    """
    with tempfile.TemporaryDirectory() as folder:
        problem = SMALL.make(Path(folder))
        contestant = make(problem, optimizer="sgd", learning_rate=_LEARNING_RATE)
        loss, gradient = loss_and_gradient(problem.table, problem.batches[0], problem.head)
        np.testing.assert_allclose(contestant.step(0), loss, rtol=1e-4, err_msg="The loss is not NumPy's.")
        ids = problem.trainable_ids
        expected = problem.table[ids] - contestant.trains * _LEARNING_RATE * gradient[ids]
        # float32: rows of size 0.1, and sums of a hundred terms
        np.testing.assert_allclose(
            contestant.rows(ids[None])[0], expected, atol=2e-6, err_msg="The trained rows are not NumPy's."
        )


def frozen_rows_moved(make: Make) -> bool:
    """Says whether rows that are not to train have changed after steps with momentum and weight decay.

    Args:
        make: takes a problem, `learning_rate` and `weight_decay`, and returns the contestant.
    """
    with tempfile.TemporaryDirectory() as folder:
        problem = SMALL.make(Path(folder))
        contestant = make(problem, learning_rate=0.1, weight_decay=_WEIGHT_DECAY)
        for number in range(problem.sizes.num_batches):
            contestant.step(number)
        ids = np.flatnonzero(~problem.is_trainable)
        return bool(np.any(contestant.rows(ids[None])[0] != problem.table[ids]))
