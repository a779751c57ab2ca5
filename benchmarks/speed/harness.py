"""Running a scenario: contestants are made and checked one by one, then timed in turn; an `Outcome` leaves."""

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

_LEAST_TURNS = 3
_MOST_STEPS = 200  # in one turn


@dataclass(frozen=True)
class Settings:
    """How a run is done.

    Args:
        quick: small sizes, no verdicts.
        rounds: how often each contestant has its turn.
        turn_seconds: how long a turn is to last; fast contestants do many steps in it.
        budget_seconds: a contestant that has used as much drops out, but not before its third turn.
        folder: where files go while a scenario runs, and what frameworks write on standard error; None: the system's.
        say: called with each line of the account.
    """

    quick: bool = False
    rounds: int = 15
    turn_seconds: float = 0.5
    budget_seconds: float = 60.0
    folder: Path | None = None
    say: Callable[[str], Any] = print


def measure(scenario: Scenario, settings: Settings) -> Outcome:
    """Runs one scenario.

    Returns:
        Its outcome; a contestant whose library is not installed, or that fails, has a line that says so.
    """
    if settings.quick:
        entries = (replace(entry, sizes=entry.sizes.shrunk()) for entry in scenario.entries)
        scenario = replace(scenario, entries=tuple(entries))
    outcome = Outcome(scenario, {}, load_average=os.getloadavg()[0], quick=settings.quick)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="scratch-", dir=settings.folder)))
        absent = {entry.label: what_is_absent(entry, settings) for entry in scenario.entries}
        problems = make_problems([entry for entry in scenario.entries if not absent[entry.label]], scratch)
        outcome.facts = {str(sizes): problem.facts() for sizes, problem in problems.items()}
        workers = {}
        for entry in scenario.entries:
            if absent[entry.label]:
                settings.say(f"  {entry.label}: left out, {absent[entry.label]}")
                outcome.lines[entry.label] = Line(entry.label, missing=absent[entry.label])
                continue
            worker = stack.enter_context(Worker(log=(settings.folder or scratch) / "contestants.log"))
            line = outcome.lines[entry.label] = admit(entry, problems[entry.sizes], worker, settings)
            if not line.missing:
                workers[entry.label] = worker
        turns = {label: worker.take_turn for label, worker in workers.items()}
        for label, seconds in alternate(turns, settings.rounds, settings.budget_seconds).items():
            outcome.lines[label].seconds = seconds
            outcome.lines[label].values.update(workers[label].last_values())
    return outcome


def what_is_absent(entry: Entry, settings: Settings) -> str:
    """Says what an entry needs and this machine has not, or nothing; data are fetched now, but for a quick run."""
    absent = [name for name in entry.needs if find_spec(name) is None]
    if absent:
        return f"{', '.join(absent)} is not installed"
    for name in entry.needs_data:
        try:
            if not settings.quick:
                fetch(name)
            elif not archive_path(name).exists():
                return f"{name} is not in the data folder: make data fetches it"
        except SplitEmbedError as error:
            return f"{name} is not in the data folder, and could not be fetched: {error}"
    return ""


def make_problems(entries: Iterable[Entry], folder: Path) -> dict[Any, Any]:
    """Makes a problem for each size that the entries name, each in a folder of its own."""
    problems: dict[Any, Any] = {}
    for sizes in dict.fromkeys(entry.sizes for entry in entries):
        own = folder / str(len(problems))
        own.mkdir()
        problems[sizes] = sizes.make(own)
    return problems


def admit(entry: Entry, problem: Any, worker: Worker, settings: Settings) -> Line:
    """Starts and checks a contestant, lets it warm up, and settles how many steps a turn has."""
    try:
        started = worker.start(entry, problem)
    except Exception as error:  # another contestant's failure must not end the run; the report and the exit code tell
        settings.say(f"  {entry.label}: FAILED, {error!r}")
        return Line(entry.label, missing=repr(error), failed=True)
    seconds = settle_steps(worker, started.seconds, settings.turn_seconds)
    settings.say(f"  {entry.label}: ready, about {seconds * 1e3:,.1f} ms a step")
    return Line(entry.label, values=started.values)


def settle_steps(worker: Worker, seconds: float, turn_seconds: float) -> float:
    """Lengthens a contestant's turn as long as that makes it a better measure; the contestant warms up meanwhile.

    Returns:
        Seconds of a step, as far as is known now.
    """
    if seconds < turn_seconds:
        seconds = min(seconds, worker.take_turn())
    steps = 1
    while (wanted := min(int(turn_seconds / seconds), _MOST_STEPS)) > 1.5 * steps:
        worker.set_steps_a_turn(steps := wanted)
        seconds = worker.take_turn()
    return seconds


def alternate(
    turns: Mapping[str, Callable[[], float]], rounds: int, budget_seconds: float = float("inf")
) -> dict[str, list[float]]:
    """Lets contestants take turns, A B A B ..., so that whatever changes meanwhile meets them all.

    >>> order = []
    >>> def turn(name):
    ...     return lambda: order.append(name) or 1.0
    >>> alternate({"A": turn("A"), "B": turn("B")}, rounds=2)
    {'A': [1.0, 1.0], 'B': [1.0, 1.0]}
    >>> order
    ['A', 'B', 'A', 'B']

    Args:
        turns: called for a turn; returns the seconds that a step took.
        rounds: turns of each.
        budget_seconds: who has used as much in all, drops out after its third turn.

    Returns:
        The seconds of each turn, by contestant.
    """
    samples: dict[str, list[float]] = {label: [] for label in turns}
    used = dict.fromkeys(turns, 0.0)
    for number in range(rounds):
        for label, take_turn in turns.items():
            if number >= _LEAST_TURNS and used[label] > budget_seconds:
                continue
            began = time.perf_counter()
            samples[label].append(take_turn())
            used[label] += time.perf_counter() - began
    return samples
