"""One table in a file: opening it, its pages, and processes that share it."""

from dataclasses import replace
from typing import Any

from benchmarks.speed.plan import Entry, Scenario, Target, value
from benchmarks.speed.problems import Sizes

_SIZES = Sizes(2_000_000, 100, 20_000, num_batches=2)
_PROCESSES = tuple(f"process {number}" for number in (1, 2, 3, 4))


def opening() -> Scenario:
    """Measure time and anonymous memory of opening a split and making a layer, also with few trainable rows."""
    split, layer, few = "SplitTable.open", "open, and make the layer", "the same, 2,000 trainable rows"
    growth, rest = "growth_without_remap_bytes", "growth_without_weight_bytes"
    text = "anonymous memory without the remap"
    targets = (
        Target("opening the table: at most 20 ms", value(split, "seconds", 1e3), at_most=20, unit="ms"),
        Target("with the layer: at most 100 ms", value(layer, "seconds", 1e3), at_most=100, unit="ms"),
        Target(f"{text}: under 5 MB", value(layer, growth, 1e-6), at_most=5, unit="MB"),
        Target(f"{text}, 2,000 trainable rows: under 5 MB", value(few, growth, 1e-6), at_most=5, unit="MB"),
        Target(f"{text} and the layer's weight: under 5 MB", value(layer, rest, 1e-6), at_most=5, unit="MB"),
    )
    entries = (
        Entry(split, "opening.Opening", "open", _SIZES),
        Entry(layer, "opening.Opening", "layer", _SIZES),
        Entry(few, "opening.Opening", "layer", replace(_SIZES, num_trainable=2_000)),
    )
    note = "20,000 trainable rows are 8 MB. They are copied to anonymous memory, because they train."
    return Scenario("opening", "Opening 2,000,000 x 100 (800 MB) from its files", entries, split, targets, note=note)


def cold_rows() -> Scenario:
    """Measure the file pages that are read for scattered rows, from a cold cache."""
    label = "open, and read 1,280 scattered rows"
    target = Target(
        "1,280 scattered rows from a cold cache: at most 15 MB of file pages",
        value(label, "file_pages_bytes", 1e-6),
        at_most=15,
        unit="MB",
    )
    entry = Entry(label, "opening.ScatteredRows", "cold", _SIZES)
    return Scenario("cold-rows", "Scattered rows of 2,000,000 x 100 from a cold cache", (entry,), label, (target,))


def sharing() -> Scenario:
    """Measure the memory of four processes with one table."""
    entries = tuple(Entry(label, "opening.Sharing", "touch", _SIZES) for label in _PROCESSES)
    target = Target(
        "4 processes with one table: summed PSS at most 1.1 x the pages of one process", _summed_share, at_most=1.1
    )
    title = "Four processes gather the first hundredth of the rows of one 2,000,000 x 100 table"
    return Scenario("sharing", title, entries, _PROCESSES[0], (target,), shows="pss_bytes")


def _summed_share(outcome: Any) -> float:
    summed = sum(outcome.value(label, "pss_bytes") for label in _PROCESSES)
    return float(summed / outcome.value(_PROCESSES[0], "touched_bytes"))


SCENARIOS = (opening(), cold_rows(), sharing())
