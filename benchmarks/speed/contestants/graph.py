"""The base class of contestants on TensorFlow. A subclass defines its variables and its lookup."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from benchmarks.speed.contestants.base import TrainingContestant
from benchmarks.speed.problems import Problem
from splitembed.optimizers.lazy import LazyAdam

_OPTIMIZERS = {"sgd": keras.optimizers.SGD, "adam": keras.optimizers.Adam, "lazy_adam": LazyAdam}


def make_optimizer(name: str, learning_rate: float, weight_decay: float) -> keras.optimizers.Optimizer:
    """Make an optimizer by its name. With weight decay, it also has momentum."""
    momentum = {"momentum": 0.9} if name == "sgd" and weight_decay else {}
    return _OPTIMIZERS[name](learning_rate, weight_decay=weight_decay or None, **momentum)


class TensorFlowContestant(TrainingContestant):
    """A contestant whose forward pass and training step are one `tf.function` each."""

    def __init__(self, problem: Problem, task: str = "step", **options: Any) -> None:
        super().__init__(problem, task, **options)
        self.head = keras.Variable(problem.head, name="head")
        self.variables: list[Any] = self.build(problem)
        self.batches = [tf.constant(batch) for batch in problem.batches]
        self.optimizer = make_optimizer(self.optimizer_name, self.learning_rate, self.weight_decay)
        if task == "step":
            self.optimizer.build([*self.variables, self.head])
        signature = [tf.TensorSpec((None, problem.sizes.length), tf.int32)]
        self._forward = tf.function(self._look_up, input_signature=signature)
        self._step = tf.function(self._train, input_signature=signature)
        self._rows = tf.function(self.embed, input_signature=[tf.TensorSpec((None, None), tf.int32)])

    def build(self, problem: Problem) -> list[Any]:
        """Make the tables, and return the variables that train."""
        raise NotImplementedError

    def embed(self, ids: Any) -> Any:
        """Return the rows of ids `(batch, length)`, `(batch, length, dim)`."""
        raise NotImplementedError

    def pool(self, rows: Any) -> Any:
        """Return one row for each embedded text, `(batch, dim)`."""
        return tf.reduce_mean(rows, 1)

    def adjust(self, gradients: list[Any]) -> list[Any]:
        """Change the gradients of `variables` before the optimizer gets them."""
        return gradients

    def saved(self) -> list[Any]:
        """Return the variables of a checkpoint, without head and optimizer. Constants are not saved."""
        return self.variables

    def forward(self, number: int) -> Any:
        return self._forward(self.batches[number])

    def step(self, number: int) -> float:
        return float(self._step(self.batches[number])[0])

    def rows(self, ids: NDArray[Any]) -> NDArray[np.float32]:
        return self._rows(tf.constant(ids, tf.int32)).numpy()

    def checkpoint(self, path: Path) -> None:
        np.savez(path, *(np.asarray(variable) for variable in [*self.saved(), self.head, *self.optimizer.variables]))

    def _look_up(self, ids: Any) -> Any:
        rows = self.embed(ids)
        return (self.pool(rows) if self.task == "pool" else rows)[0, 0]

    def _train(self, ids: Any) -> tuple[Any, Any]:
        """Take one step. If no row trains, compute the gradient of the rows nevertheless, for a fair comparison."""
        with tf.GradientTape() as tape:
            rows = self.embed(ids)
            if not self.variables:
                tape.watch(rows)
            outputs = self.pool(rows) @ self.head.value
            loss = tf.reduce_mean(tf.square(outputs))
            scaled = self.optimizer.scale_loss(loss)
        below = [variable.value for variable in self.variables] or [rows]
        *gradients, head_gradient = tape.gradient(scaled, [*below, self.head.value])
        kept = self.adjust(gradients) if self.variables else []
        self.optimizer.apply([*kept, head_gradient], [*self.variables, self.head])
        return loss, None if self.variables else gradients
