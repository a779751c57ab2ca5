"""A contestant in a process of its own: an entry and a problem go in; what it costs comes out.

Nothing that others import or allocate is in its memory, and the process that asks holds no framework at all.
"""

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
_here: dict[str, Any] = {}  # in the worker's process: the contestant


class Started(NamedTuple):
    """What a contestant came to when it was made and checked: values for the report, and seconds of a warm step."""

    values: dict[str, Any]
    seconds: float


class Worker:
    """A fresh process that holds one contestant until the block ends.

    Args:
        log: the file that gets what frameworks write on standard error.
    """

    def __init__(self, log: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_write_errors_to, initargs=(log,))
        self._steps_a_turn = 1

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def start(self, entry: Entry, problem: Any) -> Started:
        """Makes the contestant, measures its memory over its first steps, and checks what it computes.

        Raises:
            AssertionError: it computes something else than the problem asks.
        """
        return self._pool.submit(start, entry, problem).result()

    def set_steps_a_turn(self, num_steps: int) -> None:
        """Sets how many steps the contestant runs at each of its turns."""
        self._steps_a_turn = num_steps

    def take_turn(self) -> float:
        """Runs the steps of one turn, and returns the seconds that one took."""
        return self._pool.submit(_time, self._steps_a_turn).result()

    def last_values(self) -> dict[str, Any]:
        """Asks for what can be measured only while all contestants are there."""
        return self._pool.submit(_last_values).result()


def _write_errors_to(log: Path) -> None:
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)


def start(entry: Entry, problem: Any) -> Started:
    """Does `Worker.start` in the process at hand."""
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
    began = time.perf_counter()
    _here["contestant"].run(num_steps)
    return (time.perf_counter() - began) / num_steps


def _last_values() -> dict[str, Any]:
    values: dict[str, Any] = _here["contestant"].last_values()
    return values
