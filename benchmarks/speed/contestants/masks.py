"""One variable for all rows, and `stop_gradient` for the frozen ones: `stop_gradient((1 - m) * W) + m * W`."""

from typing import Any

import keras
import tensorflow as tf

from benchmarks.speed.contestants.graph import TensorFlowContestant
from benchmarks.speed.problems import Problem


class _Masked(TensorFlowContestant):
    def build(self, problem: Problem) -> list[Any]:
        self.table = keras.Variable(problem.table, name="table")
        self.mask = tf.constant(problem.is_trainable[:, None].astype("float32"))
        return [self.table]


class MaskWholeTable(_Masked):
    """The most common recipe: mask the whole table, then gather."""

    def embed(self, ids: Any) -> Any:
        table = self.table.value
        return tf.gather(tf.stop_gradient((1 - self.mask) * table) + self.mask * table, ids)


class MaskAfterGather(_Masked):
    """The same formula on the gathered rows, which is the fastest mask."""

    def embed(self, ids: Any) -> Any:
        rows, mask = tf.gather(self.table.value, ids), tf.gather(self.mask, ids)
        return tf.stop_gradient((1 - mask) * rows) + mask * rows
