"""Memory of arrays: aligned, shared and kept alive."""

import gc

import numpy as np
import pytest

from splitembed.arrays import ALIGNMENT, aligned_empty, as_aligned, as_read_only, is_aligned, without_read_only_flag


def at_offset(array: np.ndarray, offset: int) -> np.ndarray:
    """Return a contiguous copy that starts `offset` bytes after a multiple of 64."""
    memory = aligned_empty((array.nbytes + ALIGNMENT,), np.uint8)[offset : offset + array.nbytes]
    copy = memory.view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


VALUES = np.arange(24, dtype=np.float32).reshape(6, 4)
# Arrays that TensorFlow cannot use without a copy.
ODD = {
    "misaligned": lambda: at_offset(VALUES, 4),
    "foreign-endian": lambda: at_offset(VALUES.astype(VALUES.dtype.newbyteorder()), 0),
    "Fortran order": lambda: np.asfortranarray(VALUES),
    "strided": lambda: at_offset(np.repeat(VALUES, 2, axis=1), 0)[:, ::2],
    "reversed": lambda: at_offset(VALUES[::-1], 0)[::-1],
}


@pytest.mark.parametrize(
    ("shape", "dtype"), [((), ">f8"), ((0,), np.int8), ((3, 0), np.float32), ((7, 5), np.uint16), ((2, 3, 4), np.int64)]
)
def test_aligned_empty_is_aligned(shape, dtype):
    array = aligned_empty(shape, dtype)
    assert array.shape == shape and array.dtype == np.dtype(dtype)
    assert array.flags.c_contiguous and array.flags.writeable
    assert array.ctypes.data % ALIGNMENT == 0 or not array.size


@pytest.mark.parametrize("kind", ODD)
def test_odd_memory_is_copied_once(kind):
    array = ODD[kind]()
    assert not is_aligned(array)
    copy = as_aligned(array)
    assert is_aligned(copy) and not np.shares_memory(copy, array)
    np.testing.assert_array_equal(copy, VALUES)
    assert as_aligned(copy) is copy


@pytest.mark.parametrize("offset", [0, 4, 32, 60])
def test_only_multiples_of_64_are_aligned(offset):
    assert is_aligned(at_offset(VALUES, offset)) == (offset == 0)


def test_read_only_view_shares_memory_and_leaves_the_original_writable():
    array = np.zeros(3)
    view = as_read_only(array)
    array[0] = 1
    assert view[0] == 1 and array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 2


@pytest.mark.parametrize("mode", ["r", "c", None])
def test_flag_is_lifted_without_a_copy(tmp_path, mode):
    VALUES.tofile(tmp_path / "rows")
    array = as_read_only(np.memmap(tmp_path / "rows", np.float32, mode, shape=VALUES.shape) if mode else VALUES.copy())
    alias = without_read_only_flag(array)
    assert alias.flags.writeable and not array.flags.writeable and np.shares_memory(alias, array)
    del array
    gc.collect()
    # The memory is still valid.
    np.testing.assert_array_equal(alias, VALUES)
