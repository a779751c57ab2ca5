"""A fresh Python: code goes in, what it printed comes out."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_fresh(code: str, *arguments: str | Path, importable: tuple[Path, ...] = (ROOT,)) -> str:
    """Runs code in a new interpreter, `sys.argv[1:]` its arguments, and tells what went wrong if it fails."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, importable)), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
