"""Pages of files: what of them this process has mapped, alone or with others; and how to begin with a cold cache."""

import os
from pathlib import Path
from typing import Literal


def mapped_bytes() -> int:
    """Bytes of file pages that are resident in this process, whoever else has them.

    Source: `RssFile` in /proc/self/status, proc(5).
    """
    with open("/proc/self/status") as lines:
        return next(_bytes(line) for line in lines if line.startswith("RssFile:"))


def file_bytes(path: Path, measure: Literal["Rss", "Pss"]) -> int:
    """Bytes of the file's pages in this process: "Rss" all, "Pss" each divided by the number of processes that have it.

    Source: /proc/self/smaps, proc(5).
    """
    total, in_file = 0, False
    with open("/proc/self/smaps") as lines:
        for line in lines:
            if "-" in line.split(" ", 1)[0]:  # the head of a mapping: its addresses, ..., its path
                in_file = line.rstrip("\n").endswith(str(path))
            elif in_file and line.startswith(f"{measure}:"):
                total += _bytes(line)
    return total


def drop_from_cache(path: Path) -> None:
    """Asks the system to forget the file's pages; those that a process has mapped stay."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def _bytes(line: str) -> int:
    """The value of a line such as `RssFile:     1234 kB`."""
    return int(line.split()[1]) * 1024
