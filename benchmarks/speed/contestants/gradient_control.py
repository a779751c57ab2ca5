"""Gradient control without a split: a gate before or after the lookup, kept gradient rows; and PartialEmbedding."""

import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from benchmarks.speed.checks import SMALL
from benchmarks.speed.contestants.graph import TensorFlowContestant, make_optimizer
from benchmarks.speed.contestants.layers import LayerContestant
from benchmarks.speed.problems import Problem
from splitembed.gradients.mask import keep_gradient_where
from splitembed.gradients.partial_embedding import PartialEmbedding
from splitembed.gradients.rows import keep_gradient_rows


class _OneTable(TensorFlowContestant):
    """One variable for all rows, and a mask of those that train. Checkpoint and slots contain every row."""

    def __init__(self, problem: Problem, task: str = "step", *, all_rows: bool = False, **options: Any) -> None:
        self.all_rows = all_rows
        super().__init__(problem, task, **options)

    def build(self, problem: Problem) -> list[Any]:
        self.table = keras.Variable(problem.table, name="table")
        self.mask = tf.Variable(problem.is_trainable | self.all_rows, trainable=False)
        return [self.table]

    def embed(self, ids: Any) -> Any:
        return tf.gather(self.table.value, ids)

    def freeze(self) -> None:
        """Train only the trainable rows of the problem from now on."""
        self.mask.assign(self.problem.is_trainable)

    def values(self, options: Mapping[str, Any]) -> dict[str, Any]:
        return {**super().values(options), **momentum_moves(partial(type(self), **options))}


class GatedTable(_OneTable):
    """`keep_gradient_where` on the whole table, then the lookup."""

    def embed(self, ids: Any) -> Any:
        return tf.gather(keep_gradient_where(self.table.value, self.mask[:, None]), ids)


class GatedRows(_OneTable):
    """The lookup, then `keep_gradient_where` on the rows of the batch."""

    def embed(self, ids: Any) -> Any:
        return keep_gradient_where(super().embed(ids), tf.gather(self.mask, ids)[..., None])


class KeptRows(_OneTable):
    """`keep_gradient_rows` between the gradient and the optimizer."""

    def adjust(self, gradients: list[Any]) -> list[Any]:
        return [keep_gradient_rows(gradient, self.mask.read_value()) for gradient in gradients]


class PartialRows(LayerContestant):
    """`PartialEmbedding`, which makes a split of one matrix."""

    def __init__(self, problem: Problem, task: str = "step", *, all_rows: bool = False, **options: Any) -> None:
        self.all_rows = all_rows
        super().__init__(problem, task, **options)

    def make_layer(self, problem: Problem) -> keras.layers.Layer:
        return self._layer(problem.table, np.flatnonzero(problem.is_trainable | self.all_rows))

    def freeze(self) -> None:
        """Train only the trainable rows of the problem from now on, in another layer with a new optimizer."""
        self.layer = self._layer(self.layer.to_split().combine(), self.problem.trainable_ids)
        self.variables = self.layer.trainable_variables
        self.optimizer = make_optimizer(self.optimizer_name, self.learning_rate, self.weight_decay)
        self._step, self._rows = self._train, self.embed

    def values(self, options: Mapping[str, Any]) -> dict[str, Any]:
        return {**super().values(options), **momentum_moves(partial(type(self), **options))}

    def _layer(self, matrix: Any, trainable_ids: Any) -> keras.layers.Layer:
        layer = PartialEmbedding(self.problem.sizes.num_tokens, [matrix], trainable_ids)
        layer.build()
        return layer


def momentum_moves(make: Callable[..., Any]) -> dict[str, bool]:
    """Measure whether rows that trained and were then frozen still move, in steps without weight decay.

    Args:
        make: a function that takes a problem, `learning_rate` and `all_rows`, and returns the contestant.

    Returns:
        The value "moved_by_momentum".
    """
    with tempfile.TemporaryDirectory() as folder:
        problem = SMALL.make(Path(folder))
        contestant = make(problem, learning_rate=0.1, all_rows=True)
        contestant.step(0)
        contestant.freeze()
        ids = np.flatnonzero(~problem.is_trainable)[None]
        before = contestant.rows(ids)
        for number in range(1, problem.sizes.num_batches):
            contestant.step(number)
        return {"moved_by_momentum": bool(np.any(contestant.rows(ids) != before))}
