"""Both views of a file that is written: that of its head, and that of HDF5."""

import h5py
import numpy as np
import pytest

from splitembed.errors import SplitError
from splitembed.tables import fingerprints
from splitembed.tables.fields import FROZEN_FORMAT
from splitembed.tables.fingerprints import Fingerprint
from splitembed.tables.table_file import reading
from splitembed.tables.write_table import publishing

NUMBERS = np.arange(35, dtype=np.float32).reshape(7, 5)


def whole(array):
    fingerprint = Fingerprint()
    fingerprint.add(array)
    return fingerprint.finish()


@pytest.mark.parametrize("block_bytes", [48, 1 << 22])
@pytest.mark.parametrize("array", [NUMBERS, NUMBERS.astype(">f4"), NUMBERS[::2], np.arange(20_000), NUMBERS[:0]])
def test_arrays_are_the_same_for_hdf5_and_for_the_head(tmp_path, monkeypatch, array, block_bytes):
    monkeypatch.setattr(fingerprints, "BLOCK_BYTES", block_bytes)
    fingerprint = Fingerprint()
    with publishing(tmp_path / "t.h5", FROZEN_FORMAT, alignment=4096) as writer:
        writer.array("group/rows", array, fingerprint)
        writer.array("other", np.arange(3, dtype=np.uint8))
    assert fingerprint.finish() == whole(array)
    dtypes = (np.dtype(np.float32), np.dtype(np.int64))
    for memory_map in (True, False):
        with reading(tmp_path / "t.h5", FROZEN_FORMAT, memory_map) as file:
            found, is_view = file.array("group/rows", dtypes, array.ndim, can_map=True)
            file.check_whole("group/rows", found)
        np.testing.assert_array_equal(found, array)
        assert is_view == (memory_map and len(array) > 0)
    with h5py.File(tmp_path / "t.h5") as file:
        np.testing.assert_array_equal(file["group/rows"][:], array)
        assert file["group/rows"].dtype.str.startswith("<") and file["group/rows"].chunks is None
        assert file.userblock_size == 4096


@pytest.mark.parametrize("text", ["", "plain", "é😀\n", "\udcff/bad name", "x" * 10_000])
def test_attributes_are_the_same_for_hdf5_and_for_the_head(tmp_path, text):
    with publishing(tmp_path / "t.h5", FROZEN_FORMAT, alignment=64, source=text) as writer:
        writer.integer("dim", 7)
    with reading(tmp_path / "t.h5", FROZEN_FORMAT) as file:
        assert (file.text("source"), file.integer("dim"), file.index("zero_row", 5)) == (text, 7, None)
    with h5py.File(tmp_path / "t.h5") as file:
        assert file.attrs["source"].decode("utf-8", "surrogateescape") == text
        assert (file.attrs["dim"], file.attrs["dim"].dtype) == (7, np.int64)


@pytest.mark.parametrize(("text", "message"), [("a\0b", "must not contain NUL"), ("x" * (1 << 20), "source: too long")])
def test_text_that_cannot_be_stored_is_refused(tmp_path, text, message):
    with (
        pytest.raises(SplitError, match=message),
        publishing(tmp_path / "t.h5", FROZEN_FORMAT, alignment=64, source=text),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
