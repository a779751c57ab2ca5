"""save_frozen: every source becomes the same table, streamed, with a zero row at its end."""

import errno
import gzip
import itertools
import struct
import threading
import tracemalloc

import h5py
import numpy as np
import pytest

from splitembed import SplitTable
from splitembed.errors import SplitError, TableFormatError, VectorFileWarning, VectorFormatError
from splitembed.tables import open_frozen, write_frozen
from splitembed.tables.spool import Spool
from splitembed.vectors import VectorSource, WordVectors, read_vectors
from splitembed.vectors.save_frozen import save_frozen
from splitembed.vectors.streams import compressions

WORDS = ["the", "at me@x.org", "\u3000"]
ROWS = np.array([[0.5, 2.0], [3.0, 0.1], [5.0, -6.0]], np.float32)
TEXT = "".join(f"{word} {a} {b}\n" for word, (a, b) in zip(WORDS, ROWS.tolist(), strict=True)).encode()


def sources(folder):
    (folder / "glove.txt").write_bytes(TEXT)
    (folder / "glove.gz").write_bytes(gzip.compress(TEXT))
    records = b"".join(
        struct.pack("<2f", *row).join([word.encode() + b" ", b"\n"]) for word, row in zip("abc", ROWS, strict=True)
    )
    (folder / "vectors.bin").write_bytes(b"3 2\n" + records)
    return {
        "glove.txt": (folder / "glove.txt", WORDS),
        "glove.gz": (str(folder / "glove.gz"), WORDS),
        "vectors.bin": (folder / "vectors.bin", list("abc")),
        "dict": (dict(zip(WORDS, ROWS, strict=True)), WORDS),
        "tuple": ((WORDS, ROWS), WORDS),
    }


@pytest.mark.parametrize("name", ["glove.txt", "glove.gz", "vectors.bin", "dict", "tuple"])
def test_every_source_becomes_the_same_table(tmp_path, name):
    source, words = sources(tmp_path)[name]
    table = save_frozen(tmp_path / "frozen.h5", source, dim=2)
    assert list(table.words) == [*words, ""]
    assert np.array_equal(table.vectors, [*ROWS, [0, 0]]) and table.zero_row == 3
    assert table.source == name and table.path == tmp_path / "frozen.h5"
    again = save_frozen(tmp_path / "again.h5", table)
    assert again.fingerprint == table.fingerprint == open_frozen(tmp_path / "frozen.h5", verify=True).fingerprint
    assert list(again.words) == list(table.words)


def test_the_source_of_word_vectors_is_the_file_they_came_from(tmp_path):
    source, _ = sources(tmp_path)["glove.txt"]
    assert save_frozen(tmp_path / "frozen.h5", read_vectors(source)).source == "glove.txt"


def test_a_table_is_converted_onto_itself(tmp_path):
    table = save_frozen(tmp_path / "frozen.h5", (WORDS, ROWS))
    assert save_frozen(tmp_path / "frozen.h5", tmp_path / "frozen.h5").fingerprint == table.fingerprint


def test_low_precision(tmp_path):
    table = save_frozen(tmp_path / "frozen.h5", (WORDS, ROWS), dtype="float16")
    assert table.dtype == "float16" and np.array_equal(
        table.take([0, 1, 2]), ROWS.astype(np.float16).astype(np.float32)
    )
    with pytest.raises(SplitError, match="which float16 cannot hold"):
        save_frozen(tmp_path / "frozen.h5", {"a": [70000.0]}, dtype="float16")


@pytest.mark.parametrize("content", [b"the 1 2\nof 3 x\n", b"the 1 nan\n", b"", gzip.compress(TEXT, mtime=0)[:-4]])
def test_a_failed_reading_leaves_no_file(tmp_path, content):
    (tmp_path / "vectors.txt").write_bytes(content)
    (tmp_path / "tables").mkdir()
    with pytest.raises(VectorFormatError):
        save_frozen(tmp_path / "tables" / "frozen.h5", tmp_path / "vectors.txt")
    assert list((tmp_path / "tables").iterdir()) == []


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"w{number} {number} 0.5\n" for number in range(10_000)))
    (tmp_path / "tables").mkdir()
    append, num_blocks = Spool.append, itertools.count()

    def fill_the_disk(spool, numbers):
        if next(num_blocks) == 40:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(spool, numbers)

    monkeypatch.setattr(Spool, "append", fill_the_disk)
    monkeypatch.setattr(compressions, "CHUNK_BYTES", 1000)
    with pytest.raises(OSError, match="No space left"):
        save_frozen(tmp_path / "tables" / "frozen.h5", path)
    assert list((tmp_path / "tables").iterdir()) == []
    assert not any(thread.name.startswith("splitembed") for thread in threading.enumerate())


def test_suspicious_content_gives_a_warning_or_an_error(tmp_path):
    (tmp_path / "vectors.txt").write_bytes(b"3 2\nthe 1 nan\nthe 3 4\n")
    with pytest.warns(VectorFileWarning, match=r"duplicate words.*replaced by 0.*header says 3") as caught:
        table = save_frozen(tmp_path / "frozen.h5", tmp_path / "vectors.txt", non_finite="zero")
    assert len(caught) == 1 and table.vectors.tolist() == [[1, 0], [0, 0]]
    with pytest.raises(VectorFormatError, match="strict=True"):
        save_frozen(tmp_path / "frozen.h5", tmp_path / "vectors.txt", non_finite="zero", strict=True)
    with pytest.raises(VectorFormatError, match="dim 2; expected dim=3"):
        save_frozen(tmp_path / "frozen.h5", tmp_path / "vectors.txt", dim=3)


