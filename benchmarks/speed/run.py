"""The whole run: scenarios go in, one after the other; results.json, results.md and plots are left in a folder."""

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

_BUSY = 0.5  # load average a core from which on times are not to be trusted


def run(scenarios: Iterable[Scenario], settings: Settings, output: Path, console: Console) -> list[Outcome]:
    """Measures scenarios; the reports are written anew after each, so that an interrupted run leaves what it has.

    Args:
        scenarios: what to run.
        settings: how; what scenarios work on goes below `output`, and is deleted after each.
        output: the folder for results.
        console: where tables are shown.

    Returns:
        An outcome for each scenario.
    """
    output.mkdir(parents=True, exist_ok=True)
    where, load, outcomes = environment(), os.getloadavg()[0], []
    where["load average at the start"] = f"{load:.2f}"
    if load > _BUSY * int(where["cores"]) and not settings.quick:
        settings.say(f"Load average {load:.1f}: times of a busy machine are not to be trusted.")
    for scenario in scenarios:
        settings.say(f"\n{scenario.name}: {scenario.title}")
        outcomes.append(measure(scenario, replace(settings, folder=output)))
        console.print(as_table(outcomes[-1]))
        write_reports(outcomes, where, output)
    return outcomes


def write_reports(outcomes: list[Outcome], where: dict[str, str], output: Path) -> None:
    """Writes results.json, results.md, targets.png, and a picture of the latest scenario."""
    (output / "results.json").write_text(as_json(outcomes, where), encoding="utf-8")
    (output / "results.md").write_text(as_markdown(outcomes, where), encoding="utf-8")
    plot_scenario(outcomes[-1], output / f"{outcomes[-1].scenario.name}.png")
    plot_targets(outcomes, output / "targets.png")
