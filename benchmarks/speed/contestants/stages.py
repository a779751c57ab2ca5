"""The lookup stopped after a stage, to measure the time of each stage."""

from typing import Any, Literal

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from benchmarks.speed.contestants.graph import TensorFlowContestant
from benchmarks.speed.problems import Problem
from splitembed.lookup.constant import Constants
from splitembed.lookup.dynamic import find_trained, gather_trained, route


class Stages(TensorFlowContestant):
    """The stages of `splitembed.lookup.dynamic` up to one of them.

    Args:
        upto: "route" remaps the ids and gathers a frozen row for each. "check" also checks the ids. "gather" also
            gathers the trainable rows, but does not write them to their positions.
    """

    trains = False

    def __init__(
        self, problem: Problem, task: str = "forward", *, upto: Literal["route", "check", "gather"], **options: Any
    ) -> None:
        self.upto = upto
        super().__init__(problem, task, **options)

    def build(self, problem: Problem) -> list[Any]:
        split = problem.split(mapped=False)
        self.constants, self.trainable = Constants(split), tf.Variable(split.trainable)
        return []

    def embed(self, ids: Any) -> Any:
        rows, checks = route(tf.reshape(ids, [-1]), self.constants)
        values = self.constants.read(tf.maximum(rows, 0))
        waits = [] if self.upto == "route" else list(checks)
        if self.upto == "gather":
            waits.append(gather_trained(self.trainable.handle, find_trained(rows)[1]).op)
        with tf.control_dependencies(waits):
            return tf.reshape(values, [*tf.unstack(tf.shape(ids)), values.shape[1]])

    def answer(self) -> NDArray[np.float32] | None:
        """Return None, because trainable tokens do not have their rows yet."""
        return None
