"""The plot of a report: points of coverage by frequency rank enter; a matplotlib figure leaves."""

import os
from typing import Any

from splitembed.coverage.records import RankPoint, share
from splitembed.errors import SplitError


def plot_curve(
    curve: tuple[RankPoint, ...] | None, path: str | os.PathLike[str] | None = None, axes: Any = None
) -> Any:
    """Draws which share of the most frequent tokens, and of their occurrences, has a vector.

    Args:
        curve: the points of a report.
        path: a file to write, of the format that its ending names.
        axes: matplotlib's, to draw on; None makes a figure.

    Returns:
        The matplotlib figure.

    Raises:
        SplitError: there is no curve, or no format of that name.
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
    if path is not None:
        _save(axes.figure, path)
    return axes.figure


def _save(figure: Any, path: str | os.PathLike[str]) -> None:
    try:
        figure.savefig(path, dpi=150)
    except ValueError as error:  # matplotlib's for an ending that it does not know
        raise SplitError(f"{os.fspath(path)}: the plot cannot be written. {error}. Choose another ending.") from error


def new_axes() -> Any:
    """Axes of a figure of their own, which no window system knows of."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            f'Plots are drawn by the library matplotlib, which is missing: pip install "splitembed[plots]". ({error})',
            name="matplotlib",
        ) from error
    return Figure(figsize=(7, 4.5), layout="constrained").subplots()
