"""Code run in a new Python process."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_fresh(code: str, *arguments: str | Path, importable: tuple[Path, ...] = (ROOT,)) -> str:
    """Run code in a new interpreter with arguments in `sys.argv[1:]`, and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, importable)), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
