"""One variable for all rows, and a row-sparse optimizer that only gets the gradient slices of trainable rows."""

from typing import Any

import keras
import tensorflow as tf

from benchmarks.speed.contestants.graph import TensorFlowContestant
from benchmarks.speed.problems import Problem


class Filtered(TensorFlowContestant):
    """Almost as fast, but the variable, its slots and the checkpoint contain every row, and weight decay moves them."""

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
