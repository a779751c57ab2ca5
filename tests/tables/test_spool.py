"""Writing of datasets: in blocks, little-endian, with the same fingerprint as the whole array."""

import io
import os

import h5py
import numpy as np
import pytest

from splitembed.tables import fingerprints
from splitembed.tables.fingerprints import Fingerprint
from splitembed.tables.spool import Spool, store_array

NUMBERS = np.arange(35, dtype=np.float32).reshape(7, 5)


@pytest.fixture
def file():
    with h5py.File(io.BytesIO(), "w") as file:
        yield file


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(fingerprints, "BLOCK_BYTES", 48)


def whole(array):
    fingerprint = Fingerprint()
    fingerprint.add(array)
    return fingerprint.finish()


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "u2"])
def test_an_array_is_stored_in_blocks(file, dtype):
    array, fingerprint = NUMBERS.astype(dtype), Fingerprint()
    store_array(file, "group/rows", array, fingerprint)
    np.testing.assert_array_equal(file["group/rows"][:], NUMBERS)
    assert file["group/rows"].dtype == array.dtype.newbyteorder("<") and file["group/rows"].chunks is None
    assert fingerprint.finish() == whole(array)


def test_a_compressed_array_has_filters(file):
    array = np.arange(1000, dtype=np.int32)
    store_array(file, "remap", array, Fingerprint(), compressed=True)
    assert (file["remap"].compression, file["remap"].shuffle) == ("gzip", True)
    np.testing.assert_array_equal(file["remap"][:], array)


@pytest.mark.parametrize("num_rows", [0, 1, 7])
def test_spooled_blocks_become_one_dataset(tmp_path, file, num_rows):
    spool, fingerprint = Spool(str(tmp_path), np.float32), Fingerprint()
    for row in NUMBERS[:num_rows]:
        spool.append(row.astype(np.float64))
    assert os.listdir(tmp_path) == []
    spool.store(file, "rows", (5,), fingerprint)
    spool.close()
    np.testing.assert_array_equal(file["rows"][:], NUMBERS[:num_rows])
    assert file["rows"].shape == (num_rows, 5) and fingerprint.finish() == whole(NUMBERS[:num_rows])


def test_single_numbers_have_no_row_shape(tmp_path, file):
    spool = Spool(str(tmp_path), "u8")
    spool.append(np.array([3, 4]))
    spool.store(file, "offsets", (), None)
    spool.close()
    assert file["offsets"][:].tolist() == [3, 4]
