"""No other file is opened for a foreign HDF5 file, seen from the system calls of the process and its child."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.hostile import cases

ROOT = Path(__file__).parents[2]
NAMES = ["external-link-matrix.h5", "external-matrix-matrix.h5", "virtual-matrix.h5", "soft-link-matrix.h5"]
READ = """
import sys
from splitembed.errors import VectorFormatError
from splitembed.vectors import read_vectors
try:
    print(read_vectors(sys.argv[1], datasets=("words", "matrix")).words)
except VectorFormatError as error:
    print("refused", error)
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("name", [*NAMES, "external-storage.h5"])
def test_only_the_file_itself_is_opened(tmp_path, name):
    path = next(case for case in cases.all_cases() if case.name == name).write(tmp_path)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["matrix"] = np.ones((2, 2), np.float32)
    log = tmp_path / "log"
    command = ["strace", "-f", "-qq", "-e", "trace=open,openat,openat2", "-o", log, sys.executable, "-c", READ, path]
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.startswith("refused"), done
    opened = re.findall(r'open\w*\([^"]*"([^"]+)"', log.read_text())
    theirs = {name for name in opened if name.startswith((str(tmp_path), "/etc/host")) or name == "other.h5"}
    assert theirs == {str(path)}
    # The log holds the calls of both processes.
    assert opened.count(str(path)) >= 2
