"""A frozen.h5 as a source: rows stay mapped, the zero row is left out, a vocabulary chooses among blocks."""

import h5py
import numpy as np
import pytest

from splitembed.errors import TableFormatError, VectorFormatError
from splitembed.tables import FrozenTable, encode_rows, open_frozen, write_frozen
from splitembed.vectors import iter_vectors, read_vectors
from splitembed.vectors.save_frozen import save_frozen
from splitembed.words import Words
from tests.helpers.reference import table_of

WORDS = ["the", "", "\u2028", "of"]
ROWS = np.array([[1, 2], [3, 4], [0, 0], [5, 6]], np.float32)


@pytest.fixture
def path(tmp_path):
    write_frozen(tmp_path / "frozen.h5", ROWS, words=WORDS)
    return tmp_path / "frozen.h5"


def test_rows_are_mapped_and_not_copied(path):
    for source in (path, str(path), open_frozen(path), read_vectors(path)):
        for vocabulary in (None, ["of"]):
            vectors = read_vectors(source, vocabulary)
            assert table_of(vectors) == dict(zip(WORDS, ROWS.tolist(), strict=True))
            assert vectors.table is not None and vectors.table.mapped and vectors.source == str(path)
            assert np.shares_memory(vectors.vectors, vectors.table.vectors)
            assert not vectors.vectors.flags.writeable


def test_words_are_not_decoded_before_they_are_used(path):
    assert repr(read_vectors(path).words) == "<Words: 4>"


def test_a_vocabulary_chooses_among_blocks(path):
    blocks = list(iter_vectors(path, ["of", "unheard", "the"]))
    assert [block.words for block in blocks] == [["the", "of"]]
    assert blocks[0].vectors.tolist() == [[1, 2], [5, 6]]
    assert [block.words for block in iter_vectors(path)] == [WORDS]
    assert [len(block.words) for block in iter_vectors(path, [])] == [0]


def test_a_zero_row_at_the_end_is_left_out(tmp_path):
    table = save_frozen(tmp_path / "frozen.h5", {"the": [1.0, 2.0], "": [3.0, 4.0]})
    assert table.zero_row == 2
    vectors = read_vectors(table)
    assert table_of(vectors) == {"the": [1, 2], "": [3, 4]} and np.shares_memory(vectors.vectors, table.vectors)
    assert [block.words for block in iter_vectors(table)] == [["the", ""]]


def test_a_zero_row_that_is_not_the_last_keeps_its_row_number(tmp_path):
    write_frozen(tmp_path / "frozen.h5", ROWS, words=WORDS, zero_row=2)
    assert list(read_vectors(tmp_path / "frozen.h5").words) == WORDS
    assert [block.words for block in iter_vectors(tmp_path / "frozen.h5")] == [["the", "", "of"]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_rows_of_low_precision_are_widened(tmp_path, dtype):
    table = save_frozen(tmp_path / "frozen.h5", {"the": [1.0, -0.5], "of": [0.25, 127.0]}, dtype=dtype)
    vectors = read_vectors(table)
    assert vectors.vectors.dtype == np.float32
    assert np.array_equal(vectors.vectors, table.take([0, 1]))
    assert np.array_equal(next(iter_vectors(table)).vectors, table.take([0, 1]))


def test_a_table_in_memory():
    table = FrozenTable(ROWS, "sha256:0", words=Words.from_list(WORDS))
    assert read_vectors(table).source == "the frozen table"
    assert list(read_vectors(table).words) == WORDS


def test_a_table_without_words_is_refused(tmp_path):
    write_frozen(tmp_path / "frozen.h5", ROWS)
    for read in (read_vectors, lambda source: list(iter_vectors(source))):
        with pytest.raises(VectorFormatError, match=r"frozen.h5 holds rows without words"):
            read(tmp_path / "frozen.h5")


def test_H5_another_dim_is_refused(path):
    for read in (read_vectors, lambda *args, **options: list(iter_vectors(*args, **options))):
        with pytest.raises(VectorFormatError, match=": found rows of dim 2; expected dim=3"):
            read(path, dim=3)


def test_many_rows_are_read_in_blocks(tmp_path):
    rows, words = np.arange(10_000, dtype=np.float32).reshape(-1, 1), [f"w{number}" for number in range(10_000)]
    write_frozen(tmp_path / "frozen.h5", rows, words=words)
    blocks = list(iter_vectors(tmp_path / "frozen.h5"))
    assert len(blocks) > 2 and [word for block in blocks for word in block.words] == words
    assert np.array_equal(np.concatenate([block.vectors for block in blocks]), rows)


def test_a_table_that_is_cut_short_is_refused(path):
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(VectorFormatError, match="HDF5 data that cannot be read .*Copy or write it again"):
        read_vectors(path)


def copied(path, new_path, keeps_head):
    """Copy a file as another tool does, which moves its arrays."""
    with h5py.File(path) as old, h5py.File(new_path, "w", userblock_size=4096 if keeps_head else 0) as new:
        new.attrs.update(old.attrs)
        for name in old:
            old.copy(name, new)
    if keeps_head:
        new_path.write_bytes(path.read_bytes()[:4096] + new_path.read_bytes()[4096:])


@pytest.mark.parametrize("keeps_head", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8"])
@pytest.mark.parametrize("row_of", [None, [1, 0, 1]])
def test_a_table_that_another_tool_wrote_again_is_read_as_hdf5(tmp_path, keeps_head, dtype, row_of):
    rows, scale = encode_rows(np.array([[0.5, 1.5], [2.0, -1.0], [3.0, 0.0]], np.float32), dtype)
    row_of = None if row_of is None else np.array(row_of)
    write_frozen(tmp_path / "frozen.h5", rows, words=["a", "b", "c"], scale=scale, row_of=row_of)
    expected = table_of(read_vectors(tmp_path / "frozen.h5"))
    copied(tmp_path / "frozen.h5", tmp_path / "copy.h5", keeps_head)
    with pytest.raises(TableFormatError, match="convert" if keeps_head else "without the head"):
        open_frozen(tmp_path / "copy.h5")
    assert table_of(read_vectors(tmp_path / "copy.h5")) == expected
    save_frozen(tmp_path / "new.h5", tmp_path / "copy.h5", dtype=dtype)
    assert table_of(read_vectors(tmp_path / "new.h5")) == expected


@pytest.mark.parametrize(
    ("name", "data"),
    [("vectors", np.zeros((3, 2))), ("words/rows", np.array([0, 3, 0])), ("words/offsets", np.arange(3, dtype="u8"))],
)
def test_damage_in_a_table_that_another_tool_wrote_again_is_found(tmp_path, name, data):
    write_frozen(tmp_path / "frozen.h5", ROWS[:3], words=["a", "b", "c"], row_of=np.array([0, 1, 2]))
    copied(tmp_path / "frozen.h5", tmp_path / "copy.h5", keeps_head=False)
    with h5py.File(tmp_path / "copy.h5", "r+") as file:
        del file[name]
        file[name] = data
    with pytest.raises(VectorFormatError, match="copy.h5"):
        read_vectors(tmp_path / "copy.h5")
