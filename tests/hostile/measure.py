"""Read the cases in one process, and print a line of JSON for each: its error, its cost and the files that it opened.

Run as `python -m tests.hostile.measure [NAME ...]`.
"""

import json
import os
import resource
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from splitembed.errors import SplitEmbedError
from tests.hostile.cases import Case, all_cases

STATUS, REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_bytes() -> int:
    """Return the peak of the resident memory since `reset_peak`; 0 where the system does not say it."""
    lines = STATUS.read_text().splitlines() if STATUS.exists() else []
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")), 0)


def reset_peak() -> None:
    if REFS.exists():
        REFS.write_text("5")


def cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def outcome(case: Case, path: Path) -> dict[str, Any]:
    """Return the error of a case. One that is not refused, or by another error, has `wrong`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = case.read(path)
    except (SplitEmbedError, OSError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    except BaseException as error:
        return {"wrong": f"{type(error).__name__}: {error}"[:300]}
    return {"wrong": f"read as {found!r}"[:300]}


class Opened:
    """The files outside a folder and outside Python's own folders that the audited calls opened."""

    def __init__(self) -> None:
        self.folder, self.paths = "", []
        self._known = (sys.prefix, sys.base_prefix, os.getcwd(), "/proc/", tempfile.gettempdir() + "/tmp")

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and self.folder and isinstance(arguments[0], (str, bytes)):
            path = os.path.abspath(os.fsdecode(arguments[0]))
            # Anonymous temporary files open their folder.
            if path not in (tempfile.gettempdir(), os.devnull) and not path.startswith((self.folder, *self._known)):
                self.paths.append(path)


def main(names: list[str]) -> None:
    opened = Opened()
    sys.addaudithook(opened.audit)
    with tempfile.TemporaryDirectory(dir=os.environ.get("HOSTILE_FOLDER")) as folder:
        written = []
        for number, case in enumerate(all_cases()):
            if not names or case.name in names:
                own = Path(folder) / str(number)
                own.mkdir()
                written.append((case, case.write(own)))
        # The first reader imports libraries.
        outcome(*written[0])
        for case, path in written:
            reset_peak()
            base, start = peak_bytes(), cpu_seconds()
            opened.folder, opened.paths = str(path.parent), []
            found = outcome(case, path)
            opened.folder = ""
            cost = {"seconds": round(cpu_seconds() - start, 3), "bytes": peak_bytes() - base, "opened": opened.paths}
            print(json.dumps({"name": case.name, **found, **cost}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
