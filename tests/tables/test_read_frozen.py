"""Opened frozen tables: equal to what was written, with rows in the given order and words read on first use."""

import time

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import SplitError, TableFormatError, TokenIdError
from splitembed.tables import FrozenTable, FrozenWriter, open_frozen, write_frozen
from splitembed.words import Words
from tests.helpers.bits import same_bits
from tests.helpers.odd_words import ODD_WORDS, any_word, float32_rows
from tests.helpers.table_heads import replace_array

ROWS = np.arange(15, dtype=np.float32).reshape(5, 3)


@st.composite
def tables(draw):
    """Draw rows of any bits, with or without words."""
    rows = draw(float32_rows(st.integers(0, 8), st.integers(1, 5)))
    words = draw(st.none() | st.lists(any_word, min_size=len(rows), max_size=len(rows)))
    return rows, words


@given(tables())
def test_write_then_open_is_the_identity(tmp_path_factory, table):
    rows, words = table
    path = tmp_path_factory.mktemp("frozen") / "frozen.h5"
    fingerprint = write_frozen(path, rows, words=words, source="drawn")
    for memory_map in (True, False):
        opened = open_frozen(path, verify=True, memory_map=memory_map)
        same_bits(opened.vectors, rows)
        assert opened.words == words
        assert opened.mapped == (memory_map and len(rows) > 0)
        assert (opened.num_frozen, opened.dim, opened.dtype) == (*rows.shape, "float32")
        assert (opened.source, opened.path, opened.zero_row, opened.scale) == ("drawn", path, None, None)
        assert opened.fingerprint == fingerprint


@given(tables(), st.integers(1, 5), st.booleans())
def test_a_table_streamed_in_blocks_is_the_table_written_at_once(tmp_path_factory, table, step, with_zero_row):
    rows, words = table
    words = [f"{number}" for number in range(len(rows))] if words is None else words
    folder = tmp_path_factory.mktemp("frozen")
    with FrozenWriter(folder / "a.h5", rows.shape[1], with_zero_row=with_zero_row) as writer:
        for start in range(0, len(rows), step):
            writer.append(words[start : start + step], rows[start : start + step])
    streamed = open_frozen(folder / "a.h5", verify=True)
    if with_zero_row:
        assert streamed.zero_row == len(rows)
        rows, words = np.vstack([rows, np.zeros((1, rows.shape[1]), np.float32)]), [*words, ""]
    assert write_frozen(folder / "b.h5", rows, words=words) == streamed.fingerprint == writer.fingerprint
    same_bits(streamed.vectors, rows)
    assert streamed.words == words
    assert writer.num_frozen == len(rows)


def test_P1_odd_words_are_read_exactly(tmp_path):
    write_frozen(tmp_path / "frozen.h5", np.zeros((len(ODD_WORDS), 1), np.float32), words=ODD_WORDS)
    assert list(open_frozen(tmp_path / "frozen.h5", verify=True).words) == ODD_WORDS


@pytest.mark.parametrize("num_words", [10_000, 200_000])
def test_P2_words_are_datasets_and_not_attributes(tmp_path, num_words):
    words = [f"{number:08}" for number in range(num_words)]
    write_frozen(tmp_path / "frozen.h5", np.zeros((num_words, 1), np.float32), words=words)
    assert open_frozen(tmp_path / "frozen.h5").words == words
    with h5py.File(tmp_path / "frozen.h5") as file:
        assert sorted(file) == ["vectors", "words"]
        assert sorted(file["words"]) == ["offsets", "utf8"]
        assert sum(len(str(value)) for value in file.attrs.values()) < 300


def test_P3_rows_are_returned_in_the_given_order(tmp_path):
    write_frozen(tmp_path / "frozen.h5", ROWS)
    table = open_frozen(tmp_path / "frozen.h5")
    same_bits(table.take([3, 1, 1]), ROWS[[3, 1, 1]])
    same_bits(table.take(np.array([[4], [0]], np.uint8)), ROWS[[[4], [0]]])
    assert table.take([]).shape == (0, 3)
    assert table.take(2).tolist() == ROWS[2].tolist()


