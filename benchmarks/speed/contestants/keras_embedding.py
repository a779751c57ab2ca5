"""`keras.layers.Embedding`, frozen or trainable, which is the alternative to splitembed."""

from typing import Any

import keras

from benchmarks.speed.contestants.layers import LayerContestant
from benchmarks.speed.problems import Problem


class KerasEmbedding(LayerContestant):
    """One weight for all rows, of which all or none train."""

    def __init__(self, problem: Problem, task: str = "step", *, trainable: bool, **options: Any) -> None:
        self.trains = trainable
        super().__init__(problem, task, **options)

    def make_layer(self, problem: Problem) -> keras.layers.Layer:
        layer = keras.layers.Embedding(problem.sizes.num_tokens, problem.sizes.dim, trainable=self.trains)
        layer.build()
        layer.embeddings.assign(problem.table)
        return layer
