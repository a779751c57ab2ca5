"""A contestant in its own process, so that its memory contains nothing of the other contestants."""

import gc
import importlib
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from benchmarks.accuracy.memory import PeakMemory
from benchmarks.speed.plan import Entry

_CONTESTANTS = "benchmarks.speed.contestants"
# In the process of the worker, this holds its contestant.
_here: dict[str, Any] = {}


class Started(NamedTuple):
    """The result of the start: values for the report, and the seconds of one step."""

    values: dict[str, Any]
    seconds: float


class Worker:
    """A new process with one contestant, which ends with the `with` block.

    Args:
        log: the file for the standard error of the process.
    """

    def __init__(self, log: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_write_errors_to, initargs=(log,))
        self._steps_per_turn = 1

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def start(self, entry: Entry, problem: Any) -> Started:
        """Make the contestant, measure the memory of its first steps, and check its results.

        Raises:
            AssertionError: its results are wrong.
        """
        return self._pool.submit(start, entry, problem).result()

    def set_steps_per_turn(self, num_steps: int) -> None:
        """Set the number of steps in each turn."""
        self._steps_per_turn = num_steps

    def take_turn(self) -> float:
        """Run one turn, and return the seconds per step."""
        return self._pool.submit(_time, self._steps_per_turn).result()

    def last_values(self) -> dict[str, Any]:
        """Return the values that are measured after all turns, while all contestants are still running."""
        return self._pool.submit(_last_values).result()


def _write_errors_to(log: Path) -> None:
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)


def start(entry: Entry, problem: Any) -> Started:
    """Make, measure and check the contestant in the current process."""
    module, name = entry.contestant.split(".")
    kind = getattr(importlib.import_module(f"{_CONTESTANTS}.{module}"), name)
    kind.warm_up()
    gc.collect()
    with PeakMemory() as peak:
        contestant = _here["contestant"] = kind(problem, entry.task, **entry.options)
        contestant.take_first_steps()
    answer = contestant.answer()
    if answer is not None:
        problem.check(answer)
    values = {"memory_bytes": peak.growth, **contestant.values(entry.options)}
    return Started(values, _time(1))


def _time(num_steps: int) -> float:
    start_time = time.perf_counter()
    _here["contestant"].run(num_steps)
    return (time.perf_counter() - start_time) / num_steps


def _last_values() -> dict[str, Any]:
    values: dict[str, Any] = _here["contestant"].last_values()
    return values