def test_an_empty_table_keeps_its_dim(tmp_path):
    (tmp_path / "vectors.txt").write_bytes(b"0 3\n")
    assert save_frozen(tmp_path / "frozen.h5", tmp_path / "vectors.txt").vectors.tolist() == [[0, 0, 0]]


def test_words_that_are_all_decimal_numbers_are_not_converted(tmp_path):
    (tmp_path / "v.txt").write_bytes(b"0.1\t0.2\t0.3\n0.4\t0.5\t0.6\n")
    with pytest.raises(VectorFormatError, match=r"line 1: found rows that start with decimal .*Pass \(words, path\)"):
        save_frozen(tmp_path / "frozen.h5", tmp_path / "v.txt")
    assert not (tmp_path / "frozen.h5").exists()
    assert list(save_frozen(tmp_path / "n.h5", tmp_path / "v.txt", numbers_are_words=True).words) == ["0.1", "0.4", ""]
    assert save_frozen(tmp_path / "w.h5", (["the", "of"], tmp_path / "v.txt")).dim == 3


def test_memory_follows_the_words_and_not_the_rows(tmp_path, monkeypatch):
    # So that a table of 48 MB is large for any number of threads.
    monkeypatch.setattr(compressions, "CHUNK_BYTES", 1 << 18)
    path = tmp_path / "vectors.txt"
    numbers = " ".join(["0.123456"] * 300)
    path.write_text("".join(f"w{number} {numbers}\n" for number in range(40_000)))
    tracemalloc.start()
    table = save_frozen(tmp_path / "frozen.h5", path, progress=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert table.vectors.nbytes > 48_000_000 > 2 * peak


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_rows_that_words_share_are_stored_once(tmp_path, dtype):
    rows = np.array([[1, 2], [3, 4], [0, 0]], np.float32)
    source = WordVectors(["a", "b", "c", "d"], rows, "by hand", row_of=np.array([1, 1, 0, 2]))
    table = save_frozen(tmp_path / "shared.h5", source, dtype=dtype)
    assert (table.num_frozen, table.zero_row, table.source) == (4, 3, "by hand")
    assert (list(table.words), table.row_of.tolist()) == (["a", "b", "c", "d"], [1, 1, 0, 2])
    assert np.allclose(table.take(table.row_of), rows[[1, 1, 0, 2]], rtol=1e-2)
    again = save_frozen(tmp_path / "again.h5", tmp_path / "shared.h5", dtype=dtype)
    assert again.row_of.tolist() == table.row_of.tolist() and np.array_equal(again.vectors, table.vectors)


def test_options_of_reading_reach_the_reader(tmp_path):
    (tmp_path / "v.txt").write_text("a 1 2\nb 1 nan\n")
    source = VectorSource(tmp_path / "v.txt", non_finite="zero")
    with pytest.warns(VectorFileWarning, match="replaced by 0: 1 "):
        table = save_frozen(tmp_path / "t.h5", source)
    assert table.vectors.tolist() == [[1, 2], [1, 0], [0, 0]] and table.source == "v.txt"
    with pytest.raises(VectorFormatError, match=": found rows of dim 2; expected dim=3"):
        save_frozen(tmp_path / "t.h5", tmp_path / "v.txt", dim=3)


def test_the_vectors_are_not_replaced_by_their_own_table(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_bytes(TEXT)
    (tmp_path / "link").symlink_to(path)
    for source in (path, str(path), tmp_path / "link", VectorSource(path, dim=2)):
        with pytest.raises(TableFormatError, match="glove.txt exists and is not a table of splitembed"):
            save_frozen(path, source)
    with pytest.raises(TableFormatError, match="check the order of the arguments"):
        save_frozen(path, {"the": [1.0]})
    assert path.read_bytes() == TEXT
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["weights"] = [1.0]
    with pytest.raises(TableFormatError, match="foreign.h5 exists and is not a table"):
        write_frozen(tmp_path / "foreign.h5", np.eye(2, dtype=np.float32))
    save_frozen(tmp_path / "frozen.h5", path)
    assert save_frozen(tmp_path / "frozen.h5", tmp_path / "frozen.h5", dtype="float16").dtype == "float16"


def test_the_frozen_table_of_a_split_is_not_replaced(tmp_path):
    SplitTable.from_matrix(np.eye(2), [1]).save(tmp_path)
    with pytest.raises(TableFormatError, match=r"frozen\.h5 holds the frozen rows of the split in .*trainable\.h5"):
        save_frozen(tmp_path / "frozen.h5", {"the": [1.0, 2.0]})
    SplitTable.open(tmp_path, verify=True)
    # A table that the split does not use can be replaced.
    save_frozen(tmp_path / "other.h5", {"the": [1.0, 2.0]})
    assert len(save_frozen(tmp_path / "other.h5", {"of": [1.0, 2.0], "the": [3.0, 4.0]}).words) == 3
