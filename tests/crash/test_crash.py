"""Crashes and full disks, in short forms of `make crash`."""

import sys

import pytest

from tests.crash import scenarios

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kills, limits and /proc of Linux")


def test_a_killed_writer_leaves_one_split_or_the_other(tmp_path):
    assert sum(scenarios.kill_writers(tmp_path, 6)) == 6


def test_readers_beside_writers_see_one_split_or_the_other(tmp_path):
    assert sum(scenarios.write_and_read(tmp_path, 1.5, readers=3)) > 3


def test_a_full_disk_leaves_the_old_split(tmp_path):
    assert scenarios.fill_disk(tmp_path)


def test_forked_children_read_the_same_rows(tmp_path):
    scenarios.fork_after_open(tmp_path, 2)


def test_threads_share_a_layer():
    scenarios.call_in_threads(50)


@pytest.mark.slow
def test_a_fit_that_is_killed_and_resumed_ends_like_another(tmp_path):
    scenarios.kill_and_resume(tmp_path)


def test_many_steps_need_no_more_memory():
    grown, traces = scenarios.train_long(1_500)
    assert traces == 0 and grown < 20_000_000
