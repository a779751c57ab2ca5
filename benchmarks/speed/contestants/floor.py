"""The floor: `tf.gather` from one constant. Only the head trains."""

from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.speed.contestants.graph import TensorFlowContestant
from benchmarks.speed.problems import Problem
from splitembed.lookup.constant import make_constant


class Floor(TensorFlowContestant):
    """The lower limit for an embedding with frozen rows."""

    trains = False

    def build(self, problem: Problem) -> list[Any]:
        self.handle = make_constant(np.array(problem.table), "table")
        self.table = self.handle.read_value()
        return []

    def embed(self, ids: Any) -> Any:
        return tf.gather(self.table, ids)
