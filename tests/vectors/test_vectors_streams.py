"""Files opened by their content: every compression under every name, damage named, progress where it is wanted."""

import bz2
import functools
import gzip
import io
import lzma
import os
import random
import threading

import pytest
from reference import table_of

from splitembed.errors import VectorFormatError
from splitembed.vectors import iter_vectors, read_vectors

CONTENT = b"the 1 2\nof 3 4\n"
PACKERS = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": functools.partial(lzma.compress, preset=0),
}
COMPRESSIONS = ["gzip", "bzip2", "xz"]


def long_content(num_rows=2000):
    generator = random.Random(0)
    return "".join(f"w{number} {generator.random()} {generator.random()}\n" for number in range(num_rows)).encode()


@pytest.mark.parametrize(
    "name", ["v.txt", "v.gz", "v.bz2", "v.xz", "v.zip", "v.bin", "v.vec", "v.npy", "v.h5", "v.pkl", "v"]
)
@pytest.mark.parametrize("packing", PACKERS)
def test_X3_by_content_and_never_by_name(tmp_path, name, packing):
    path = tmp_path / name
    path.write_bytes(PACKERS[packing](CONTENT))
    for each in (path, str(path)):
        assert table_of(read_vectors(each)) == {"the": [1, 2], "of": [3, 4]}


@pytest.mark.parametrize("word", [b"BZh9", b"BZh91AY", b"\x1f", b"\xfd7z"])
def test_a_word_that_begins_like_compressed_data(write_plain, word):
    path = write_plain(word + b" 1 2\nof 3 4\n")
    assert list(read_vectors(path, ["of"]).words) == ["of"]


@pytest.mark.parametrize("packing", COMPRESSIONS)
def test_streams_one_after_another_are_one(write_plain, packing):
    pack = PACKERS[packing]
    assert len(read_vectors(write_plain(pack(b"the 1 2\no") + pack(b"f 3 4\n")))) == 2


@pytest.mark.parametrize("vocabulary", [None, ["w3"]])
@pytest.mark.parametrize("packing", COMPRESSIONS)
@pytest.mark.parametrize("keep", [0.3, 0.99])
def test_compressed_data_that_is_cut_short(write_plain, packing, keep, vocabulary):
    packed = PACKERS[packing](long_content())
    path = write_plain(packed[: int(keep * len(packed))])
    message = rf"{path}, byte \d+ after decompression: found {packing} data that is damaged or cut short"
    with pytest.raises(VectorFormatError, match=message):
        read_vectors(path, vocabulary)


@pytest.mark.parametrize("packing", COMPRESSIONS)
def test_compressed_data_that_is_damaged(write_plain, packing):
    packed = bytearray(PACKERS[packing](long_content()))
    packed[len(packed) // 2] ^= 0xFF
    packed[len(packed) // 2 + 1] ^= 0xFF
    with pytest.raises(VectorFormatError, match=f"found {packing} data that is damaged"):
        read_vectors(write_plain(packed))


def test_errors_of_the_system_stay_what_they_are(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_vectors(tmp_path / "missing.txt")
    with pytest.raises(IsADirectoryError):
        read_vectors(tmp_path)


@pytest.mark.parametrize("packing", PACKERS)
def test_a_pipe_is_read_in_one_pass(tmp_path, packing):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    content = long_content(30_000)
    writer = threading.Thread(target=lambda: path.write_bytes(PACKERS[packing](content)))
    writer.start()
    vectors = read_vectors(path, ["w29999", "w0"], progress=False)
    writer.join()
    assert list(vectors.words) == ["w0", "w29999"]


class Terminal(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self):
        return self._is_terminal


@pytest.mark.parametrize(
    ("is_terminal", "progress", "shown"),
    [(True, None, True), (False, None, False), (False, True, True), (True, False, False)],
)
@pytest.mark.parametrize("packing", ["plain", "gzip"])
def test_progress_in_bytes_of_the_file(write_plain, monkeypatch, packing, is_terminal, progress, shown):
    path = write_plain(PACKERS[packing](long_content()))
    monkeypatch.setattr("sys.stderr", terminal := Terminal(is_terminal))
    read_vectors(path, progress=progress)
    told = terminal.getvalue()
    assert bool(told) == shown
    if shown:
        assert "vectors.txt: 100%" in told and f"{path.stat().st_size / 1000:.1f}k/" in told


def test_no_standard_error_no_progress(write_plain, monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    assert len(read_vectors(write_plain(CONTENT))) == 2


def test_a_reading_that_is_left_closes_its_file(write_plain, monkeypatch):
    opened = []
    real_open = open
    monkeypatch.setattr(
        "builtins.open", lambda *args, **options: opened.append(real_open(*args, **options)) or opened[-1]
    )
    blocks = iter_vectors(write_plain(long_content()))
    next(blocks)
    blocks.close()
    assert opened and all(file.closed for file in opened)
