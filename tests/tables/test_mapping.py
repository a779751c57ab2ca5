"""Memory mapping: the right values at a multiple of 64 bytes for every layout of the file."""

import mmap
import os
import sys
import time
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

from splitembed.errors import TableFormatError
from splitembed.tables import fingerprint_rows, open_frozen, open_trainable, write_frozen, write_trainable
from splitembed.tables import mapping as mapping_module
from tests.helpers.bits import same_bits

ROWS = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)


def write_by_hand(path, create, **options):
    """Write a frozen.h5 whose dataset `vectors` is made by `create(file)`."""
    options = {"libver": ("v108", "v108"), **options}
    with h5py.File(path, "w", **options) as file:
        file.attrs.update(format="splitembed.frozen", format_version=1, dtype="float32", dim=3, source="by hand")
        file.attrs.update(fingerprint=fingerprint_rows(ROWS), words_fingerprint="")
        create(file)


def plain(dtype="<f4"):
    return lambda file: file.create_dataset("vectors", data=ROWS.astype(dtype))


def misaligned(file):
    file.create_dataset("vectors", data=ROWS)
    assert file["vectors"].id.get_offset() % 64


def compact(file):
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.COMPACT)
    space, kind = h5py.h5s.create_simple(ROWS.shape), h5py.h5t.IEEE_F32LE
    h5py.h5d.create(file.id, b"vectors", kind, space, properties).write(h5py.h5s.ALL, h5py.h5s.ALL, ROWS)


ALIGNED = {"alignment_threshold": 1, "alignment_interval": 64}


@pytest.mark.parametrize(
    ("create", "options", "mapped"),
    [
        (plain(), ALIGNED, True),
        (plain(">f4"), ALIGNED, False),
        (plain(), {**ALIGNED, "userblock_size": 512}, False),
        (misaligned, {"alignment_threshold": 1, "alignment_interval": 24}, False),
        (lambda file: file.create_dataset("vectors", data=ROWS, chunks=(7, 2)), ALIGNED, False),
        (lambda file: file.create_dataset("vectors", data=ROWS, compression="gzip"), ALIGNED, False),
        (lambda file: file.create_dataset("vectors", data=ROWS, shuffle=True, fletcher32=True), ALIGNED, False),
        (lambda file: file.create_dataset("vectors", data=ROWS, maxshape=(None, 3)), ALIGNED, False),
        (compact, ALIGNED, False),
        (plain(), {"libver": "earliest", **ALIGNED}, True),
        (plain(), {"libver": "latest", **ALIGNED}, True),
    ],
    ids=[
        "plain", "big-endian", "userblock", "misaligned", "chunked", "compressed", "checksummed", "extendable",
        "compact", "oldest", "newest",
    ],
)  # fmt: skip
@pytest.mark.parametrize("verify", [False, True])
def test_every_layout_shows_the_right_rows_at_an_aligned_address(tmp_path, create, options, mapped, verify):
    write_by_hand(tmp_path / "frozen.h5", create, **options)
    table = open_frozen(tmp_path / "frozen.h5", verify=verify)
    assert table.mapped == mapped
    same_bits(table.vectors, ROWS)
    assert table.vectors.ctypes.data % 64 == 0
    assert table.vectors.flags.c_contiguous
    assert table.vectors.dtype.isnative


def test_our_own_files_are_mapped_from_a_whole_page(tmp_path):
    write_frozen(tmp_path / "frozen.h5", ROWS, words=[str(number) for number in range(50)])
    with h5py.File(tmp_path / "frozen.h5") as file:
        assert file["vectors"].id.get_offset() % 4096 == 0
        assert file["vectors"].chunks is None
    assert open_frozen(tmp_path / "frozen.h5").mapped


def test_memory_mapping_can_be_switched_off(tmp_path):
    write_frozen(tmp_path / "frozen.h5", ROWS)
    table = open_frozen(tmp_path / "frozen.h5", memory_map=False)
    assert not table.mapped
    same_bits(table.vectors, ROWS)
    assert table.vectors.ctypes.data % 64 == 0


