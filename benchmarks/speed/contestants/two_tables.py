"""The base class of contestants with a constant and a variable."""

from typing import Any

import keras
import tensorflow as tf

from benchmarks.speed.contestants.graph import TensorFlowContestant
from benchmarks.speed.problems import Problem
from splitembed.lookup.constant import make_constant


class TwoTables(TensorFlowContestant):
    """Frozen rows in a constant, trainable rows in a variable, and a remap as in `SplitTable`."""

    def build(self, problem: Problem) -> list[Any]:
        split = problem.split(mapped=False)
        self.handle = make_constant(split.frozen, "frozen")
        self.frozen, self.remap = self.handle.read_value(), tf.constant(split.remap)
        self.trainable = keras.Variable(split.trainable, name="trainable")
        return [self.trainable]
