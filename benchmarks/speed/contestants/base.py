"""What the harness asks of a contestant, and what training contestants of every framework share."""

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.memory import PeakMemory
from benchmarks.speed.checks import check_step, frozen_rows_moved
from benchmarks.speed.problems import Problem

_FIRST_STEPS = 5


class Contestant:
    """Something that can be run again and again: `run` is what is timed."""

    @staticmethod
    def warm_up() -> None:
        """Does what is not to count as the contestant's memory; imports are done by then."""

    def run(self, num_steps: int) -> None:
        """Does the task that many times."""
        raise NotImplementedError

    def take_first_steps(self) -> None:
        """Runs while peak memory is watched."""
        self.run(1)

    def answer(self) -> NDArray[np.float32] | None:
        """What the problem checks, asked after the first steps; None where there is nothing to be checked."""
        return None

    def values(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Further values for the report, measured once."""
        return {}

    def last_values(self) -> dict[str, Any]:
        """Values measured when all contestants have run and are still there."""
        return {}


class TrainingContestant(Contestant):
    """An embedding, a dense head, a loss and an optimizer.

    Tasks are "forward", "pool" (a forward pass, and the mean of each text's rows), "step" and, for layers, "fit".
    Subclasses give `batches`, `forward(number)` and `step(number)` on one of them, `rows(ids)`, and `checkpoint(path)`.

    Args:
        problem: the table, the batches, and which ids train.
        task: what `run` does.
        optimizer: a name that the framework's subclass knows.
        learning_rate: in all steps that are timed, small enough not to matter.
        weight_decay: 0 for none.
    """

    trains = True  # False where all rows are frozen
    batches: list[Any]

    def __init__(
        self,
        problem: Problem,
        task: str = "step",
        *,
        optimizer: str = "lazy_adam",
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
    ) -> None:
        self.problem, self.task = problem, task
        self.optimizer_name, self.learning_rate, self.weight_decay = optimizer, learning_rate, weight_decay

    def run(self, num_steps: int) -> None:
        """Forward passes or training steps, through the batches and round again."""
        do = {"forward": self.forward, "pool": self.forward, "step": self.step}[self.task]
        for number in range(num_steps):
            do(number % self.problem.sizes.num_batches)

    def take_first_steps(self) -> None:
        """Keeps the rows as they are before training; runs on one text, which makes all that lasts; then on batches."""
        self.rows_before = self.rows(self.problem.question)
        whole, self.batches = self.batches, [self.batches[0][:1]]
        self.run(1)
        self.batches = whole
        with PeakMemory() as peak:
            self.run(_FIRST_STEPS)
        self.growth = peak.growth

    def answer(self) -> NDArray[np.float32] | None:
        """The rows of the problem's question, from before training."""
        return self.rows_before

    def values(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Says what a batch takes; checks a training step, measures the checkpoint, and whether frozen rows move."""
        beside = {} if self.task == "fit" else {"batch_bytes": self.growth}
        if self.task in ("forward", "pool"):
            return beside
        make = partial(type(self), **options)
        check_step(make)
        with tempfile.TemporaryDirectory() as folder:
            self.checkpoint(Path(folder, "checkpoint"))
            num_bytes = sum(path.stat().st_size for path in Path(folder).iterdir())
        return {**beside, "checkpoint_bytes": num_bytes, "frozen_rows_moved": frozen_rows_moved(make)}

    def forward(self, number: int) -> Any:
        """Embeds a batch."""
        raise NotImplementedError

    def step(self, number: int) -> float:
        """Trains on a batch, and returns the loss from before the update."""
        raise NotImplementedError

    def rows(self, ids: NDArray[Any]) -> NDArray[np.float32]:
        """`ids.shape + (dim,)`: the rows as they are now."""
        raise NotImplementedError

    def checkpoint(self, path: Path) -> None:
        """Writes what a training checkpoint holds: the weights, trained or not, and the optimizer's slots."""
        raise NotImplementedError
