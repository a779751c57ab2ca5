"""Joined blocks: order, alignment, no row held twice; rows of a table are widened only when needed."""

import numpy as np
import pytest

from splitembed.tables import open_frozen, write_frozen
from splitembed.tables.storage import encode_rows
from splitembed.vectors import Block, read_vectors
from splitembed.vectors.word_vectors import gather_blocks, stack_blocks

ROWS = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
WORDS = [str(number) for number in range(10)]


def some_blocks():
    blocks = [Block(WORDS[start : start + 2], ROWS[start : start + 2]) for start in range(0, 10, 2)]
    blocks.insert(2, Block([], np.zeros((0, 3), np.float32)))
    return blocks


@pytest.mark.parametrize("most_rows", [10, 11, 1_000_000])
def test_blocks_are_joined_in_order(most_rows):
    words, vectors = stack_blocks(iter(some_blocks()), most_rows)
    assert words == WORDS
    assert np.array_equal(vectors, ROWS) and vectors.ctypes.data % 64 == 0


def test_blocks_are_gathered_in_order_and_let_go():
    blocks = some_blocks()
    words, vectors = gather_blocks(blocks)
    assert words == WORDS
    assert np.array_equal(vectors, ROWS) and vectors.ctypes.data % 64 == 0
    assert blocks == []


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8"])
def test_only_requested_rows_of_a_table_are_widened(tmp_path, dtype):
    stored, scale = encode_rows(ROWS, dtype)
    write_frozen(tmp_path / "frozen.h5", stored, words=WORDS, scale=scale)
    table = open_frozen(tmp_path / "frozen.h5")
    vectors = read_vectors(table)
    assert (len(vectors), vectors.dim) == (10, 3)
    assert np.array_equal(vectors.take([7, 0, 7]), table.take([7, 0, 7]))
    assert (vectors._matrix is None) == (dtype != "float32")
    assert np.array_equal(vectors.vectors, table.take(np.arange(10))) and not vectors.vectors.flags.writeable
    assert vectors.vectors is vectors.vectors
