"""`make crash`: kill writers, fill the disk, read beside writers, train for long; print what was found."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.crash import scenarios


def main() -> None:
    """Run every scenario at full length: 20 minutes."""
    tasks: dict[str, Callable[[Path], object]] = {
        "200 kills of a writer; then the folder held split 0 and 1 so often": lambda path: scenarios.kill_writers(
            path, 200
        ),
        "60 s of two writers and eight readers, who read split 0 and 1 so often": lambda path: scenarios.write_and_read(
            path, 60
        ),
        "the disk was full, by": scenarios.fill_disk,
        "forked children": scenarios.fork_after_open,
        "eight threads on one layer": lambda _: scenarios.call_in_threads(5_000),
        "fit killed twice and resumed equals an undisturbed run": scenarios.kill_and_resume,
        "100,000 steps: bytes that the memory grew, and further traces": lambda _: scenarios.train_long(100_000),
    }
    for name, run in tasks.items():
        with tempfile.TemporaryDirectory() as folder:
            print(f"{name}: {run(Path(folder)) or 'no fault'}", flush=True)


if __name__ == "__main__":
    main()
