"""Memory mapping: the right values at a multiple of 64 bytes, and memory for nothing else."""

import hashlib
import io
import json
import mmap
import os
import sys
import time

import h5py
import numpy as np
import pytest

from splitembed.tables import mapping as mapping_module
from splitembed.tables import open_frozen, open_trainable, write_frozen, write_trainable
from splitembed.tables.head import MAGIC
from tests.helpers.bits import same_bits
from tests.helpers.table_heads import START, head_of, place_of

ROWS = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)


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


def test_a_file_that_shrinks_after_its_head_was_read_is_damaged(tmp_path):
    write_frozen(tmp_path / "frozen.h5", ROWS)
    place = head_of(tmp_path / "frozen.h5").arrays["vectors"]
    content = (tmp_path / "frozen.h5").read_bytes()
    same_bits(mapping_module.read(io.BytesIO(content), place), ROWS)
    with pytest.raises(EOFError):
        mapping_module.read(io.BytesIO(content[: place.offset + 5]), place)


def write_sparse(path, num_rows, dim):
    """Write a sparse file of zeros, by a head that says so."""
    write_frozen(path, np.zeros((2048, 1), np.float32))
    size = num_rows * dim * 4

    def change(head):
        place_of(head, "vectors").update(shape=[num_rows, dim], size=size)
        head["attributes"]["dim"] = dim
        head["file_size"] = place_of(head, "vectors")["offset"] + size
        os.truncate(path, head["file_size"])

    content = path.read_bytes()
    length = int.from_bytes(content[20:24], "little")
    head = json.loads(content[START : START + length])
    change(head)
    raw = json.dumps(head).encode()
    start = MAGIC + (1).to_bytes(4, "little") + len(raw).to_bytes(4, "little")
    with open(path, "r+b") as file:
        file.write(start + hashlib.sha256(start + raw).digest() + raw)


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
