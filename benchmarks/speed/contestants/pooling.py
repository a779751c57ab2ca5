"""A mixin for contestants that embed bags of ids: one row for each text, the mean of its rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed.contestants.base import TrainingContestant


class OneRowABag(TrainingContestant):
    """A contestant whose `embed` returns `(batch, dim)`. The row of an id is that of a bag with only this id."""

    def pool(self, rows: Any) -> Any:
        """Return the rows, which are already pooled."""
        return rows

    def rows(self, ids: NDArray[Any]) -> NDArray[np.float32]:
        return super().rows(ids.reshape(-1, 1)).reshape(*ids.shape, -1)

    def take_first_steps(self) -> None:
        """Keep the means of the problem's question too."""
        self.means_before = super().rows(self.problem.question)
        super().take_first_steps()

    def values(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Check the means too."""
        expected = self.problem.table[self.problem.question].mean(axis=1, dtype=np.float64)
        # The rounding of float32 in sums of two hundred rows of size 0.1.
        np.testing.assert_allclose(self.means_before, expected, atol=1e-6, err_msg="The means differ from NumPy.")
        return super().values(options)
