"""What is to be measured, as plain data: contestants, sizes, floors and targets. Nothing here runs anything."""

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
        contestant: module and class in `benchmarks.speed.contestants`, such as "ours.Ours".
        task: which of its tasks is timed, such as "step".
        sizes: of its problem.
        options: passed to the class.
        needs: libraries without which it is left out.
        needs_data: data packages, of `benchmarks.data.packages`, without which it is left out.
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
        """Whether this is splitembed, which plots show in colour."""
        return self.contestant.split(".")[1] in _OURS


@dataclass(frozen=True)
class Target:
    """A value that the outcome must have; `limit` is the least or the most that is right.

    Args:
        text: what is asked, for people.
        measured: takes the scenario's `Outcome` and returns the value; NaN where a contestant was left out.
        at_most, at_least: the bounds; one of the two is given.
        unit: "x" for ratios, else "ms", "s", "MB" or "bytes". "" for a bare number.
    """

    text: str
    measured: Callable[[Any], float]
    at_most: float = math.inf
    at_least: float = -math.inf
    unit: str = "x"

    @property
    def limit(self) -> float:
        """The bound that was given."""
        return self.at_most if math.isfinite(self.at_most) else self.at_least

    def is_met_by(self, value: float) -> bool | None:
        """Whether a value is within the bounds; None for NaN, which means that nothing was measured."""
        return None if math.isnan(value) else self.at_least <= value <= self.at_most


@dataclass(frozen=True)
class Scenario:
    """Contestants that run in turn within one run.

    Args:
        name: for `--scenario` and file names.
        title: a line for people.
        entries: the contestants, in the order in which they take turns.
        floor: label of the one that the others are compared with.
        targets: what the outcome must show.
        shows: what the plot draws: "seconds", or the name of a value such as "memory_bytes".
        note: what to know when reading it, or a function that takes the `Outcome` and says what follows from it.
    """

    name: str
    title: str
    entries: tuple[Entry, ...]
    floor: str
    targets: tuple[Target, ...] = ()
    shows: str = "seconds"
    note: str | Callable[[Any], str] = ""


def times(label: str, of: str) -> Callable[[Any], float]:
    """How many times as long as `of` the contestant takes."""
    return lambda outcome: float(outcome.ratio(label, of).median)


def value(label: str, key: str, scale: float = 1.0) -> Callable[[Any], float]:
    """A measured value of a contestant, scaled to the target's unit."""
    return lambda outcome: scale * float(outcome.value(label, key))
