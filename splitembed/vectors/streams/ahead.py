"""Read and compute ahead in threads, with the results in order."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")

# Measured: NumPy's calls hold the interpreter's lock too often for more threads to help.
MAX_THREADS = 4


def take_ahead(items: Generator[Argument, None, None]) -> Iterator[Argument]:
    """Run a generator in a thread, one item ahead of the caller.

    >>> list(take_ahead(letter for letter in "abc"))
    ['a', 'b', 'c']

    Args:
        items: a slow generator. An error in it is raised after the items before the error. The generator is closed
            when the caller stops early, so that its threads and files are closed at once.

    Yields:
        The items.
    """
    end = object()
    with closing(items), ThreadPoolExecutor(1, thread_name_prefix="splitembed") as thread:
        future = thread.submit(next, items, end)
        while (item := future.result()) is not end:
            future = thread.submit(next, items, end)
            yield item  # type: ignore[misc]


def map_ahead(
    function: Callable[[Argument], Result], arguments: Iterable[Argument]
) -> Iterator[tuple[Argument, Result]]:
    """Call a function on each argument in threads, a few arguments ahead of the caller.

    There are as many threads as processors, up to four.

    >>> list(map_ahead(len, ["the", "of"]))
    [('the', 3), ('of', 2)]

    Args:
        function: mostly NumPy, which releases the interpreter's lock, so that threads run in parallel.
        arguments: an iterable. An error in it is raised after the results before the error.

    Yields:
        Each argument and its result, in order.
    """
    num_threads = min(_num_processors(), MAX_THREADS)
    pending: deque[tuple[Argument, Future[Result]]] = deque()
    with ThreadPoolExecutor(num_threads, thread_name_prefix="splitembed") as threads:
        try:
            for argument in arguments:
                pending.append((argument, threads.submit(function, argument)))
                if len(pending) > num_threads:
                    yield _take_first(pending)
        except Exception:
            yield from _take_all(pending)
            raise
        yield from _take_all(pending)


def _take_first(pending: "deque[tuple[Argument, Future[Result]]]") -> tuple[Argument, Result]:
    argument, future = pending.popleft()
    return argument, future.result()


def _take_all(pending: "deque[tuple[Argument, Future[Result]]]") -> Iterator[tuple[Argument, Result]]:
    while pending:
        yield _take_first(pending)


def _num_processors() -> int:
    """Return the number of processors that this process may use, or of all where the system does not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
