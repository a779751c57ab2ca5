"""The base class of contestants that are Keras layers. They also have the task "fit", steps of `model.fit`."""

from typing import Any

import keras
import numpy as np

from benchmarks.speed.contestants.graph import TensorFlowContestant
from benchmarks.speed.problems import NUM_CLASSES, Problem


class LayerContestant(TensorFlowContestant):
    """A contestant with a Keras layer, which the subclass makes."""

    def __init__(self, problem: Problem, task: str = "step", *, jit_compile: Any = False, **options: Any) -> None:
        super().__init__(problem, task, **options)
        self.texts = self.zeros = np.empty((0, 0))
        if task == "fit":
            self.model = self._compiled(jit_compile)

    def make_layer(self, problem: Problem) -> keras.layers.Layer:
        """Make the layer with the rows of the problem."""
        raise NotImplementedError

    def build(self, problem: Problem) -> list[Any]:
        self.layer = self.make_layer(problem)
        return self.layer.trainable_variables

    def embed(self, ids: Any) -> Any:
        return self.layer(ids)

    def saved(self) -> list[Any]:
        return self.layer.variables

    def run(self, num_steps: int) -> None:
        """Run steps. Those of the task "fit" are one epoch with as many batches."""
        if self.task != "fit":
            super().run(num_steps)
            return
        num_texts = num_steps * self.problem.sizes.batch_size
        if len(self.texts) < num_texts:
            self.texts = np.resize(self.problem.batches, (num_texts, self.problem.sizes.length))
            self.zeros = np.zeros((num_texts, NUM_CLASSES), np.float32)
        batch_size = self.problem.sizes.batch_size
        self.model.fit(self.texts[:num_texts], self.zeros[:num_texts], batch_size=batch_size, shuffle=False, verbose=0)

    def _compiled(self, jit_compile: Any) -> keras.Model:
        tokens = keras.Input((self.problem.sizes.length,), dtype="int32")
        mean = keras.layers.GlobalAveragePooling1D()(self.layer(tokens))
        model = keras.Model(tokens, keras.layers.Dense(NUM_CLASSES, use_bias=False)(mean))
        model.layers[-1].set_weights([self.problem.head])
        model.compile(optimizer=self.optimizer, loss="mse", jit_compile=jit_compile)
        return model
