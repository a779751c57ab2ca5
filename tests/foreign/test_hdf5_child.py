"""The program of the child process: what it refuses before it reads, called in this process on files made here."""

import h5py
import numpy as np
import pytest

from splitembed.foreign import hdf5_child
from splitembed.foreign.hdf5_child import RefusedError


@pytest.fixture
def file(tmp_path):
    (tmp_path / "secret").write_bytes(b"hostname")
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["rows"] = np.ones((2, 2))
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["folder/rows"] = np.arange(4.0).reshape(2, 2)
        file["soft"] = h5py.SoftLink("/folder")
        file["outside"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "rows")
        file.create_dataset("external", (8,), "S1", external=[(str(tmp_path / "secret"), 0, 8)])
        layout = h5py.VirtualLayout((2, 2), "f8")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "rows", (2, 2))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("unwritten", (2**36, 2), "f4")
        # One chunk is written of many.
        file.create_dataset("sparse", (2**36, 2), "f4", chunks=(16, 2))[:16] = 1
        file.create_dataset("chunk", (2**27, 1), "f4", chunks=(2**27, 1), compression="gzip")
    with h5py.File(tmp_path / "v.h5", "r") as opened:
        yield opened


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("soft", "a link at 'soft'"),
        ("soft/rows", "a link at 'soft'"),
        ("outside", "a link at 'outside'"),
        ("external", "external storage"),
        ("virtual", "a virtual dataset, 'virtual'"),
        ("unwritten", "never written"),
        ("chunk", "never written"),
        ("sparse", "of 549755813888 bytes in a file of 10000"),
    ],
)
def test_content_elsewhere_or_never_written_is_refused(file, name, message):
    with pytest.raises(RefusedError, match=message):
        hdf5_child.answer(file, {"do": "slice", "name": name, "start": 0, "stop": 1}, 10_000)


def test_a_dataset_of_the_file_is_read(file):
    described, _ = hdf5_child.answer(file, {"do": "describe", "name": "folder/rows"}, 10_000)
    assert described == {"shape": (2, 2), "dtype": "<f8", "named": "float64", "is_text": False}
    head, content = hdf5_child.answer(file, {"do": "slice", "name": "folder/rows", "start": 1, "stop": 2}, 10_000)
    assert head == {"dtype": "<f8", "shape": (1, 2)} and np.frombuffer(content).tolist() == [2, 3]


def test_a_missing_name_describes_nothing(file):
    assert hdf5_child.answer(file, {"do": "describe", "name": "folder/none"}, 10_000) == ({}, b"")
