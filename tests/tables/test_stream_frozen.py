"""FrozenWriter: bounded memory, blocks of any size, and no file left when it fails."""

import os
import tracemalloc

import numpy as np
import pytest

from splitembed.errors import SplitError, VocabularyError
from splitembed.tables import FrozenWriter, open_frozen, write_frozen
from splitembed.tables.fingerprints import BLOCK_BYTES
from tests.helpers.bits import same_bits

ROWS = np.arange(15, dtype=np.float32).reshape(5, 3)


def test_memory_holds_a_few_blocks_and_not_the_table(tmp_path):
    # 80 MB in all.
    num_blocks, block = 200, np.ones((1_000, 100), np.float32)
    words = [f"word {number}" for number in range(len(block))]
    tracemalloc.start()
    with FrozenWriter(tmp_path / "frozen.h5") as writer:
        for number in range(num_blocks):
            writer.append(words, block * number)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * BLOCK_BYTES + 5 * block.nbytes < num_blocks * block.nbytes / 5
    table = open_frozen(tmp_path / "frozen.h5", verify=True)
    assert table.num_frozen == num_blocks * len(block)
    assert table.vectors[:: len(block), 0].tolist() == list(range(num_blocks))
    assert table.words[-1] == "word 999"
    assert os.listdir(tmp_path) == ["frozen.h5"]


def test_writing_a_memory_map_holds_a_few_blocks_and_not_the_table(tmp_path):
    np.save(tmp_path / "rows.npy", np.ones((200_000, 100), np.float32))
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    tracemalloc.start()
    write_frozen(tmp_path / "frozen.h5", rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * BLOCK_BYTES < rows.nbytes / 5


def test_any_real_numbers_are_accepted(tmp_path):
    with FrozenWriter(tmp_path / "frozen.h5") as writer:
        writer.append(["a"], [[1, 2]])
        writer.append(["b"], np.array([[0.1, 0.2]]))
        writer.append(["c"], np.array([[3.0, 4.0]], ">f2"))
        writer.append([], np.empty((0, 2)))
    assert writer.dim == 2
    expected = np.array([[1, 2], [0.1, 0.2], [3, 4]], np.float32)
    same_bits(open_frozen(tmp_path / "frozen.h5").vectors, expected)


def test_a_table_without_rows_needs_a_dim(tmp_path):
    with FrozenWriter(tmp_path / "frozen.h5", 3, with_zero_row=True):
        pass
    table = open_frozen(tmp_path / "frozen.h5", verify=True)
    assert (table.vectors.tolist(), table.words, table.zero_row) == ([[0, 0, 0]], [""], 0)
    with FrozenWriter(tmp_path / "frozen.h5", 3):
        pass
    assert open_frozen(tmp_path / "frozen.h5", verify=True).vectors.shape == (0, 3)
    refused = pytest.raises(SplitError, match=r"none\.h5: no row was written, so the dim is unknown")
    with refused, FrozenWriter(tmp_path / "none.h5"):
        pass
    assert os.listdir(tmp_path) == ["frozen.h5"]


REFUSED = [
    (["a"], ROWS, SplitError, "1 words, 5 rows"),
    (["a"], [[1.0, 2.0]], SplitError, "Row 5 has dim 2; expected 3"),
    (["a"], [1.0, 2.0, 3.0], SplitError, r"`rows` must be real numbers \(num_rows, dim\)\. Received: float64 \(3,\)"),
    (["a"], [[]], SplitError, r"Received: float64 \(1, 0\)"),
    (["a"], [["1", "2", "3"]], SplitError, r"Received: <U1 \(1, 3\)"),
    (["a"], [[True, False, True]], SplitError, r"Received: bool \(1, 3\)"),
    (["a"], [[1.0, 1e39, 2.0]], SplitError, r"Row 5, column 1 holds 1e\+39, which float32 cannot hold"),
    (["\ud800"], [[1.0, 2.0, 3.0]], VocabularyError, "lone surrogate"),
]


def test_an_invalid_block_leaves_no_file(tmp_path):
    writer = FrozenWriter(tmp_path / "frozen.h5")
    refused = pytest.raises(SplitError, match="1 words, 5 rows")
    with refused, writer:
        writer.append(list("abcde"), ROWS)
        writer.append(["a"], ROWS)
    assert os.listdir(tmp_path) == []
    assert writer.fingerprint == ""


@pytest.mark.parametrize(("words", "rows", "error", "message"), REFUSED)
def test_an_invalid_block_leaves_the_writer_unchanged(tmp_path, words, rows, error, message):
    with FrozenWriter(tmp_path / "frozen.h5") as writer:
        writer.append(list("abcde"), ROWS)
        with pytest.raises(error, match=message):
            writer.append(words, rows)
        writer.append(["f"], ROWS[:1])
    table = open_frozen(tmp_path / "frozen.h5", verify=True)
    same_bits(table.vectors, ROWS[[0, 1, 2, 3, 4, 0]])
    assert table.words == list("abcdef")


def test_rows_are_accepted_only_inside_the_with_block(tmp_path):
    writer = FrozenWriter(tmp_path / "frozen.h5")
    with pytest.raises(SplitError, match="only be called inside the `with` block"):
        writer.append(list("abcde"), ROWS)
    with writer:
        writer.append(list("abcde"), ROWS)
    with pytest.raises(SplitError, match="only be called inside the `with` block"):
        writer.append(list("abcde"), ROWS)
    assert open_frozen(tmp_path / "frozen.h5").num_frozen == 5


def test_a_writer_can_be_used_again(tmp_path):
    writer = FrozenWriter(tmp_path / "frozen.h5")
    for rows in (ROWS, ROWS + 1):
        with writer:
            writer.append(list("abcde"), rows)
        same_bits(open_frozen(tmp_path / "frozen.h5", verify=True).vectors, rows)


def test_an_unknown_dtype_is_refused(tmp_path):
    with pytest.raises(SplitError, match="one of float32, float16, bfloat16, int8. Received: 'float8'"):
        FrozenWriter(tmp_path / "frozen.h5", dtype="float8")


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"), FrozenWriter(tmp_path / "missing" / "frozen.h5"):
        pass
