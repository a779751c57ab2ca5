"""Work done ahead: what is to be read or computed enters; it leaves in order, while threads are at what comes next."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")

MOST_THREADS = 4  # measured: NumPy's calls hold the interpreter's lock too often for more to help


def take_ahead(items: Generator[Argument, None, None]) -> Iterator[Argument]:
    """Takes items from a generator in a thread, one ahead.

    >>> list(take_ahead(letter for letter in "abc"))
    ['a', 'b', 'c']

    Args:
        items: that take time; an error of theirs is raised after the items before it. When nobody goes on taking,
            they are closed, so that threads and files of their own end at once.

    Yields:
        The items.
    """
    end = object()
    with closing(items), ThreadPoolExecutor(1, thread_name_prefix="splitembed") as thread:
        coming = thread.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = thread.submit(next, items, end)
            yield item  # type: ignore[misc]  # `end` alone is no item


def map_ahead(
    function: Callable[[Argument], Result], arguments: Iterable[Argument]
) -> Iterator[tuple[Argument, Result]]:
    """Calls a function on each argument, a few of them ahead, in as many threads as there are processors, up to four.

    >>> list(map_ahead(len, ["the", "of"]))
    [('the', 3), ('of', 2)]

    Args:
        function: NumPy for the most part, so that threads run side by side.
        arguments: taken one by one; an error of theirs is raised after the results that come before it.

    Yields:
        Each argument and its result, in order.
    """
    num_threads = min(_num_processors(), MOST_THREADS)
    waiting: deque[tuple[Argument, Future[Result]]] = deque()
    with ThreadPoolExecutor(num_threads, thread_name_prefix="splitembed") as threads:
        try:
            for argument in arguments:
                waiting.append((argument, threads.submit(function, argument)))
                if len(waiting) > num_threads:
                    yield _first(waiting)
        except Exception:
            yield from _all(waiting)
            raise
        yield from _all(waiting)


def _first(waiting: "deque[tuple[Argument, Future[Result]]]") -> tuple[Argument, Result]:
    argument, future = waiting.popleft()
    return argument, future.result()


def _all(waiting: "deque[tuple[Argument, Future[Result]]]") -> Iterator[tuple[Argument, Result]]:
    while waiting:
        yield _first(waiting)


def _num_processors() -> int:
    """Those that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
