"""One variable for all rows; only gradient slices of the trainable ones reach a row-sparse optimizer."""

from typing import Any

import keras
import tensorflow as tf

from benchmarks.speed.contestants.graph import TensorFlowContestant
from benchmarks.speed.problems import Problem


class Filtered(TensorFlowContestant):
    """Close in time; the variable, its slots and the checkpoint hold every row, and weight decay reaches them."""

    def build(self, problem: Problem) -> list[Any]:
        self.table = keras.Variable(problem.table, name="table")
        self.mask = tf.constant(problem.is_trainable)
        return [self.table]

    def embed(self, ids: Any) -> Any:
        return tf.gather(self.table.value, ids)

    def adjust(self, gradients: list[Any]) -> list[Any]:
        (slices,) = gradients
        kept = tf.where(tf.gather(self.mask, slices.indices))[:, 0]
        values, indices = tf.gather(slices.values, kept), tf.gather(slices.indices, kept)
        return [tf.IndexedSlices(values, indices, slices.dense_shape)]
