"""Opening by the head alone: no HDF5 library is loaded, no other file opened. Refusals are in test_refusals."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from splitembed.tables import format_of, is_rewritten, write_frozen, write_trainable

ROOT = Path(__file__).parents[2]
OPENED = """
import sys
from splitembed.split.table import SplitTable
from splitembed.tables import open_frozen, open_trainable
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event in ("open", "os.listdir") else None)
split = SplitTable.open(sys.argv[1], verify=True)
print(list(split.vocabulary), split.combine().tolist(), list(split.table.words))
print(sorted({name.rpartition("/")[2] for name in opened}), "h5py" in sys.modules)
"""


def test_no_hdf5_library_is_loaded_and_no_other_file_opened(tmp_path):
    fingerprint = write_frozen(tmp_path / "frozen.h5", np.eye(2, dtype=np.float32), words=["a", "b"])
    write_trainable(tmp_path / "trainable.h5", [[5, 6]], [0, -1], vocabulary=["a", "c"], frozen_fingerprint=fingerprint)
    done = subprocess.run([sys.executable, "-c", OPENED, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    first, second = done.stdout.splitlines()
    assert first == "['a', 'c'] [[1.0, 0.0], [5.0, 6.0]] ['a', 'b']"
    assert second == "['frozen.h5', 'trainable.h5'] False"


def test_the_format_is_that_of_the_head(tmp_path):
    write_frozen(tmp_path / "frozen.h5", np.eye(2, dtype=np.float32))
    (tmp_path / "text").write_text("the 1 2")
    assert [format_of(tmp_path / name) for name in ("frozen.h5", "text", "none")] == ["splitembed.frozen", None, None]


@pytest.mark.parametrize("change", ["none", "bytes at an end", "longer", "shorter", "other"])
def test_a_rewritten_file_is_recognised(tmp_path, change):
    path = tmp_path / "frozen.h5"
    write_frozen(path, np.eye(2, dtype=np.float32))
    content = bytearray(path.read_bytes())
    if change == "bytes at an end":
        content[-1] ^= 1
    path.write_bytes({"longer": content + b"\0", "shorter": content[:-1], "other": b"text"}.get(change, content))
    assert is_rewritten(path) == (change in ("bytes at an end", "longer", "shorter"))


def test_no_descriptor_stays_open_but_that_of_a_map(tmp_path):
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("counts in /proc")
    write_frozen(tmp_path / "frozen.h5", np.eye(2, dtype=np.float32), words=["a", "b"])
    from splitembed.tables import open_frozen

    before = len(os.listdir("/proc/self/fd"))
    read = [open_frozen(tmp_path / "frozen.h5", memory_map=False) for _ in range(5)]
    assert len(os.listdir("/proc/self/fd")) == before
    mapped = [open_frozen(tmp_path / "frozen.h5") for _ in range(5)]
    assert len(os.listdir("/proc/self/fd")) == before + 5
    assert read[0].words == mapped[0].words
