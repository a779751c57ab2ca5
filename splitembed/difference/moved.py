"""The report of the rows that moved between two splits, as text, dict or plot."""

import math
import os
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitembed.coverage.plot import new_axes, saved_figure
from splitembed.coverage.text_table import aligned, printable

Ids = NDArray[np.int64]
Numbers = NDArray[np.float64]
Name = str | int

TOKEN_WIDTH = 24


class MovedRow(NamedTuple):
    """A token whose row changed.

    Args:
        token: the token; its id in a split without a vocabulary.
        distance: the Euclidean distance of the old and the new row; NaN or infinity if a row is not finite.
        cosine: the cosine of the angle between them; NaN if one of them is zero or not finite.
        norm_before: the Euclidean norm of the old row.
        norm_after: the Euclidean norm of the new row.
        nearest_before: the frozen tokens nearest to the old row by cosine, the nearest first.
        nearest_after: the frozen tokens nearest to the new row.
    """

    token: Name
    distance: float
    cosine: float
    norm_before: float
    norm_after: float
    nearest_before: tuple[Name, ...]
    nearest_after: tuple[Name, ...]


@dataclass(frozen=True, eq=False)
class Difference:
    """The rows that moved between two splits, measured by `diff`.

    Args:
        rows: the tokens whose rows moved farthest, the farthest first.
        num_common: number of tokens that both splits have.
        num_added: number of tokens that only the second split has.
        num_dropped: number of tokens that only the first split has.
        ids: int64 `(num_moved,)`: the ids in the second split of all tokens whose rows moved, the farthest first.
        distances: float64 `(num_moved,)`, as in `MovedRow`.
        cosines: float64 `(num_moved,)`, as in `MovedRow`.
    """

    rows: tuple[MovedRow, ...]
    num_common: int
    num_added: int
    num_dropped: int
    ids: Ids
    distances: Numbers
    cosines: Numbers

    @property
    def num_moved(self) -> int:
        """Number of tokens whose row changed."""
        return len(self.ids)

    def __str__(self) -> str:
        others = [(self.num_added, "added"), (self.num_dropped, "dropped")]
        title = f"{self.num_moved:,} of {self.num_common:,} rows moved"
        title += "".join(f"; {count:,} token{'s' * (count != 1)} {what}" for count, what in others if count)
        return "\n".join([title, *_table(self.rows)])

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and `rows` as plain dicts, lists, strings and numbers; a number that is not finite is None.

        >>> row = MovedRow("usr", 2.0, math.nan, 0.0, 2.0, (), ("the",))
        >>> Difference((row,), 1, 0, 0, np.array([0]), np.array([2.0]), np.array([math.nan])).to_dict()["rows"]
        [{'token': 'usr', 'distance': 2.0, 'cosine': None, 'norm_before': 0.0, 'norm_after': 2.0,
          'nearest_before': [], 'nearest_after': ['the']}]
        """
        counts = ("num_common", "num_added", "num_dropped", "num_moved")
        return {**{name: getattr(self, name) for name in counts}, "rows": [_plain(row) for row in self.rows]}

    def plot(self, path: str | os.PathLike[str] | None = None, axes: Any = None) -> Any:
        """Draw the distance of each row against its cosine with matplotlib, and label the farthest.

        Args:
            path: a file to write, in the format that its suffix names, such as .png or .svg.
            axes: matplotlib axes to draw on; None makes a new figure.

        Returns:
            The matplotlib figure.

        Raises:
            SplitError: matplotlib cannot write the format.
            ImportError: matplotlib is missing.
        """
        axes = new_axes() if axes is None else axes
        axes.scatter(self.cosines, self.distances, s=8, alpha=0.5)
        for row in self.rows:
            if math.isfinite(row.cosine) and math.isfinite(row.distance):
                axes.annotate(_shown(row.token), (row.cosine, row.distance), fontsize=8, parse_math=False)
        axes.set(xlabel="cosine of the old and the new row", ylabel="distance of the old and the new row")
        axes.set_title(f"{self.num_moved:,} of {self.num_common:,} rows moved")
        axes.grid(alpha=0.3)
        return saved_figure(axes, path)


def _table(rows: tuple[MovedRow, ...]) -> list[str]:
    if not rows:
        return []
    cells: list[tuple[str, ...]] = [
        ("token", "distance", "cosine", "norm before", "norm after", "nearest before", "nearest after"),
        *map(_cells, rows),
    ]
    return aligned(cells, "<>>>><<")


def _cells(row: MovedRow) -> tuple[str, ...]:
    numbers = (f"{number:.3f}" for number in (row.distance, row.cosine, row.norm_before, row.norm_after))
    near = (", ".join(map(_shown, words)) for words in (row.nearest_before, row.nearest_after))
    return _shown(row.token), *numbers, *near


def _shown(token: Name) -> str:
    return printable(str(token), TOKEN_WIDTH)


def _plain(row: MovedRow) -> dict[str, Any]:
    plain = {
        name: value if not isinstance(value, float) or math.isfinite(value) else None
        for name, value in row._asdict().items()
    }
    return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}
