"""HDF5 files in a child process: crashes, hangs and pipes become errors that name the file."""

import contextlib
import os
import sys
import time
from pathlib import Path

import h5py
import pytest

from splitembed.errors import VectorFormatError
from splitembed.foreign import hdf5_file
from splitembed.foreign.hdf5_file import ForeignHdf5
from splitembed.vectors import read_vectors

FILES = Path(__file__).parents[1] / "hostile" / "files"
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the code of a process that a signal ended")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("crash.h5", "the child process that reads it ended with code -11", marks=ON_LINUX),
        pytest.param("hang.h5", "the child process that reads it ended with code -24", marks=ON_LINUX),
        ("memory.h5", "memory allocation failed"),
        ("encoding.h5", "Unknown string encoding"),
        ("external-storage.h5", "'words', with external storage"),
    ],
)
def test_hostile_files_are_refused_by_name(name, message):
    before = time.process_time()
    with pytest.raises(VectorFormatError, match=f"{name}: .*{message}"):
        read_vectors(FILES / name, datasets=("words", "matrix"))
    assert time.process_time() - before < 1


def test_a_child_process_that_waits_is_ended(tmp_path, monkeypatch):
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["rows"] = [1.0]
    monkeypatch.setattr(hdf5_file, "_SECONDS", 0.01)
    with contextlib.ExitStack() as stack, pytest.raises(VectorFormatError, match=r"v\.h5: .*ended with code"):
        ForeignHdf5(str(tmp_path / "v.h5"), stack)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "v.h5")
    with contextlib.ExitStack() as stack, pytest.raises(VectorFormatError, match="found a pipe or a device"):
        ForeignHdf5(str(tmp_path / "v.h5"), stack)
