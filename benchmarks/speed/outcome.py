"""What a scenario came to: samples and values go in; medians, quartiles, ratios to the floor and verdicts come out."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.plan import Scenario, Target


class Spread(NamedTuple):
    """A median between its quartiles; all NaN where nothing was measured."""

    median: float
    lower: float
    upper: float


def spread(samples: list[float]) -> Spread:
    """Summarises samples.

    >>> spread([1.0, 2.0, 3.0, 4.0, 100.0])
    Spread(median=3.0, lower=2.0, upper=4.0)
    """
    if not samples:
        return Spread(math.nan, math.nan, math.nan)
    lower, median, upper = np.quantile(samples, [0.25, 0.5, 0.75])
    return Spread(float(median), float(lower), float(upper))


@dataclass
class Line:
    """One contestant: seconds for one step in each round, other measured values, and why it is missing if it is."""

    label: str
    seconds: list[float] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    missing: str = ""
    failed: bool = False


class Verdict(NamedTuple):
    """A target, what was measured, and whether that meets it; None where it was not measured or not to be judged."""

    target: Target
    measured: float
    is_met: bool | None


@dataclass
class Outcome:
    """A scenario's lines by label, in the order of the contestants."""

    scenario: Scenario
    lines: dict[str, Line]
    load_average: float = math.nan
    facts: dict[str, dict[str, float]] = field(default_factory=dict)
    quick: bool = False

    def ratio(self, label: str, of: str) -> Spread:
        """How many times as long as `of`: compared round by round, so that what slows a whole round does not count."""
        pairs = zip(self._seconds(label), self._seconds(of), strict=False)
        return spread([one / other for one, other in pairs])

    def ratio_to_floor(self, label: str) -> Spread:
        """The ratio to the scenario's floor."""
        return self.ratio(label, self.scenario.floor)

    def value(self, label: str, key: str) -> float:
        """A measured value, or the median of the seconds; NaN where there is none."""
        line = self.lines.get(label)
        if line is None:
            return math.nan
        if key == "seconds":
            return spread(line.seconds).median
        found = line.values.get(key)
        return math.nan if found is None else float(found)

    def verdicts(self) -> list[Verdict]:
        """Each target with what was measured; a quick run is not judged."""
        measured = [(target, target.measured(self)) for target in self.scenario.targets]
        return [Verdict(target, found, None if self.quick else target.is_met_by(found)) for target, found in measured]

    @property
    def note(self) -> str:
        """What to know when reading it."""
        note = self.scenario.note
        return note if isinstance(note, str) else note(self)

    def _seconds(self, label: str) -> list[float]:
        return self.lines[label].seconds if label in self.lines else []
