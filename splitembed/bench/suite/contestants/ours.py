"""splitembed: `SplitEmbedding` on a split in memory, or on one that is mapped from its file."""

from typing import Any

import keras

from splitembed.bench.suite.contestants.layers import LayerContestant
from splitembed.bench.suite.problems import Problem
from splitembed.layer import SplitEmbedding


class Ours(LayerContestant):
    """Frozen rows are a constant, and the trainable ones the layer's only weight."""

    def __init__(self, problem: Problem, task: str = "step", *, mapped: bool = False, **options: Any) -> None:
        self.mapped = mapped
        super().__init__(problem, task, **options)

    def make_layer(self, problem: Problem) -> keras.layers.Layer:
        layer = SplitEmbedding(problem.split(self.mapped))
        layer.build()
        return layer
