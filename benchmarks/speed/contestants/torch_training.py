"""The base class of contestants on PyTorch. A subclass makes the module that embeds ids."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.speed.contestants.base import TrainingContestant
from benchmarks.speed.problems import Problem


class TorchContestant(TrainingContestant):
    """A contestant in the eager mode of PyTorch."""

    @staticmethod
    def warm_up() -> None:
        """Take a step on one number, because PyTorch imports many modules when an optimizer is first used."""
        number = torch.nn.Parameter(torch.ones(1))
        number.sum().backward()
        torch.optim.Adam([number]).step()

    def __init__(self, problem: Problem, task: str = "step", **options: Any) -> None:
        super().__init__(problem, task, **options)
        self.head = torch.nn.Parameter(torch.from_numpy(problem.head.copy()))
        self.module: torch.nn.Module = self.build(problem)
        self.batches = [torch.from_numpy(batch.astype(np.int64)) for batch in problem.batches]
        trained = [parameter for parameter in self.module.parameters() if parameter.requires_grad]
        self.optimizers = [self._optimizer(self.optimizer_name, trained)] if trained else []
        # SparseAdam does not accept the dense gradient of the head.
        self.optimizers.append(self._optimizer(self.optimizer_name.removeprefix("sparse_"), [self.head]))

    def build(self, problem: Problem) -> torch.nn.Module:
        """Make the module."""
        raise NotImplementedError

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows of ids `(batch, length)`, `(batch, length, dim)`."""
        return self.module(ids)

    def pool(self, rows: torch.Tensor) -> torch.Tensor:
        """Return one row for each embedded text, `(batch, dim)`."""
        return rows.mean(1)

    def forward(self, number: int) -> Any:
        with torch.no_grad():
            rows = self.embed(self.batches[number])
            return self.pool(rows) if self.task == "pool" else rows

    def step(self, number: int) -> float:
        rows = self.embed(self.batches[number])
        if not self.trains:
            # Compute the gradient of the rows, as in every contestant.
            rows.requires_grad_()
        loss = (self.pool(rows) @ self.head).square().mean()
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
        return loss.item()

    def rows(self, ids: NDArray[Any]) -> NDArray[np.float32]:
        with torch.no_grad():
            return self.embed(torch.from_numpy(ids.astype(np.int64))).numpy()

    def checkpoint(self, path: Path) -> None:
        torch.save([self.saved(), self.head, *(optimizer.state_dict() for optimizer in self.optimizers)], path)

    def saved(self) -> dict[str, Any]:
        """Return the part of a checkpoint without head and optimizers."""
        return self.module.state_dict()

    def _optimizer(self, name: str, parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
        # SparseAdam has no weight decay.
        if name == "sparse_adam":
            return torch.optim.SparseAdam(parameters, lr=self.learning_rate)
        if name == "sgd":
            return torch.optim.SGD(parameters, lr=self.learning_rate)
        return torch.optim.AdamW(parameters, lr=self.learning_rate, weight_decay=self.weight_decay)
