"""A language model of one layer, with tied weights: rows of ids, states, and logits over the whole vocabulary."""

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from benchmarks.speed.checks import check_step, frozen_rows_moved
from benchmarks.speed.contestants.layers import LayerContestant
from benchmarks.speed.problems import Problem
from splitembed.layers.reversible import SplitReversibleEmbedding
from splitembed.split.table import SplitTable

LEARNING_RATE = 1.0


class _LanguageModel(LayerContestant):
    """A model of each next id, `softmax(tanh(rows @ head) @ table.T)`. Tasks: "forward" and "step"."""

    def build(self, problem: Problem) -> list[Any]:
        self.head = keras.Variable(mixing(problem.sizes.dim), name="head")
        return super().build(problem)

    def values(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of other contestants, after checking a step of this model."""
        if self.task == "forward":
            return {"batch_bytes": self.growth}
        make = partial(type(self), **options)
        check_step(make, reference_of, LEARNING_RATE)
        with tempfile.TemporaryDirectory() as folder:
            self.checkpoint(Path(folder, "checkpoint"))
            num_bytes = sum(path.stat().st_size for path in Path(folder).iterdir())
        moved = frozen_rows_moved(make)
        return {"batch_bytes": self.growth, "checkpoint_bytes": num_bytes, "frozen_rows_moved": moved}

    def _logits(self, ids: Any) -> Any:
        return self.layer(tf.tanh(self.layer(ids) @ self.head.value), reverse=True)

    def _look_up(self, ids: Any) -> Any:
        return self._logits(ids)[0, 0]

    def _train(self, ids: Any) -> tuple[Any, None]:
        with tf.GradientTape() as tape:
            logits = self._logits(ids[:, :-1])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(ids[:, 1:], logits))
            scaled = self.optimizer.scale_loss(loss)
        variables = [*self.variables, self.head]
        self.optimizer.apply(tape.gradient(scaled, [variable.value for variable in variables]), variables)
        return loss, None


class Ours(_LanguageModel):
    """`SplitReversibleEmbedding`.

    Args:
        few: the number of rows that train. By default that of the problem.
        in_order: whether the frozen table contains all rows in id order, as with `split_embedding`.
    """

    def __init__(
        self, problem: Problem, task: str = "step", *, few: int | None = None, in_order: bool = False, **options: Any
    ) -> None:
        self.few, self.in_order = few, in_order
        super().__init__(problem, task, **options)

    def make_layer(self, problem: Problem) -> keras.layers.Layer:
        ids = problem.trainable_ids[: self.few]
        if self.in_order:
            table = np.array(problem.table)
            split = SplitTable.from_arrays(table, np.arange(len(table)), np.empty((0, table.shape[1]))).thaw(ids)
        else:
            split = problem.split(mapped=False).freeze(problem.trainable_ids[len(ids) :])
        layer = SplitReversibleEmbedding(split)
        layer.build()
        return layer


class KerasReversible(_LanguageModel):
    """`keras.layers.ReversibleEmbedding`, of which all or no rows train: the alternative to splitembed."""

    def __init__(self, problem: Problem, task: str = "step", *, trainable: bool = True, **options: Any) -> None:
        self.trains = trainable
        super().__init__(problem, task, **options)

    def make_layer(self, problem: Problem) -> keras.layers.Layer:
        sizes = problem.sizes
        layer = keras.layers.ReversibleEmbedding(sizes.num_tokens, sizes.dim, trainable=self.trains)
        layer.build()
        layer.embeddings.assign(problem.table)
        return layer


def mixing(dim: int) -> NDArray[np.float32]:
    """Return the weights between rows and states before training, `(dim, dim)`."""
    weights = np.random.default_rng(2).standard_normal((dim, dim), dtype=np.float32)
    return weights / np.float32(dim) ** 0.5


def reference_of(problem: Problem) -> tuple[float, NDArray[np.float64]]:
    """Return the loss of the first batch of a problem, and its gradient with respect to the table."""
    return loss_and_gradient(problem.table, problem.batches[0], mixing(problem.sizes.dim))


def loss_and_gradient(
    table: NDArray[np.float32], ids: NDArray[Any], head: NDArray[np.float32]
) -> tuple[float, NDArray[np.float64]]:
    """Return the loss in float64, and its gradient with respect to the table, as embedding and as logits' weights."""
    rows, weights = np.asarray(table, np.float64), head.astype(np.float64)
    read, following = ids[:, :-1].ravel(), ids[:, 1:].ravel()
    states = np.tanh(rows[read] @ weights)
    logits = states @ rows.T
    shares = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    positions = np.arange(len(read))
    loss = -np.log(shares[positions, following]).mean()
    shares[positions, following] -= 1
    shares /= len(read)
    gradient = shares.T @ states
    np.add.at(gradient, read, (shares @ rows) * (1 - states**2) @ weights.T)
    return float(loss), gradient
