"""The plot of coverage by frequency rank, drawn by matplotlib."""

import math
import os
from typing import Any, NamedTuple

from splitembed.coverage.text_table import Number
from splitembed.errors import SplitError, load_library
from splitembed.paths import local_path


class RankPoint(NamedTuple):
    """Coverage among the `rank` most frequent tokens.

    Args:
        rank: number of tokens.
        num_matched: number of them with a pretrained vector.
        running_tokens: sum of their counts.
        running_matched: sum of the counts of those with a pretrained vector.
    """

    rank: int
    num_matched: int
    running_tokens: Number
    running_matched: Number


def share(part: Number, whole: Number) -> float:
    """Return the part of a whole, from 0 to 1; NaN if the whole is 0.

    >>> share(1, 4), share(0, 0)
    (0.25, nan)
    """
    return part / whole if whole else math.nan


def plot_curve(
    curve: tuple[RankPoint, ...] | None, path: str | os.PathLike[str] | None = None, axes: Any = None
) -> Any:
    """Draw the share of the most frequent tokens, and of their occurrences, that has a pretrained vector.

    Args:
        curve: the points of a report.
        path: a file to write, in the format that its suffix names.
        axes: matplotlib axes to draw on; None makes a new figure.

    Returns:
        The matplotlib figure.

    Raises:
        SplitError: there is no curve, or matplotlib cannot write the format.
        ImportError: matplotlib is missing.
    """
    if curve is None:
        raise SplitError("Coverage by frequency rank needs `counts`: how often each token occurs.")
    if axes is None:
        axes = new_axes()
    ranks = [point.rank for point in curve]
    running = [100 * share(point.running_matched, point.running_tokens) for point in curve]
    types = [100 * share(point.num_matched, point.rank) for point in curve]
    axes.plot(ranks, running, label="running tokens")
    axes.plot(ranks, types, label="types")
    axes.set(xlabel="the most frequent tokens", ylabel="of them with a vector, %", xscale="log")
    axes.set_title("Coverage by frequency rank")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(alpha=0.3)
    axes.legend()
    return saved_figure(axes, path)


def new_axes() -> Any:
    """Return the axes of a new matplotlib figure, without opening a window or needing a display.

    Raises:
        ImportError: matplotlib is missing.
    """
    figure = load_library("matplotlib.figure", "A plot", "plots")
    return figure.Figure(figsize=(7, 4.5), layout="constrained").subplots()


def saved_figure(axes: Any, path: str | os.PathLike[str] | None) -> Any:
    """Return the figure of the axes, after writing it to `path` if there is one.

    Raises:
        SplitError: matplotlib does not know the format that the suffix names.
    """
    if path is not None:
        try:
            axes.figure.savefig(local_path(path), dpi=150)
        except ValueError as error:
            raise SplitError(
                f"{os.fspath(path)}: the plot cannot be written. {error}. Choose another file name suffix."
            ) from error
    return axes.figure
