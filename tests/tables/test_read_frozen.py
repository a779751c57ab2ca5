"""frozen.h5: what is written comes back bit for bit, rows are taken in the order asked for, words load when used."""

import hashlib
import os
import time

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import SplitError, TableFormatError, TokenIdError, VocabularyError
from splitembed.tables import FrozenTable, FrozenWriter, fingerprint_rows, fingerprint_words, open_frozen, write_frozen
from splitembed.words import Words
from tests.helpers.odd_words import ODD_WORDS, any_word, float32_rows, same_bits

ROWS = np.arange(15, dtype=np.float32).reshape(5, 3)


@st.composite
def tables(draw):
    """Rows of any bits, with a word each or with none."""
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
        assert same_bits(opened.vectors, rows)
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
    assert same_bits(streamed.vectors, rows)
    assert streamed.words == words
    assert writer.num_frozen == len(rows)


def test_P1_odd_words_come_back_exactly(tmp_path):
    write_frozen(tmp_path / "frozen.h5", np.zeros((len(ODD_WORDS), 1), np.float32), words=ODD_WORDS)
    assert list(open_frozen(tmp_path / "frozen.h5", verify=True).words) == ODD_WORDS


@pytest.mark.parametrize("num_words", [10_000, 200_000])
def test_P2_words_are_data_and_no_attribute(tmp_path, num_words):
    words = [f"{number:08}" for number in range(num_words)]
    write_frozen(tmp_path / "frozen.h5", np.zeros((num_words, 1), np.float32), words=words)
    assert open_frozen(tmp_path / "frozen.h5").words == words
    with h5py.File(tmp_path / "frozen.h5") as file:
        assert sorted(file) == ["vectors", "words"]
        assert sorted(file["words"]) == ["offsets", "utf8"]
        assert sum(len(str(value)) for value in file.attrs.values()) < 300


def test_P3_rows_come_in_the_order_asked_for(tmp_path):
    write_frozen(tmp_path / "frozen.h5", ROWS)
    table = open_frozen(tmp_path / "frozen.h5")
    assert same_bits(table.take([3, 1, 1]), ROWS[[3, 1, 1]])
    assert same_bits(table.take(np.array([[4], [0]], np.uint8)), ROWS[[[4], [0]]])
    assert table.take([]).shape == (0, 3)
    assert table.take(2).tolist() == ROWS[2].tolist()


@pytest.mark.parametrize(("rows", "named"), [([0, 5], "Row 5"), ([-1], "Row -1"), ([0, 2**32 + 1], "Row 4294967297")])
def test_P3_a_row_outside_is_an_index_error(rows, named):
    table = FrozenTable(ROWS, "sha256:")
    with pytest.raises(IndexError, match=f"{named} does not exist: there are 5 rows, from 0 on"):
        table.take(rows)
    with pytest.raises(TokenIdError):
        table.take(rows)


@pytest.mark.parametrize("rows", [[0.0], [True, False, True, False, True], ["0"]])
def test_rows_must_be_integers(rows):
    with pytest.raises(SplitError, match="`rows` must be integers; found dtype"):
        FrozenTable(ROWS, "sha256:").take(rows)


def test_taken_rows_are_a_copy():
    table = FrozenTable(ROWS.copy(), "sha256:")
    table.take([0])[:] = 9
    assert same_bits(table.vectors, ROWS)


def test_vectors_are_read_only(tmp_path):
    write_frozen(tmp_path / "frozen.h5", ROWS)
    for memory_map in (True, False):
        with pytest.raises(ValueError, match="read-only"):
            open_frozen(tmp_path / "frozen.h5", memory_map=memory_map).vectors[0, 0] = 1


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f4"])
def test_layout_and_byte_order_in_memory_make_no_difference(tmp_path, order, dtype):
    rows = np.asarray(ROWS, dtype, order=order)
    assert write_frozen(tmp_path / "frozen.h5", rows) == fingerprint_rows(ROWS) == fingerprint_rows(rows)
    assert same_bits(open_frozen(tmp_path / "frozen.h5").vectors, ROWS)


def test_a_strided_memory_map_is_written(tmp_path):
    np.save(tmp_path / "rows.npy", np.asfortranarray(np.arange(4_000_000, dtype=np.float32).reshape(-1, 4)))
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")[::2]
    write_frozen(tmp_path / "frozen.h5", rows)
    assert np.array_equal(open_frozen(tmp_path / "frozen.h5").vectors, rows)


def test_the_fingerprints_are_those_of_the_specification(tmp_path):
    assert write_frozen(tmp_path / "frozen.h5", ROWS, words=list("abcde")) == (
        "sha256:" + hashlib.sha256(ROWS.astype("<f4").tobytes() + b"float32 5x3").hexdigest()
    )
    offsets = np.arange(6, dtype="<u8").tobytes()
    words = "sha256:" + hashlib.sha256(b"abcde" + offsets).hexdigest()
    assert fingerprint_words(open_frozen(tmp_path / "frozen.h5").words) == words
    with h5py.File(tmp_path / "frozen.h5") as file:
        assert file.attrs["words_fingerprint"].decode() == words


def test_opening_decodes_and_even_reads_no_word(tmp_path, monkeypatch):
    num_words = 1_000_000
    packed = Words.from_arrays(np.full(num_words * 4, ord("x"), np.uint8), np.arange(num_words + 1, dtype="u8") * 4)
    write_frozen(tmp_path / "frozen.h5", np.zeros((num_words, 1), np.float32), words=packed)
    monkeypatch.setattr("splitembed.words.unpack_words", lambda *_: pytest.fail("words were decoded"))
    monkeypatch.setattr("splitembed.tables.stored_words._packed", lambda *_: pytest.fail("words were read"))
    start = time.perf_counter()
    table = open_frozen(tmp_path / "frozen.h5")
    assert time.perf_counter() - start < 0.5  # about 5 ms on two quiet cores; decoding alone takes 500
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


