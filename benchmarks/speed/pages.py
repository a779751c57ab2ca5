"""Pages of mapped files: how many this process has, how many it shares, and how to remove them from the cache."""

import os
from pathlib import Path
from typing import Literal


def mapped_bytes() -> int:
    """Return the bytes of file pages that are resident in this process, shared or not.

    Source: `RssFile` in /proc/self/status, proc(5).
    """
    with open("/proc/self/status") as lines:
        return next(_bytes(line) for line in lines if line.startswith("RssFile:"))


def file_bytes(path: Path, measure: Literal["Rss", "Pss"]) -> int:
    """Return the bytes of a file's pages in this process: all of them, or each divided by the processes that have it.

    The first measure is "Rss", the second "Pss".

    Source: /proc/self/smaps, proc(5).
    """
    total, in_file = 0, False
    with open("/proc/self/smaps") as lines:
        for line in lines:
            # A mapping starts with a line of its addresses, other fields, and its path.
            if "-" in line.split(" ", 1)[0]:
                in_file = line.rstrip("\n").endswith(str(path))
            elif in_file and line.startswith(f"{measure}:"):
                total += _bytes(line)
    return total


def drop_from_cache(path: Path) -> None:
    """Ask the system to remove a file's pages from its cache. Pages that a process has mapped stay."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def _bytes(line: str) -> int:
    """Return the bytes of a line such as `RssFile:     1234 kB`."""
    return int(line.split()[1]) * 1024
