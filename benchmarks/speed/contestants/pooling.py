"""What contestants that embed bags share, mixed in before a framework's class: one row a text, the mean of its ids."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed.contestants.base import TrainingContestant


class OneRowABag(TrainingContestant):
    """`embed` gives `(batch, dim)`; the row of a single id is that of a bag which holds it alone."""

    def pool(self, rows: Any) -> Any:
        """They are pooled already."""
        return rows

    def rows(self, ids: NDArray[Any]) -> NDArray[np.float32]:
        return super().rows(ids.reshape(-1, 1)).reshape(*ids.shape, -1)

    def take_first_steps(self) -> None:
        """Keeps the means of the problem's question as well."""
        self.means_before = super().rows(self.problem.question)
        super().take_first_steps()

    def values(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Checks the means too."""
        expected = self.problem.table[self.problem.question].mean(axis=1, dtype=np.float64)
        # float32: sums of two hundred rows of size 0.1
        np.testing.assert_allclose(self.means_before, expected, atol=1e-6, err_msg="The means are not NumPy's.")
        return super().values(options)
