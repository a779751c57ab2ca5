"""The base classes of contestants: for any task, and for training in any framework."""

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
    """A task that can be repeated. The time of `run` is measured."""

    @staticmethod
    def warm_up() -> None:
        """Run the code whose memory does not count as the contestant's. The module is already imported."""

    def run(self, num_steps: int) -> None:
        """Repeat the task."""
        raise NotImplementedError

    def take_first_steps(self) -> None:
        """Take the steps during which peak memory is measured."""
        self.run(1)

    def answer(self) -> NDArray[np.float32] | None:
        """Return the rows that the problem checks after the first steps, or None if there is nothing to check."""
        return None

    def values(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return further values for the report, measured once."""
        return {}

    def last_values(self) -> dict[str, Any]:
        """Return values that are measured after all turns, while all contestants are still running."""
        return {}


class TrainingContestant(Contestant):
    """An embedding, a dense head, a loss and an optimizer.

    Tasks are "forward", "pool" (a forward pass, and the mean of each text's rows), "step" and, for layers, "fit".
    Subclasses define `batches`, `forward(number)` and `step(number)` for one batch, `rows(ids)`, and
    `checkpoint(path)`.

    Args:
        problem: the table, the batches, and the ids that train.
        task: the task of `run`.
        optimizer: a name that the subclass of the framework knows.
        learning_rate: the learning rate. It does not affect the time.
        weight_decay: the weight decay, 0 for none.
    """

    # False if all rows are frozen.
    trains = True
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
        """Run forward passes or training steps, on one batch after the other."""
        do = {"forward": self.forward, "pool": self.forward, "step": self.step}[self.task]
        for number in range(num_steps):
            do(number % self.problem.sizes.num_batches)

    def take_first_steps(self) -> None:
        """Keep the rows before training, run on one text, then measure the memory that whole batches add."""
        self.rows_before = self.rows(self.problem.question)
        whole, self.batches = self.batches, [self.batches[0][:1]]
        self.run(1)
        self.batches = whole
        with PeakMemory() as peak:
            self.run(_FIRST_STEPS)
        self.growth = peak.growth

    def answer(self) -> NDArray[np.float32] | None:
        """Return the rows of the problem's question, from before training."""
        return self.rows_before

    def values(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the memory per batch, the checkpoint's size and whether frozen rows move, after checking a step."""
        memory = {} if self.task == "fit" else {"batch_bytes": self.growth}
        if self.task in ("forward", "pool"):
            return memory
        make = partial(type(self), **options)
        check_step(make)
        with tempfile.TemporaryDirectory() as folder:
            self.checkpoint(Path(folder, "checkpoint"))
            num_bytes = sum(path.stat().st_size for path in Path(folder).iterdir())
        return {**memory, "checkpoint_bytes": num_bytes, "frozen_rows_moved": frozen_rows_moved(make)}

    def forward(self, number: int) -> Any:
        """Embed a batch."""
        raise NotImplementedError

    def step(self, number: int) -> float:
        """Train on a batch, and return the loss before the update."""
        raise NotImplementedError

    def rows(self, ids: NDArray[Any]) -> NDArray[np.float32]:
        """Return the current rows of ids, `(*ids.shape, dim)`."""
        raise NotImplementedError

    def checkpoint(self, path: Path) -> None:
        """Write the contents of a training checkpoint: all weights, and the optimizer's slots."""
        raise NotImplementedError
