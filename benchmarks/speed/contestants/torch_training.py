"""What contestants on PyTorch share: a subclass makes the module that turns ids into rows."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.speed.contestants.base import TrainingContestant
from benchmarks.speed.problems import Problem


class TorchContestant(TrainingContestant):
    """A contestant in PyTorch's eager mode, as its users write it."""

    @staticmethod
    def warm_up() -> None:
        """Takes a step on one number: PyTorch imports much of itself when an optimizer is first used."""
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
        # SparseAdam refuses the head's dense gradient
        self.optimizers.append(self._optimizer(self.optimizer_name.removeprefix("sparse_"), [self.head]))

    def build(self, problem: Problem) -> torch.nn.Module:
        """Makes the module."""
        raise NotImplementedError

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Ids `(batch, length)` in, rows `(batch, length, dim)` out."""
        return self.module(ids)

    def pool(self, rows: torch.Tensor) -> torch.Tensor:
        """Embedded texts in, one row `(batch, dim)` for each out."""
        return rows.mean(1)

    def forward(self, number: int) -> Any:
        with torch.no_grad():
            rows = self.embed(self.batches[number])
            return self.pool(rows) if self.task == "pool" else rows

    def step(self, number: int) -> float:
        rows = self.embed(self.batches[number])
        if not self.trains:
            rows.requires_grad_()  # the gradient goes down to the rows, as in every contestant
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
        """What a checkpoint holds beside the head and the optimizers."""
        return self.module.state_dict()

    def _optimizer(self, name: str, parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
        if name == "sparse_adam":  # it has no weight decay
            return torch.optim.SparseAdam(parameters, lr=self.learning_rate)
        if name == "sgd":
            return torch.optim.SGD(parameters, lr=self.learning_rate)
        return torch.optim.AdamW(parameters, lr=self.learning_rate, weight_decay=self.weight_decay)
