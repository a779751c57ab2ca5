"""The description of scenarios: contestants, sizes, floors and targets. Nothing runs in this module."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_OURS = (
    "Ours",
    "Opening",
    "ScatteredRows",
    "Sharing",
    "BuildSplit",
    "Combiner",
    "PooledOurs",
    "Narrowed",
    "PartialRows",
)


@dataclass(frozen=True)
class Entry:
    """One contestant of a scenario.

    Args:
        label: its name in reports.
        contestant: the module and class in `benchmarks.speed.contestants`, such as "ours.Ours".
        task: the task that is timed, such as "step".
        sizes: the sizes of its problem.
        options: further arguments of the class.
        needs: libraries that it needs. Without them it is skipped.
        needs_data: packages of `benchmarks.data.packages` that it needs. Without them it is skipped.
    """

    label: str
    contestant: str
    task: str
    sizes: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    needs_data: tuple[str, ...] = ()

    @property
    def is_ours(self) -> bool:
        """Return whether the contestant is splitembed, which plots highlight."""
        return self.contestant.split(".")[1] in _OURS


@dataclass(frozen=True)
class Target:
    """A bound on a measured value.

    Args:
        text: a description for reports.
        measured: a function that returns the value from the scenario's `Outcome`, NaN if a contestant was skipped.
        at_most, at_least: the bounds, of which one is given.
        unit: "x" for ratios, otherwise "ms", "s", "MB" or "bytes". "" for a plain number.
    """

    text: str
    measured: Callable[[Any], float]
    at_most: float = math.inf
    at_least: float = -math.inf
    unit: str = "x"

    @property
    def limit(self) -> float:
        """Return the bound that was given."""
        return self.at_most if math.isfinite(self.at_most) else self.at_least

    def is_met_by(self, value: float) -> bool | None:
        """Return whether a value is within the bounds, or None for NaN, which means that nothing was measured."""
        return None if math.isnan(value) else self.at_least <= value <= self.at_most


@dataclass(frozen=True)
class Scenario:
    """Contestants that take turns in one run.

    Args:
        name: the name for `--scenario` and files.
        title: the title in reports.
        entries: the contestants, in the order of their turns.
        floor: the label of the contestant that the others are compared with.
        targets: the bounds that the results should meet.
        shows: the value that the plot draws: "seconds", or another one such as "memory_bytes".
        note: an explanation of the results, or a function that returns it from the `Outcome`.
    """

    name: str
    title: str
    entries: tuple[Entry, ...]
    floor: str
    targets: tuple[Target, ...] = ()
    shows: str = "seconds"
    note: str | Callable[[Any], str] = ""


def times(label: str, of: str) -> Callable[[Any], float]:
    """Return a measurement: the contestant's time divided by that of `of`."""
    return lambda outcome: float(outcome.ratio(label, of).median)


def value(label: str, key: str, scale: float = 1.0) -> Callable[[Any], float]:
    """Return a measurement: a value of a contestant, scaled to the unit of the target."""
    return lambda outcome: scale * float(outcome.value(label, key))
