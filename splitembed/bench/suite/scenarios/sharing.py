"""One table in a file: opening it, the pages that it takes, and processes that share it."""

from typing import Any

from splitembed.bench.suite.plan import Entry, Scenario, Target, value
from splitembed.bench.suite.problems import Sizes

_SIZES = Sizes(2_000_000, 100, 20_000, num_batches=2)
_PROCESSES = tuple(f"process {number}" for number in (1, 2, 3, 4))


def opening() -> Scenario:
    """The time and the anonymous memory of opening a split, and of a layer on it."""
    split, layer = "SplitTable.open", "open, and make the layer"
    growth = "growth_beside_remap_bytes"
    targets = (
        Target("opening the table: at most 20 ms", value(split, "seconds", 1e3), at_most=20, unit="ms"),
        Target("with the layer: at most 100 ms", value(layer, "seconds", 1e3), at_most=100, unit="ms"),
        Target("anonymous growth beside remap: under 5 MB", value(layer, growth, 1e-6), at_most=5, unit="MB"),
    )
    entries = (Entry(split, "opening.Opening", "open", _SIZES), Entry(layer, "opening.Opening", "layer", _SIZES))
    return Scenario("opening", "Opening 2,000,000 x 100 (800 MB) from its files", entries, split, targets)


def cold_rows() -> Scenario:
    """The file pages that scattered rows pull in from a cold cache."""
    label = "open, and read 1,280 scattered rows"
    target = Target(
        "1,280 scattered rows from a cold cache touch at most 15 MB of file pages",
        value(label, "file_pages_bytes", 1e-6),
        at_most=15,
        unit="MB",
    )
    entry = Entry(label, "opening.ScatteredRows", "cold", _SIZES)
    return Scenario("cold-rows", "Scattered rows of 2,000,000 x 100 from a cold cache", (entry,), label, (target,))


def sharing() -> Scenario:
    """Four processes on one table."""
    entries = tuple(Entry(label, "opening.Sharing", "touch", _SIZES) for label in _PROCESSES)
    target = Target(
        "4 processes on one table: summed PSS at most 1.1 x the pages that one touches", _summed_share, at_most=1.1
    )
    title = "Four processes gather a hundredth of the rows of one 2,000,000 x 100 table"
    return Scenario("sharing", title, entries, _PROCESSES[0], (target,), shows="pss_bytes")


def _summed_share(outcome: Any) -> float:
    summed = sum(outcome.value(label, "pss_bytes") for label in _PROCESSES)
    return float(summed / outcome.value(_PROCESSES[0], "touched_bytes"))


SCENARIOS = (opening(), cold_rows(), sharing())