def test_writing_through_the_map_stays_private(tmp_path):
    """The map is writable for DLPack; writing to it does not change the file."""
    write_frozen(tmp_path / "frozen.h5", ROWS)
    table = open_frozen(tmp_path / "frozen.h5")
    base = table.vectors.base
    while isinstance(base, np.ndarray) and not base.flags.writeable:
        base = base.base
    base[...] = 7
    assert (table.vectors == 7).all()
    same_bits(open_frozen(tmp_path / "frozen.h5", verify=True).vectors, ROWS)


@pytest.mark.skipif(not hasattr(mmap, "MADV_RANDOM"), reason="this system takes no advice")
def test_reading_ahead_is_switched_off(tmp_path, monkeypatch):
    advice = []

    class Recorder(mmap.mmap):
        def madvise(self, option, *limits):
            advice.append(option)
            return super().madvise(option, *limits)

    monkeypatch.setattr(mapping_module.mmap, "mmap", Recorder)
    write_frozen(tmp_path / "frozen.h5", ROWS)
    same_bits(open_frozen(tmp_path / "frozen.h5").vectors, ROWS)
    assert advice == [mmap.MADV_RANDOM]
    write_trainable(tmp_path / "trainable.h5", ROWS, [0], frozen_fingerprint="sha256:")
    assert open_trainable(tmp_path / "trainable.h5").mapped
    # A model reads all trainable rows, one after the other.
    assert advice == [mmap.MADV_RANDOM]


def test_rows_beyond_the_end_of_the_file_are_refused_before_mapping(tmp_path):
    """The oldest superblock has no checksum, so that its file size can be changed to that of a shorter file."""
    path = tmp_path / "frozen.h5"
    write_by_hand(path, plain(), libver="earliest", **ALIGNED)
    with h5py.File(path) as file:
        end = file["vectors"].id.get_offset() + ROWS.nbytes
    os.truncate(path, end - 100)
    with open(path, "r+b") as file:
        # End-of-file address in a superblock of version 0.
        file.seek(40)
        file.write((end - 100).to_bytes(8, "little"))
    for memory_map in (True, False):
        # HDF5 checks it from 1.14.4 on.
        with pytest.raises(TableFormatError, match=r"frozen\.h5 .*(invalid dataset size|the file ends at 8692)"):
            open_frozen(path, memory_map=memory_map)


def test_a_file_that_shrinks_while_it_is_opened_is_refused_before_mapping(tmp_path, monkeypatch):
    path = tmp_path / "frozen.h5"
    write_frozen(path, ROWS)
    with h5py.File(path) as file:
        start = file["vectors"].id.get_offset()
        monkeypatch.setattr(mapping_module.os, "fstat", lambda _: SimpleNamespace(st_size=start + ROWS.nbytes - 1))
        with pytest.raises(TableFormatError, match=f"`vectors` ends at byte {start + 600}, but the file at"):
            mapping_module.map_or_read(file, file["vectors"])
        monkeypatch.setattr(mapping_module.os, "fstat", lambda _: SimpleNamespace(st_size=start + ROWS.nbytes))
        assert mapping_module.map_or_read(file, file["vectors"])[1]


def write_sparse(path, num_rows, dim):
    """Write a sparse file of zeros."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    with h5py.File(path, "w", libver=("v108", "v108"), alignment_threshold=1, alignment_interval=4096) as file:
        file.attrs.update(format="splitembed.frozen", format_version=1, dtype="float32", dim=dim, source="sparse")
        file.attrs.update(fingerprint="sha256:", words_fingerprint="")
        space = h5py.h5s.create_simple((num_rows, dim))
        h5py.h5d.create(file.id, b"vectors", h5py.h5t.IEEE_F32LE, space, properties)


def anonymous_memory():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc; other systems may not keep files sparse")
@pytest.mark.parametrize("num_rows", [2_000_000, 1_000_000_000], ids=["800 MB", "400 GB: more than memory"])
def test_a_large_table_opens_in_milliseconds_without_memory(tmp_path, num_rows):
    write_sparse(tmp_path / "frozen.h5", num_rows, 100)
    before, start = anonymous_memory(), time.perf_counter()
    table = open_frozen(tmp_path / "frozen.h5")
    # About 1 ms on two idle cores; reading 800 MB takes longer.
    assert time.perf_counter() - start < 0.5
    assert table.mapped
    assert table.take([num_rows - 1, 0]).tolist() == [[0.0] * 100] * 2
    assert anonymous_memory() - before < 4 << 20
