"""A run of several scenarios, which writes results.json, results.md and plots."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks.speed.environment import environment
from benchmarks.speed.harness import Settings, measure
from benchmarks.speed.outcome import Outcome
from benchmarks.speed.plan import Scenario
from benchmarks.speed.plots import plot_scenario, plot_targets
from benchmarks.speed.report import as_json, as_markdown, as_table

# The load average per core from which on times are unreliable.
_BUSY = 0.5


def run(scenarios: Iterable[Scenario], settings: Settings, output: Path, console: Console) -> list[Outcome]:
    """Measure scenarios, and write the reports after each one, so that an interrupted run leaves its results.

    Args:
        scenarios: the scenarios to run.
        settings: the settings of the run. Temporary files are below `output`.
        output: the folder for results.
        console: the console that shows the tables.

    Returns:
        An outcome for each scenario.
    """
    output.mkdir(parents=True, exist_ok=True)
    machine, load, outcomes = environment(), os.getloadavg()[0], []
    machine["load average at the start"] = f"{load:.2f}"
    if load > _BUSY * int(machine["cores"]) and not settings.quick:
        settings.say(f"The load average is {load:.1f}: times on a busy machine are unreliable.")
    for scenario in scenarios:
        settings.say(f"\n{scenario.name}: {scenario.title}")
        outcomes.append(measure(scenario, replace(settings, folder=output)))
        console.print(as_table(outcomes[-1]))
        write_reports(outcomes, machine, output)
    return outcomes


def write_reports(outcomes: list[Outcome], machine: dict[str, str], output: Path) -> None:
    """Write results.json, results.md, targets.png, and the plot of the latest scenario."""
    (output / "results.json").write_text(as_json(outcomes, machine), encoding="utf-8")
    (output / "results.md").write_text(as_markdown(outcomes, machine), encoding="utf-8")
    plot_scenario(outcomes[-1], output / f"{outcomes[-1].scenario.name}.png")
    plot_targets(outcomes, output / "targets.png")