def test_words_fail_clearly_when_the_file_was_replaced(tmp_path):
    path = tmp_path / "frozen.h5"
    write_frozen(path, ROWS, words=list("abcde"))
    first, second, third = open_frozen(path), open_frozen(path), open_frozen(path)
    assert first.words == list("abcde")
    write_frozen(path, ROWS, words=list("vwxyz"))  # the same rows, so only the words tell
    with pytest.raises(TableFormatError, match=r"was replaced after it had been opened: .*sha256:\w+, now sha256:\w+"):
        list(second.words)
    write_frozen(path, ROWS)
    with pytest.raises(TableFormatError, match="now none"):
        list(second.words)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        list(third.words)
    assert first.words == list("abcde")


def test_words_of_the_same_table_written_again_are_fine(tmp_path):
    write_frozen(tmp_path / "frozen.h5", ROWS, words=list("abcde"))
    table = open_frozen(tmp_path / "frozen.h5")
    write_frozen(tmp_path / "frozen.h5", ROWS, words=table.words, source="another")
    assert table.words == list("abcde")


def test_zero_row_is_kept(tmp_path):
    write_frozen(tmp_path / "frozen.h5", np.array([[1.0], [-0.0]], np.float32), zero_row=1)
    assert open_frozen(tmp_path / "frozen.h5").zero_row == 1


@pytest.mark.parametrize("zero_row", [0, 5, -1])
def test_zero_row_must_be_zero(tmp_path, zero_row):
    rows = np.ones((5, 2), np.float32)
    with pytest.raises(SplitError, match=f"row {zero_row} is not"):
        write_frozen(tmp_path / "frozen.h5", rows, zero_row=zero_row)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (ROWS, {"words": ["a"]}, "one word for each row, or number of `row_of`: 1 words, 5 rows"),
        (ROWS.astype(np.float64), {}, "dtype float64 cannot be stored; convert them to one of float32, float16"),
        (ROWS[0], {}, r"shape \(num_frozen, dim\); found \(3,\)"),
        (ROWS.astype(np.int8), {}, "int8 rows need it"),
        (ROWS, {"scale": np.ones(5, np.float32)}, "`scale` belongs to int8 rows"),
        (ROWS.astype(np.int8), {"scale": np.ones(4, np.float32)}, r"float32 \(5,\); found float32 \(4,\)"),
        (ROWS.astype(np.int8), {"scale": np.ones(5)}, r"found float64 \(5,\)"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(tmp_path, rows, options, message):
    with pytest.raises(SplitError, match=message):
        write_frozen(tmp_path / "frozen.h5", rows, **options)
    assert os.listdir(tmp_path) == []


def test_a_word_that_cannot_be_stored_is_refused(tmp_path):
    with pytest.raises(VocabularyError, match="lone surrogate"):
        write_frozen(tmp_path / "frozen.h5", ROWS[:1], words=["\ud800"])
    assert os.listdir(tmp_path) == []


def test_text_for_people_may_be_long_but_holds_no_nul(tmp_path):
    write_frozen(tmp_path / "frozen.h5", ROWS, source="é" * 100_000)
    assert open_frozen(tmp_path / "frozen.h5").source == "é" * 100_000
    with pytest.raises(SplitError, match="`source` must not hold a NUL character"):
        write_frozen(tmp_path / "frozen.h5", ROWS, source="a\0b")


def test_a_file_may_be_rewritten_from_its_own_map(tmp_path):
    path = tmp_path / "frozen.h5"
    write_frozen(path, ROWS, words=list("abcde"))
    table = open_frozen(path)
    assert write_frozen(path, table.vectors, words=table.words) == table.fingerprint
    assert same_bits(table.vectors, ROWS)


@pytest.mark.parametrize("name", ["with space.h5", "é\u2028.h5", "no-suffix", os.fsdecode(b"caf\xe9.h5")])
def test_any_file_name_works(tmp_path, name):
    write_frozen(tmp_path / name, ROWS, words=list("abcde"), source=name)
    table = open_frozen(str(tmp_path / name))
    assert (table.words, table.source) == (list("abcde"), name)


@pytest.mark.parametrize(
    ("row_of", "message"),
    [
        ([0, 2], "`row_of` names row 2; there are 2 rows"),
        ([0, -1], "`row_of` names row -1"),
        ([0.0, 1.0], "`row_of` must be integers"),
        ([0, 1, 1], "2 words, 3 rows"),
    ],
)
def test_rows_of_words_are_checked_before_anything_is_written(tmp_path, row_of, message):
    with pytest.raises(SplitError, match=message):
        write_frozen(tmp_path / "frozen.h5", np.eye(2, dtype=np.float32), words=["a", "b"], row_of=np.array(row_of))
    assert not list(tmp_path.iterdir())


def test_damaged_rows_of_words_are_refused(tmp_path):
    path = tmp_path / "frozen.h5"
    write_frozen(path, np.eye(2, dtype=np.float32), words=["a", "b", "c"], row_of=np.array([0, 1, 1]))
    with h5py.File(path, "r+") as file:
        file["words/rows"][2] = 0
    assert open_frozen(path).row_of.tolist() == [0, 1, 0]
    with pytest.raises(TableFormatError, match="its attribute `word_rows_fingerprint` records sha256:"):
        open_frozen(path, verify=True)
    with h5py.File(path, "r+") as file:
        file["words/rows"][2] = 2
    with pytest.raises(TableFormatError, match="`words/rows` names row 2; expected 0 to 1"):
        open_frozen(path)
