"""splitembed: `SplitEmbedding` on a split in memory, or on one that is mapped from its file."""

from typing import Any

import keras

from benchmarks.speed.contestants.layers import LayerContestant
from benchmarks.speed.problems import Problem
from splitembed.layers.embedding import SplitEmbedding


class Ours(LayerContestant):
    """Frozen rows are a constant, and the trainable ones the layer's only weight.

    Args:
        mapped: the frozen rows are mapped from their file.
        trains: False for the layer with its `trainable` off: the lookup alone, in a step that trains the head.
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
