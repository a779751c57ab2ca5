"""splitembed: `SplitEmbedding` with the frozen rows in memory or mapped from their file."""

from typing import Any

import keras

from benchmarks.speed.contestants.layers import LayerContestant
from benchmarks.speed.problems import Problem
from splitembed.layers.embedding import SplitEmbedding


class Ours(LayerContestant):
    """A constant for the frozen rows, and one weight for the trainable rows.

    Args:
        mapped: map the frozen rows from their file.
        trains: False switches `trainable` of the layer off, so that a step trains only the head.
    """

    def __init__(
        self, problem: Problem, task: str = "step", *, mapped: bool = False, trains: bool = True, **options: Any
    ) -> None:
        self.mapped, self.trains = mapped, trains
        super().__init__(problem, task, **options)

    def make_layer(self, problem: Problem) -> keras.layers.Layer:
        layer = SplitEmbedding(problem.split(self.mapped))
        layer.build()
        layer.trainable = self.trains
        return layer
