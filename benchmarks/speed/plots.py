"""Plots: one PNG file for each scenario, and one for all targets."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.speed.outcome import Outcome, Verdict
from benchmarks.speed.report import bytes_text, number_text, seconds_text

_OURS, _OTHERS, _FLOOR, _MISSED = "#1b7f5c", "#a9b4c0", "#5b6875", "#c0392b"
# The ratio of the longest to the shortest bar from which on the scale is logarithmic.
_LOG_FROM = 12


def plot_scenario(outcome: Outcome, path: Path) -> None:
    """Draw a bar for each contestant, the shortest on top, with its ratio to the floor and time, or its memory."""
    labels = [label for label in outcome.lines if not math.isnan(_length(outcome, label))]
    labels.sort(key=lambda label: _length(outcome, label), reverse=True)
    lengths = [_length(outcome, label) for label in labels]
    figure, axes = _figure(labels)
    axes.barh(labels, lengths, color=[_color(outcome, label) for label in labels])
    ends = lengths
    if outcome.scenario.shows == "seconds":
        spreads = [outcome.ratio_to_floor(label) for label in labels]
        ends = [each.upper for each in spreads]
        axes.hlines(range(len(labels)), [each.lower for each in spreads], ends, color="black", linewidth=2)
    _scale(axes, lengths, ends)
    _write(axes, ends, [_text(outcome, label) for label in labels])
    what = "times the floor (dark)" if outcome.scenario.shows == "seconds" else "megabytes"
    axes.set_xlabel(f"{what}: shorter is better")
    _save(figure, outcome.scenario.title, outcome.quick, path)


def plot_targets(outcomes: Iterable[Outcome], path: Path) -> None:
    """Draw the used share of each target's limit. A target with a bar below 1 is met."""
    outcomes = list(outcomes)
    verdicts = [each for outcome in outcomes for each in outcome.verdicts() if each.measured > 0][::-1]
    uses = [_use(each) for each in verdicts]
    figure, axes = _figure(verdicts)
    colors = {True: _OURS, False: _MISSED, None: _OTHERS}
    axes.barh(range(len(verdicts)), uses, color=[colors[each.is_met] for each in verdicts])
    axes.set_yticks(range(len(verdicts)), [each.target.text for each in verdicts])
    axes.axvline(1, color="black", linewidth=1)
    _scale(axes, [*uses, 1.0], [*uses, 1.0])
    _write(axes, uses, [f"{number_text(each.measured)} {each.target.unit}" for each in verdicts])
    axes.set_xlabel("used share of the limit: below 1 is met")
    _save(figure, "Every target", any(outcome.quick for outcome in outcomes), path)


def _use(verdict: Verdict) -> float:
    """Return the measured value divided by its limit, or the inverse for a lower limit, so that less is better."""
    share = verdict.measured / verdict.target.limit
    return share if math.isfinite(verdict.target.at_most) else 1 / share


def _figure(bars: list[Any]) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 1.5 + 0.34 * max(len(bars), 1)), layout="constrained")
    axes = figure.subplots()
    axes.margins(y=0.02)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.25)
    axes.set_axisbelow(True)
    return figure, axes


def _scale(axes: Any, lengths: list[float], ends: list[float]) -> None:
    """Choose a logarithmic scale if bars differ much, and leave space for the text at their ends."""
    if not lengths:
        return
    shortest, longest = min(lengths), max(ends)
    if longest > _LOG_FROM * shortest:
        axes.set_xscale("log")
        axes.set_xlim(shortest / 2, longest * (longest / shortest) ** 0.35)
        axes.xaxis.set_major_formatter(lambda number, _: f"{number:g}")
    else:
        axes.set_xlim(0, 1.3 * longest)


def _write(axes: Any, ends: list[float], texts: list[str]) -> None:
    for position, (end, text) in enumerate(zip(ends, texts, strict=True)):
        axes.annotate(text, (end, position), xytext=(6, 0), textcoords="offset points", va="center", fontsize=9)


def _save(figure: Any, title: str, quick: bool, path: Path) -> None:
    figure.suptitle(f"{title} (quick run with small sizes: the times mean nothing)" if quick else title)
    figure.savefig(path, dpi=130)


def _length(outcome: Outcome, label: str) -> float:
    if outcome.scenario.shows == "seconds":
        return outcome.ratio_to_floor(label).median
    return outcome.value(label, outcome.scenario.shows) / 1e6


def _text(outcome: Outcome, label: str) -> str:
    if outcome.scenario.shows == "seconds":
        return (
            f"{number_text(outcome.ratio_to_floor(label).median)} x   ({seconds_text(outcome.value(label, 'seconds'))})"
        )
    return bytes_text(outcome.value(label, outcome.scenario.shows))


def _color(outcome: Outcome, label: str) -> str:
    (entry,) = (entry for entry in outcome.scenario.entries if entry.label == label)
    if entry.is_ours:
        return _OURS
    return _FLOOR if label == outcome.scenario.floor else _OTHERS
