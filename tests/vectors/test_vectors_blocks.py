"""Blocks put together: order, alignment, and no row held twice."""

import numpy as np

from splitembed.vectors import Block
from splitembed.vectors.blocks import stack_blocks


def test_blocks_are_stacked_in_order_and_let_go():
    rows = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    blocks = [
        Block([str(number) for number in range(start, start + 2)], rows[start : start + 2]) for start in range(0, 10, 2)
    ]
    blocks.insert(2, Block([], np.zeros((0, 3), np.float32)))
    words, vectors = stack_blocks(blocks)
    assert words == [str(number) for number in range(10)]
    assert np.array_equal(vectors, rows) and vectors.ctypes.data % 64 == 0
    assert blocks == []
