"""Blocks of numbers that are collected in a file without a name."""

import os

import numpy as np
import pytest

from splitembed.tables import fingerprints
from splitembed.tables.spool import Spool

NUMBERS = np.arange(35, dtype=np.float32).reshape(7, 5)


@pytest.mark.parametrize("num_rows", [0, 1, 7])
def test_spooled_numbers_come_back_in_blocks(tmp_path, monkeypatch, num_rows):
    monkeypatch.setattr(fingerprints, "BLOCK_BYTES", 48)
    spool = Spool(str(tmp_path), np.float32)
    for row in NUMBERS[:num_rows]:
        spool.append(row.astype(np.float64))
    assert os.listdir(tmp_path) == []
    blocks = [block.copy() for block in spool.blocks((5,))]
    assert spool.size == 5 * num_rows and all(len(block) <= 2 for block in blocks)
    np.testing.assert_array_equal(np.concatenate([np.zeros((0, 5)), *blocks]), NUMBERS[:num_rows])
    spool.close()


def test_single_numbers_have_no_row_shape(tmp_path):
    spool = Spool(str(tmp_path), "u8")
    spool.append(np.array([3, 4]))
    assert [block.tolist() for block in spool.blocks(())] == [[3, 4]]
    spool.close()
