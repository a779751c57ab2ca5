"""The counts of file pages, on files of known size."""

import mmap
import sys

import numpy as np
import pytest

from benchmarks.speed.pages import drop_from_cache, file_bytes, mapped_bytes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

NUM_PAGES = 4096


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "pages"
    path.write_bytes(bytes(NUM_PAGES * mmap.PAGESIZE))
    return path


def test_touched_pages_are_counted(path):
    before = mapped_bytes()
    array = np.memmap(path, np.uint8, "r")
    assert file_bytes(path, "Rss") == 0
    array.max()
    assert file_bytes(path, "Rss") == path.stat().st_size
    # No other process shares the pages.
    assert file_bytes(path, "Pss") == path.stat().st_size
    assert mapped_bytes() - before >= path.stat().st_size


def test_another_file_is_not_counted(path):
    array = np.memmap(path, np.uint8, "r")
    array.max()
    assert file_bytes(path.with_name("ages"), "Rss") == 0
    assert file_bytes(path.with_name("other"), "Rss") == 0


def test_a_file_dropped_from_the_cache_still_reads_the_same(path):
    path.write_bytes(b"x" * mmap.PAGESIZE)
    drop_from_cache(path)
    assert path.read_bytes() == b"x" * mmap.PAGESIZE