@pytest.mark.parametrize(("rows", "named"), [([0, 5], 5), ([-1], -1), ([0, 2**32 + 1], 2**32 + 1)])
def test_P3_a_row_out_of_range_is_an_index_error(rows, named):
    table = FrozenTable(ROWS, "sha256:")
    with pytest.raises(IndexError, match=f"from 0 to 4, as the table has 5 rows. Received: {named}"):
        table.take(rows)
    with pytest.raises(TokenIdError):
        table.take(rows)


@pytest.mark.parametrize("rows", [[0.0], [True, False, True, False, True], ["0"]])
def test_rows_must_be_integers(rows):
    with pytest.raises(SplitError, match="`rows` must be integers. Received: dtype"):
        FrozenTable(ROWS, "sha256:").take(rows)


def test_taken_rows_are_a_copy():
    table = FrozenTable(ROWS.copy(), "sha256:")
    table.take([0])[:] = 9
    same_bits(table.vectors, ROWS)


def test_vectors_are_read_only(tmp_path):
    write_frozen(tmp_path / "frozen.h5", ROWS)
    for memory_map in (True, False):
        with pytest.raises(ValueError, match="read-only"):
            open_frozen(tmp_path / "frozen.h5", memory_map=memory_map).vectors[0, 0] = 1


def test_opening_does_not_decode_words(tmp_path, monkeypatch):
    num_words = 1_000_000
    packed = Words.from_arrays(np.full(num_words * 4, ord("x"), np.uint8), np.arange(num_words + 1, dtype="u8") * 4)
    write_frozen(tmp_path / "frozen.h5", np.zeros((num_words, 1), np.float32), words=packed)
    monkeypatch.setattr("splitembed.words.unpack_words", lambda *_: pytest.fail("words were decoded"))
    start = time.perf_counter()
    table = open_frozen(tmp_path / "frozen.h5")
    # About 5 ms on two idle cores; decoding alone takes 500 ms.
    assert time.perf_counter() - start < 0.5
    assert len(table.words) == num_words
    monkeypatch.undo()
    assert table.words[num_words - 1] == "xxxx"


def test_words_are_found_from_another_working_folder(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    write_frozen("frozen.h5", ROWS, words=list("abcde"))
    table = open_frozen("frozen.h5")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert table.words == list("abcde")
    assert table.path == tmp_path / "frozen.h5"


@pytest.mark.parametrize("memory_map", [True, False])
def test_words_outlive_their_file(tmp_path, memory_map):
    path = tmp_path / "frozen.h5"
    write_frozen(path, ROWS, words=list("abcde"))
    table = open_frozen(path, memory_map=memory_map)
    write_frozen(path, ROWS, words=list("vwxyz"))
    path.unlink()
    assert table.words == list("abcde")


@pytest.mark.parametrize("on_network", [True, False])
def test_a_table_on_a_network_file_system_is_read_on_request(tmp_path, monkeypatch, on_network):
    write_frozen(tmp_path / "frozen.h5", ROWS, words=list("abcde"))
    monkeypatch.setattr("splitembed.tables.table_file.is_on_network", lambda _: on_network)
    assert open_frozen(tmp_path / "frozen.h5").mapped
    assert open_frozen(tmp_path / "frozen.h5", memory_map="auto").mapped is not on_network
    with pytest.raises(SplitError, match='`memory_map` must be True, False or "auto". Received: .never.'):
        open_frozen(tmp_path / "frozen.h5", memory_map="never")


def test_words_are_read_after_the_same_table_was_written_again(tmp_path):
    write_frozen(tmp_path / "frozen.h5", ROWS, words=list("abcde"))
    table = open_frozen(tmp_path / "frozen.h5")
    write_frozen(tmp_path / "frozen.h5", ROWS, words=table.words, source="another")
    assert table.words == list("abcde")


def test_damaged_rows_of_words_are_refused(tmp_path):
    path = tmp_path / "frozen.h5"
    write_frozen(path, np.eye(2, dtype=np.float32), words=["a", "b", "c"], row_of=np.array([0, 1, 1]))
    replace_array(path, "words/rows", np.array([0, 1, 0], np.int32))
    assert open_frozen(path).row_of.tolist() == [0, 1, 0]
    with pytest.raises(TableFormatError, match="expected sha256:.* its attribute `word_rows_fingerprint`"):
        open_frozen(path, verify=True)
    replace_array(path, "words/rows", np.array([0, 1, 2], np.int32))
    with pytest.raises(TableFormatError, match="`words/rows` names row 2; expected 0 to 1"):
        open_frozen(path)
