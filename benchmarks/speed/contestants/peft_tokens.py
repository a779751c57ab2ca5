"""PEFT's trainable tokens: an adapter with the rows of chosen tokens, on a frozen `nn.Embedding`."""

from typing import Any

import numpy as np
import torch
from peft import TrainableTokensConfig, get_peft_model, get_peft_model_state_dict

from benchmarks.speed.contestants.torch_training import TorchContestant
from benchmarks.speed.problems import Problem


class _Model(torch.nn.Module):
    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding.from_pretrained(table)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.embedding(ids)


class PeftTokens(TorchContestant):
    """A contestant that merges the adapter's rows into a copy of the table at each step."""

    def build(self, problem: Problem) -> torch.nn.Module:
        config = TrainableTokensConfig(target_modules=["embedding"], token_indices=problem.trainable_ids.tolist())
        return get_peft_model(_Model(torch.from_numpy(np.array(problem.table))), config)

    def saved(self) -> dict[str, Any]:
        """Return only the adapter, as PEFT saves it."""
        return get_peft_model_state_dict(self.module, save_embedding_layers=False)
