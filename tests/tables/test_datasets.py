"""Compressed datasets: read if all numbers are stored, else refused before memory is allocated."""

import subprocess
import sys
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

from splitembed.errors import TableFormatError
from splitembed.tables import open_trainable, write_trainable
from splitembed.tables.datasets import fault_of_chunks

ROOT = Path(__file__).parents[2]
FROZEN = "sha256:" + "0" * 64
NUMBERS = np.arange(3000, dtype=np.int32).reshape(60, 50)
# Bytes.
CHUNK = 16 * 20 * 4


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "some.h5", "w", libver=("v108", "v108")) as file:
        yield file


def filtered(file, *, fill=True, **layout):
    """Numbers in 4 x 3 chunks, the last ones beyond the edge."""
    layout = {"chunks": (16, 20), "compression": "gzip", **layout}
    return file.create_dataset("some", NUMBERS.shape, "<i4", data=NUMBERS if fill else None, **layout)


@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"shuffle": True},
        {"shuffle": True, "fletcher32": True},
        {"compression": None, "shuffle": True},
        {"compression": None, "fletcher32": True},
    ],
)
def test_filters_that_other_tools_use_are_read(file, layout):
    dataset = filtered(file, **layout)
    assert fault_of_chunks(dataset) == ""
    assert (dataset[:] == NUMBERS).all()


def test_a_checksum_below_the_compression_is_read(file):
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk((16, 20))
    properties.set_fletcher32()
    properties.set_deflate(4)
    space = h5py.h5s.create_simple(NUMBERS.shape)
    dataset = h5py.Dataset(h5py.h5d.create(file.id, b"some", h5py.h5t.NATIVE_INT32, space, properties))
    dataset[:] = NUMBERS
    assert fault_of_chunks(dataset) == ""


@pytest.mark.parametrize("layout", [{"compression": "lzf"}, {"scaleoffset": 0, "compression": None}])
def test_filters_that_cannot_be_checked_are_refused(file, layout):
    assert "expected only gzip, shuffle and fletcher32" in fault_of_chunks(filtered(file, **layout))


@pytest.mark.parametrize(
    "stored",
    [
        b"noise",
        # HDF5 would read beyond its buffer and crash.
        zlib.compress(bytes(CHUNK - 4)),
        zlib.compress(bytes(CHUNK + 4)),
        # HDF5 would allocate all of them.
        zlib.compress(bytes(200_000_000)),
        zlib.compress(bytes(CHUNK))[:-1],
        zlib.compress(bytes(CHUNK))[:-1] + b"\xff",
    ],
    ids=["noise", "short", "long", "much too long", "cut", "wrong sum"],
)
def test_a_chunk_of_the_wrong_length_is_refused(file, stored):
    dataset = filtered(file)
    dataset.id.write_direct_chunk((16, 20), stored)
    assert fault_of_chunks(dataset) == "its chunk at (16, 20) is damaged."
    dataset.id.write_direct_chunk((16, 20), zlib.compress(bytes(CHUNK)))
    assert fault_of_chunks(dataset) == ""


def test_a_chunk_stored_without_its_filters_is_refused(file):
    dataset = filtered(file, shuffle=True)
    dataset.id.write_direct_chunk((0, 0), bytes(CHUNK), filter_mask=3)
    assert fault_of_chunks(dataset) == "its chunks are not stored with its filters, or are larger than the file."


def test_a_chunk_that_was_never_written_is_refused(file):
    dataset = filtered(file, fill=False)
    assert fault_of_chunks(dataset) == "0 of its 12 chunks were written."
    dataset[:16, :20] = 1
    assert fault_of_chunks(dataset) == "1 of its 12 chunks were written."


@pytest.mark.parametrize("num_tokens", [2**20, 2**40, 2**62])
def test_a_remap_with_a_huge_shape_takes_no_memory(tmp_path, num_tokens):
    path = tmp_path / "trainable.h5"
    write_trainable(path, [[1.0]], np.zeros(8, int), frozen_fingerprint=FROZEN)
    with h5py.File(path, "r+") as file:
        del file["remap"]
        remap = file.create_dataset("remap", (num_tokens,), "i4", chunks=(2**18,), compression="gzip", shuffle=True)
        remap[: 2**18] = 0
    assert path.stat().st_size < 10_000
    with pytest.raises(
        TableFormatError, match=rf"`remap` has shape \({num_tokens},\): 1 of its {num_tokens >> 18} chunks"
    ):
        open_trainable(path)


# Run in another process, so that a crash of HDF5 shows as a negative exit status without a last line.
SWEEP = """
import sys
from splitembed.errors import TableFormatError
from splitembed.tables import open_trainable

path, changed = sys.argv[1:]
content, whole, refused, count = open(path, "rb").read(), open_trainable(path), 0, 0
for position in range(len(content)):
    if content[position] and position % 2 or position % 199 == 0:
        flipped = bytearray(content)
        flipped[position] ^= 1 << position % 8
        open(changed, "wb").write(flipped)
        count += 1
        for verify in (True, False):
            try:
                found = open_trainable(changed, verify=verify)
            except TableFormatError as error:
                refused += verify
            else:
                assert not verify or (found.remap == whole.remap).all(), position
print("done", count, refused)
"""


def test_a_flipped_bit_of_a_compressed_remap_is_found_or_harmless(tmp_path):
    remap = np.arange(5000)
    remap[-10:] = ~np.arange(10)
    write_trainable(tmp_path / "trainable.h5", np.ones((10, 1)), remap, frozen_fingerprint=FROZEN)
    paths = [str(tmp_path / name) for name in ("trainable.h5", "changed.h5")]
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", SWEEP, *paths],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    count, refused = map(int, done.stdout.removeprefix("done ").split())
    assert count > 500
    assert refused > count / 3
