"""The results of scenarios as a table in the terminal, as Markdown and as JSON."""

import dataclasses
import json
import math
from collections.abc import Iterable
from typing import Any

from rich.table import Table

from benchmarks.speed.outcome import Line, Outcome, Verdict

# The values that have a column, with its title.
_COLUMNS = {
    "memory_bytes": "peak memory",
    "batch_bytes": "memory per batch",
    "checkpoint_bytes": "checkpoint",
    "frozen_rows_moved": '"frozen" rows moved',
    "growth_without_remap_bytes": "growth without remap",
    "growth_without_weight_bytes": "without remap and weight",
    "file_pages_bytes": "file pages",
    "pss_bytes": "PSS",
    "touched_bytes": "touched",
    "frozen_bytes": "frozen rows",
    "mean_row_error": "mean row error",
    "worst_row_error": "worst row error",
    "cosine_distance": "1 - smallest cosine",
}
LEGEND = (
    "Time: median time of one step over all turns. x floor: the ratio to the time of the floor, taken turn by turn, as "
    "median and quartiles. Peak memory: anonymous memory of a new process, without its imports, while the contestant "
    "is made and takes its first steps. Memory per batch: the growth from a batch of a single text to whole batches. "
    'Checkpoint: weights and optimizer slots. "Frozen" rows moved: whether they changed after steps with momentum and '
    "weight decay. Rows, losses and a step of SGD were checked against NumPy before the measurement."
)


def seconds_text(seconds: float) -> str:
    """Format a time.

    >>> [seconds_text(each) for each in (0.00123, 0.25, 12.5, math.nan)]
    ['1.23 ms', '250 ms', '12.5 s', '-']
    """
    if math.isnan(seconds):
        return "-"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def number_text(number: float) -> str:
    """Format a number with three digits, or with all of them if it is large.

    >>> [number_text(each) for each in (1.2345, 0.01, 98765.4)]
    ['1.23', '0.01', '98,765']
    """
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def bytes_text(num_bytes: float) -> str:
    """Format a size in megabytes.

    >>> bytes_text(1_500_000), bytes_text(250_000_000)
    ('1.5 MB', '250 MB')
    """
    return f"{num_bytes / 1e6:.0f} MB" if num_bytes >= 1e8 else f"{num_bytes / 1e6:.1f} MB"


def value_text(value: Any) -> str:
    """Format a measured value: an integer is a number of bytes, a bool is yes or no.

    >>> [value_text(each) for each in (1_500_000, 0.00123, True, None)]
    ['1.5 MB', '0.00123', 'yes', '-']
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return bytes_text(value) if isinstance(value, int) else number_text(value)


def ratio_text(outcome: Outcome, label: str) -> str:
    """Format the ratio of a contestant to the floor, with its quartiles."""
    median, lower, upper = outcome.ratio_to_floor(label)
    if label == outcome.scenario.floor:
        return "1 (floor)"
    if math.isnan(median):
        return "-"
    return f"{number_text(median)} ({number_text(lower)} to {number_text(upper)})"


def verdict_text(verdict: Verdict) -> str:
    """Format a target, the measured value and the verdict."""
    word = {True: "MET", False: "NOT MET", None: "not judged"}[verdict.is_met]
    measured = (
        "not measured" if math.isnan(verdict.measured) else f"{number_text(verdict.measured)} {verdict.target.unit}"
    )
    return f"{word}: {verdict.target.text} (measured: {measured.rstrip()})"


def rows_of(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a scenario's table, as text."""
    shown = [key for key in _COLUMNS if any(key in line.values for line in outcome.lines.values())]
    header = ["contestant", "time", "x floor", *(_COLUMNS[key] for key in shown)]
    return header, [_cells(outcome, line, shown) for line in outcome.lines.values()]


def _cells(outcome: Outcome, line: Line, shown: list[str]) -> list[str]:
    if line.missing:
        return [line.label, f"FAILED: {line.missing}" if line.failed else line.missing, "-", *("-" for _ in shown)]
    time = seconds_text(outcome.value(line.label, "seconds"))
    return [line.label, time, ratio_text(outcome, line.label), *(value_text(line.values.get(key)) for key in shown)]


def as_table(outcome: Outcome) -> Table:
    """Return the table for the terminal."""
    header, rows = rows_of(outcome)
    caption = "\n".join([*map(verdict_text, outcome.verdicts()), *filter(None, [outcome.note])])
    table = Table(title=outcome.scenario.title, caption=caption, caption_justify="left", title_justify="left")
    for number, name in enumerate(header):
        table.add_column(name, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row)
    return table


def as_markdown(outcomes: Iterable[Outcome], environment: dict[str, str]) -> str:
    """Return the report: all verdicts, then each scenario with its table, plot and a description of its batches."""
    outcomes = list(outcomes)
    verdicts = [verdict_text(verdict) for outcome in outcomes for verdict in outcome.verdicts()]
    blocks = ["# Speed and memory", ", ".join(f"{name} {found}" for name, found in environment.items())]
    if any(outcome.quick for outcome in outcomes):
        blocks.append("**A quick run with small sizes: it shows that everything runs, and its times mean nothing.**")
    blocks += ["![every target](targets.png)", _bullets(verdicts), LEGEND, *map(_section, outcomes)]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _section(outcome: Outcome) -> str:
    header, rows = rows_of(outcome)
    table = [header, ["---", *("--:" for _ in header[1:])], *rows]
    facts = [
        f"{sizes}: " + ", ".join(f"{name} {found:.4g}" for name, found in each.items())
        for sizes, each in outcome.facts.items()
    ]
    blocks = [
        f"## {outcome.scenario.title}",
        "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table),
        f"![{outcome.scenario.name}]({outcome.scenario.name}.png)",
        outcome.note,
        _bullets([*facts, f"load average at the start: {outcome.load_average:.2f}"]),
    ]
    return "\n\n".join(filter(None, blocks))


def _bullets(texts: list[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def as_json(outcomes: Iterable[Outcome], environment: dict[str, str]) -> str:
    """Return all measurements as JSON: the seconds of each turn, values in bytes, sizes and verdicts. NaN is null."""
    return (
        json.dumps({"environment": environment, "scenarios": [_plain(outcome) for outcome in outcomes]}, indent=2)
        + "\n"
    )


def _plain(outcome: Outcome) -> dict[str, Any]:
    sizes = {entry.label: dataclasses.asdict(entry.sizes) for entry in outcome.scenario.entries}
    lines = [
        {**dataclasses.asdict(line), "sizes": sizes[label], "ratio_to_floor": _numbers(outcome.ratio_to_floor(label))}
        for label, line in outcome.lines.items()
    ]
    verdicts = [
        {"target": each.target.text, "limit": each.target.limit, "unit": each.target.unit, "is_met": each.is_met}
        | {"measured": _numbers([each.measured])[0]}
        for each in outcome.verdicts()
    ]
    return {
        "name": outcome.scenario.name,
        "title": outcome.scenario.title,
        "floor": outcome.scenario.floor,
        "note": outcome.note,
        "quick": outcome.quick,
        "load_average": outcome.load_average,
        "facts": outcome.facts,
        "contestants": lines,
        "targets": verdicts,
    }


def _numbers(found: Iterable[float]) -> list[float | None]:
    return [None if math.isnan(number) else number for number in found]
