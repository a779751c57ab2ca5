"""Frozen rows with fewer bits: their size, their error, and the time of a layer that widens them."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from benchmarks.speed.contestants.layers import LayerContestant
from benchmarks.speed.problems import Problem
from splitembed.layers.embedding import SplitEmbedding

_BLOCK_ROWS = 50_000


class Narrowed(LayerContestant):
    """`SplitEmbedding` with frozen rows that are stored as `dtype`."""

    def __init__(self, problem: Problem, task: str = "step", *, dtype: str, **options: Any) -> None:
        self.split = problem.split(mapped=False).with_frozen_dtype(dtype)
        super().__init__(problem, task, **options)

    def make_layer(self, problem: Problem) -> keras.layers.Layer:
        layer = SplitEmbedding(self.split)
        layer.build()
        return layer

    def answer(self) -> NDArray[np.float32] | None:
        """Check the rows against NumPy's lookup to the bit, and return them if they must equal the table's too.

        Raises:
            AssertionError: they differ from NumPy's lookup.
        """
        if not np.array_equal(self.rows_before, self.split.lookup(self.problem.question)):
            raise AssertionError("The widened rows differ from NumPy.")
        return self.rows_before if self.split.frozen_dtype == "float32" else None

    def values(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the bytes of the frozen rows with their scale, and the errors of the rows."""
        scale = 0 if self.split.scale is None else self.split.scale.nbytes
        errors, cosines = self._compare()
        return {
            "batch_bytes": self.growth,
            "frozen_bytes": self.split.frozen.nbytes + scale,
            "mean_row_error": float(errors.mean()),
            "worst_row_error": float(errors.max()),
            "cosine_distance": float(1 - cosines.min()),
        }

    def _compare(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return for each frozen row the relative length of the error, and the cosine of stored and exact row."""
        ids = np.flatnonzero(self.split.remap >= 0)
        errors, cosines = [], []
        for start in range(0, len(ids), _BLOCK_ROWS):
            block = ids[start : start + _BLOCK_ROWS]
            exact, found = self.problem.table[block].astype(np.float64), self.split.lookup(block).astype(np.float64)
            lengths = np.linalg.norm(exact, axis=1)
            errors.append(np.linalg.norm(found - exact, axis=1) / lengths)
            cosines.append((found * exact).sum(axis=1) / (lengths * np.linalg.norm(found, axis=1)))
        return np.concatenate(errors), np.concatenate(cosines)
