"""The results of a scenario: samples, medians, quartiles, ratios to the floor and verdicts."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.plan import Scenario, Target


class Spread(NamedTuple):
    """A median with its quartiles. All are NaN if nothing was measured."""

    median: float
    lower: float
    upper: float


def spread(samples: list[float]) -> Spread:
    """Return the median and the quartiles of samples.

    >>> spread([1.0, 2.0, 3.0, 4.0, 100.0])
    Spread(median=3.0, lower=2.0, upper=4.0)
    """
    if not samples:
        return Spread(math.nan, math.nan, math.nan)
    lower, median, upper = np.quantile(samples, [0.25, 0.5, 0.75])
    return Spread(float(median), float(lower), float(upper))


@dataclass
class Line:
    """One contestant: seconds per step in each round, other measured values, and the reason if it did not run."""

    label: str
    seconds: list[float] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    missing: str = ""
    failed: bool = False


class Verdict(NamedTuple):
    """A target, the measured value, and whether it is met. None if it was not measured, or in a quick run."""

    target: Target
    measured: float
    is_met: bool | None


@dataclass
class Outcome:
    """The lines of a scenario by label, in the order of the contestants."""

    scenario: Scenario
    lines: dict[str, Line]
    load_average: float = math.nan
    facts: dict[str, dict[str, float]] = field(default_factory=dict)
    quick: bool = False

    def ratio(self, label: str, of: str) -> Spread:
        """Return the ratio of two contestants' times, taken round by round, so that slow rounds do not matter."""
        pairs = zip(self._seconds(label), self._seconds(of), strict=False)
        return spread([one / other for one, other in pairs])

    def ratio_to_floor(self, label: str) -> Spread:
        """Return the ratio to the scenario's floor."""
        return self.ratio(label, self.scenario.floor)

    def value(self, label: str, key: str) -> float:
        """Return a measured value, or the median of the seconds. NaN if there is none."""
        line = self.lines.get(label)
        if line is None:
            return math.nan
        if key == "seconds":
            return spread(line.seconds).median
        found = line.values.get(key)
        return math.nan if found is None else float(found)

    def verdicts(self) -> list[Verdict]:
        """Return each target with its measured value. A quick run has no verdicts."""
        measured = [(target, target.measured(self)) for target in self.scenario.targets]
        return [Verdict(target, found, None if self.quick else target.is_met_by(found)) for target, found in measured]

    @property
    def note(self) -> str:
        """Return the note of the scenario."""
        note = self.scenario.note
        return note if isinstance(note, str) else note(self)

    def _seconds(self, label: str) -> list[float]:
        return self.lines[label].seconds if label in self.lines else []
