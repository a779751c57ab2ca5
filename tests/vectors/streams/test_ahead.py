"""Work ahead in threads: results and errors in order, and only a few items ahead."""

import itertools
import os
import threading

import pytest

from splitembed.vectors.streams.ahead import map_ahead, take_ahead


def failing(items, error):
    yield from items
    raise error


def each(items):
    yield from items


def no_thread_is_left():
    return not any(thread.name.startswith("splitembed") for thread in threading.enumerate())


@pytest.mark.parametrize("num_processors", [1, 2, 64])
def test_results_come_in_order(monkeypatch, num_processors):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(num_processors), raising=False)
    assert list(map_ahead(str, range(100))) == [(number, str(number)) for number in range(100)]
    assert list(take_ahead(each(range(100)))) == list(range(100))


def test_no_items():
    assert list(map_ahead(str, [])) == list(take_ahead(each([]))) == []


def test_items_that_look_like_the_end():
    assert list(take_ahead(each([None, b"", 0]))) == [None, b"", 0]


def test_an_error_of_the_items_is_raised_after_the_results_before_it():
    for results in (map_ahead(int, failing("123", OSError("disk"))), take_ahead(failing("123", OSError("disk")))):
        assert len(list(itertools.islice(results, 3))) == 3
        with pytest.raises(OSError, match="disk"):
            next(results)


def test_an_error_of_the_function_is_raised_in_order():
    results = map_ahead(int, ["1", "x", "3"])
    assert next(results) == ("1", 1)
    with pytest.raises(ValueError, match="'x'"):
        next(results)


@pytest.mark.parametrize("take", [lambda items: map_ahead(str, items), take_ahead])
def test_only_a_few_are_taken_ahead_and_threads_end(take):
    taken = []
    results = take(taken.append(number) or number for number in range(1000))
    next(results)
    assert len(taken) <= 6
    results.close()
    assert no_thread_is_left()


def test_abandoned_items_are_closed_with_their_threads():
    closed = []

    def items():
        try:
            yield from map_ahead(str, range(1000))
        finally:
            closed.append(True)

    results = take_ahead(items())
    next(results)
    results.close()
    assert closed == [True] and no_thread_is_left()


def test_an_interrupt_of_the_caller_ends_the_threads():
    def take_some():
        for number, _ in take_ahead(map_ahead(str, range(1000))):
            if number == 5:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take_some()
    assert no_thread_is_left()
