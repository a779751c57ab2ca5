"""Opening a split from its files: time, memory, and pages of the file."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from benchmarks.accuracy.memory import anonymous_bytes
from benchmarks.speed.contestants.base import Contestant
from benchmarks.speed.pages import drop_from_cache, file_bytes, mapped_bytes
from benchmarks.speed.problems import Problem
from splitembed.layers.embedding import SplitEmbedding
from splitembed.lookup.constant import make_constant
from splitembed.split.table import SplitTable
from splitembed.tables import FROZEN_NAME

_NUM_SCATTERED = 1280


class _OnFiles(Contestant):
    def __init__(self, problem: Problem, task: str) -> None:
        self.problem, self.task = problem, task
        self.path = problem.folder / FROZEN_NAME

    @staticmethod
    def warm_up() -> None:
        """Start TensorFlow with a table of three rows."""
        SplitEmbedding(SplitTable.from_matrix(np.zeros((3, 2), np.float32), [1]))(np.array([0, 1]))


class Opening(_OnFiles):
    """Tasks: "open", only the split; "layer", a built layer too."""

    def __init__(self, problem: Problem, task: str) -> None:
        super().__init__(problem, task)
        before = anonymous_bytes() or 0
        self.kept = self._open()
        self.growth = (anonymous_bytes() or 0) - before

    def run(self, num_steps: int) -> None:
        for _ in range(num_steps):
            self.kept = self._open()

    def answer(self) -> NDArray[np.float32]:
        return SplitTable.open(self.problem.folder).lookup(self.problem.question)

    def values(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the anonymous memory of the first opening, without the remap, and without the layer's weight too."""
        sizes = self.problem.sizes
        without_remap = self.growth - 4 * sizes.num_tokens
        weight = 4 * sizes.num_trainable * sizes.dim if self.task == "layer" else 0
        return {
            "growth_without_remap_bytes": max(0, without_remap),
            "growth_without_weight_bytes": max(0, without_remap - weight),
        }

    def _open(self) -> Any:
        split = SplitTable.open(self.problem.folder)
        if self.task == "open":
            return split
        layer = SplitEmbedding(split)
        layer.build()
        return layer


class ScatteredRows(_OnFiles):
    """Task "cold": open the split, and read 1,280 scattered frozen rows that are in no cache."""

    def __init__(self, problem: Problem, task: str) -> None:
        super().__init__(problem, task)
        num_rows = min(_NUM_SCATTERED, problem.sizes.num_tokens)
        self.rows = np.random.default_rng(4).choice(problem.sizes.num_tokens, num_rows, replace=False)

    def run(self, num_steps: int) -> None:
        for _ in range(num_steps):
            self._read()

    def values(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the bytes of file pages that were read for the rows."""
        return {"file_pages_bytes": self._read()}

    def _read(self) -> int:
        drop_from_cache(self.path)
        split = SplitTable.open(self.problem.folder)
        before = mapped_bytes()
        split.frozen[self.rows].sum()
        return mapped_bytes() - before


class Sharing(_OnFiles):
    """Task "touch": gather the first hundredth of the rows from a constant, in one of several processes."""

    def __init__(self, problem: Problem, task: str) -> None:
        super().__init__(problem, task)
        self.split = SplitTable.open(problem.folder)
        self.handle = make_constant(self.split.frozen, "frozen")
        self.rows = np.arange(problem.sizes.num_tokens // 100)

    def run(self, num_steps: int) -> None:
        for _ in range(num_steps):
            tf.reduce_sum(tf.gather(self.handle.read_value(), self.rows)).numpy()

    def last_values(self) -> dict[str, Any]:
        """Return this process's share of the table's pages, and all pages that it has touched."""
        return {"pss_bytes": file_bytes(self.path, "Pss"), "touched_bytes": file_bytes(self.path, "Rss")}
