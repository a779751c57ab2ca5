"""PyTorch's `nn.Embedding`: frozen, trainable, with sparse gradients, or with a hook that masks the gradient."""

from typing import Any

import numpy as np
import torch

from benchmarks.speed.contestants.torch_training import TorchContestant
from benchmarks.speed.problems import Problem


class TorchEmbedding(TorchContestant):
    """One weight for all rows.

    Args:
        rows: "frozen", "trainable", "sparse" (for SparseAdam), or "hook".
    """

    def __init__(self, problem: Problem, task: str = "step", *, rows: str, **options: Any) -> None:
        self.kind, self.trains = rows, rows != "frozen"
        super().__init__(problem, task, **options)

    def build(self, problem: Problem) -> torch.nn.Module:
        table = torch.from_numpy(np.array(problem.table))
        module = torch.nn.Embedding.from_pretrained(table, freeze=not self.trains, sparse=self.kind == "sparse")
        if self.kind == "hook":
            mask = torch.from_numpy(problem.is_trainable[:, None].astype(np.float32))
            module.weight.register_hook(lambda gradient: gradient * mask)
        return module
