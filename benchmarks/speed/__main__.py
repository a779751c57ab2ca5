"""The command of the speed suite: `python -m benchmarks.speed`."""

import sys
from pathlib import Path

import click

# The number of columns if the output is not a terminal.
_WIDTH = 130


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--scenario", "names", multiple=True, metavar="NAME", help="Run this scenario. Can be repeated. Default: all."
)
@click.option("--quick", is_flag=True, help="Use small sizes, to check that everything runs. The times mean nothing.")
@click.option(
    "--output", type=click.Path(path_type=Path), help="Folder for results. Default: results/bench in the data folder."
)
@click.option("--rounds", type=click.IntRange(1), help="Turns of each contestant.  [default: 15, with --quick: 3]")
@click.option("--list", "only_list", is_flag=True, help="List the scenarios without running them.")
def bench(names: tuple[str, ...], quick: bool, output: Path | None, rounds: int | None, only_list: bool) -> None:
    """Compare speed and memory with other methods. Run this on an idle machine."""
    from rich.console import Console

    from benchmarks.data.packages import data_folder
    from benchmarks.speed.harness import Settings
    from benchmarks.speed.run import run
    from benchmarks.speed.scenarios import SCENARIOS

    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        raise click.BadParameter(
            f"must be one of {', '.join(SCENARIOS)}. Received: {', '.join(unknown)}.", param_hint="--scenario"
        )
    if only_list:
        for scenario in SCENARIOS.values():
            click.echo(f"{scenario.name:15s} {scenario.title} ({len(scenario.entries)} contestants)")
        return
    settings = Settings(quick=quick, rounds=rounds or (3 if quick else Settings.rounds), say=click.echo)
    folder = output or data_folder() / "results" / "bench"
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    outcomes = run([SCENARIOS[name] for name in names or SCENARIOS], settings, folder, console)
    click.echo(f"Written: {folder}/results.md, results.json and plots")
    failed = [line.label for outcome in outcomes for line in outcome.lines.values() if line.failed]
    if failed:
        raise click.ClickException(f"These contestants failed: {', '.join(failed)}")


if __name__ == "__main__":
    bench(prog_name="python -m benchmarks.speed")
