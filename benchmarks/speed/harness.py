"""How a scenario runs: contestants are started and checked one by one, then timed in turns."""

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.data.packages import archive_path, fetch
from benchmarks.speed.outcome import Line, Outcome
from benchmarks.speed.plan import Entry, Scenario
from benchmarks.speed.worker import Worker
from splitembed.errors import SplitEmbedError

_MIN_TURNS = 3
_MAX_STEPS_PER_TURN = 200


@dataclass(frozen=True)
class Settings:
    """The settings of a run.

    Args:
        quick: use small sizes, without verdicts.
        rounds: the number of turns of each contestant.
        turn_seconds: the intended length of a turn. Fast contestants take many steps in one.
        budget_seconds: a contestant stops after this time, but not before its third turn.
        folder: the folder for temporary files and for the standard error of the contestants. By default the system's
            folder for temporary files.
        say: a function that is called with each progress line.
    """

    quick: bool = False
    rounds: int = 15
    turn_seconds: float = 0.5
    budget_seconds: float = 60.0
    folder: Path | None = None
    say: Callable[[str], Any] = print


def measure(scenario: Scenario, settings: Settings) -> Outcome:
    """Run one scenario.

    Returns:
        Its outcome. The line of a contestant that failed, or whose library or data are missing, contains the reason.
    """
    if settings.quick:
        entries = (replace(entry, sizes=entry.sizes.shrunk()) for entry in scenario.entries)
        scenario = replace(scenario, entries=tuple(entries))
    outcome = Outcome(scenario, {}, load_average=os.getloadavg()[0], quick=settings.quick)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="scratch-", dir=settings.folder)))
        missing = {entry.label: missing_requirement(entry, settings) for entry in scenario.entries}
        problems = make_problems([entry for entry in scenario.entries if not missing[entry.label]], scratch)
        outcome.facts = {str(sizes): problem.facts() for sizes, problem in problems.items()}
        workers = {}
        for entry in scenario.entries:
            if missing[entry.label]:
                settings.say(f"  {entry.label}: skipped, {missing[entry.label]}")
                outcome.lines[entry.label] = Line(entry.label, missing=missing[entry.label])
                continue
            worker = stack.enter_context(Worker(log=(settings.folder or scratch) / "contestants.log"))
            line = outcome.lines[entry.label] = start_and_check(entry, problems[entry.sizes], worker, settings)
            if not line.missing:
                workers[entry.label] = worker
        turns = {label: worker.take_turn for label, worker in workers.items()}
        for label, seconds in alternate(turns, settings.rounds, settings.budget_seconds).items():
            outcome.lines[label].seconds = seconds
            outcome.lines[label].values.update(workers[label].last_values())
    return outcome


def missing_requirement(entry: Entry, settings: Settings) -> str:
    """Return the libraries or data that an entry needs and this machine does not have, or an empty string.

    Missing data are downloaded first, except in a quick run.
    """
    libraries = [name for name in entry.needs if find_spec(name) is None]
    if libraries:
        return f"{', '.join(libraries)} is not installed"
    for name in entry.needs_data:
        try:
            if not settings.quick:
                fetch(name)
            elif not archive_path(name).exists():
                return f"{name} is not in the data folder: `make data` downloads it"
        except SplitEmbedError as error:
            return f"{name} is not in the data folder, and the download failed: {error}"
    return ""


def make_problems(entries: Iterable[Entry], folder: Path) -> dict[Any, Any]:
    """Make a problem for each of the entries' sizes, each in its own folder."""
    problems: dict[Any, Any] = {}
    for sizes in dict.fromkeys(entry.sizes for entry in entries):
        own = folder / str(len(problems))
        own.mkdir()
        problems[sizes] = sizes.make(own)
    return problems


def start_and_check(entry: Entry, problem: Any, worker: Worker, settings: Settings) -> Line:
    """Start and check a contestant, warm it up, and choose its number of steps per turn."""
    try:
        started = worker.start(entry, problem)
    # One failure must not end the run. It is in the report and in the exit code.
    except Exception as error:
        settings.say(f"  {entry.label}: FAILED, {error!r}")
        return Line(entry.label, missing=repr(error), failed=True)
    seconds = choose_steps(worker, started.seconds, settings.turn_seconds)
    settings.say(f"  {entry.label}: ready, about {seconds * 1e3:,.1f} ms a step")
    return Line(entry.label, values=started.values)


def choose_steps(worker: Worker, seconds: float, turn_seconds: float) -> float:
    """Increase the number of steps per turn until a turn takes about `turn_seconds`, which also warms up.

    Returns:
        The latest time of one step, in seconds.
    """
    if seconds < turn_seconds:
        seconds = min(seconds, worker.take_turn())
    steps = 1
    while (wanted := min(int(turn_seconds / seconds), _MAX_STEPS_PER_TURN)) > 1.5 * steps:
        worker.set_steps_per_turn(steps := wanted)
        seconds = worker.take_turn()
    return seconds


def alternate(
    turns: Mapping[str, Callable[[], float]], rounds: int, budget_seconds: float = float("inf")
) -> dict[str, list[float]]:
    """Let contestants take turns, A B A B ..., so that a change of the machine's load affects all of them.

    >>> order = []
    >>> def turn(name):
    ...     return lambda: order.append(name) or 1.0
    >>> alternate({"A": turn("A"), "B": turn("B")}, rounds=2)
    {'A': [1.0, 1.0], 'B': [1.0, 1.0]}
    >>> order
    ['A', 'B', 'A', 'B']

    Args:
        turns: a function for each contestant that runs one turn and returns the seconds per step.
        rounds: the number of turns of each contestant.
        budget_seconds: a contestant stops after this time in total, but not before its third turn.

    Returns:
        The seconds per step of each turn, by contestant.
    """
    samples: dict[str, list[float]] = {label: [] for label in turns}
    used = dict.fromkeys(turns, 0.0)
    for number in range(rounds):
        for label, take_turn in turns.items():
            if number >= _MIN_TURNS and used[label] > budget_seconds:
                continue
            start = time.perf_counter()
            samples[label].append(take_turn())
            used[label] += time.perf_counter() - start
    return samples
