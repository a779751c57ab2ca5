"""PyTorch's `nn.EmbeddingBag`, frozen or with sparse gradients."""

import numpy as np
import torch

from benchmarks.speed.contestants.pooling import OneRowABag
from benchmarks.speed.contestants.torch_embedding import TorchEmbedding
from benchmarks.speed.problems import Problem


class TorchBag(OneRowABag, TorchEmbedding):
    """One weight for all rows. `rows` is "frozen" or "sparse"."""

    def build(self, problem: Problem) -> torch.nn.Module:
        table = torch.from_numpy(np.array(problem.table))
        sparse = self.kind == "sparse"
        return torch.nn.EmbeddingBag.from_pretrained(table, freeze=not self.trains, mode="mean", sparse=sparse)
