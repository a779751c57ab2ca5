"""Opening files by their content: every compression under any name, damage, and progress bars."""

import gzip
import io
import os
import random
import subprocess
import sys
import tempfile
import threading

import pytest

from splitembed.errors import SplitError, VectorFormatError
from splitembed.vectors import iter_vectors, read_vectors
from splitembed.vectors.streams.opening import open_stream
from tests.helpers.packings import COMPRESSIONS, PACKERS, zipped
from tests.helpers.reference import f, table_of

CONTENT = b"the 1 2\nof 3 4\n"
BINARY = b"2 2\nthe " + f(1, 2) + b"of " + f(3, 4)


def long_content(num_rows=2000):
    generator = random.Random(0)
    return "".join(f"w{number} {generator.random()} {generator.random()}\n" for number in range(num_rows)).encode()


NAMES = ["v.txt", "v.gz", "v.bz2", "v.xz", "v.zip", "v.zst", "v.bin", "v.vec", "v.npy", "v.h5", "v.pkl", "v"]


@pytest.mark.parametrize(
    ("name", "packing"), [*((name, "gzip") for name in NAMES), *(("v.txt", packing) for packing in PACKERS)]
)
def test_X3_by_content_and_never_by_name(tmp_path, name, packing):
    path = tmp_path / name
    path.write_bytes(PACKERS[packing](CONTENT))
    for each in (path, str(path)):
        assert table_of(read_vectors(each)) == {"the": [1, 2], "of": [3, 4]}


@pytest.mark.parametrize("word", [b"BZh9", b"BZh91AY", b"\x1f", b"\xfd7z"])
def test_a_word_that_starts_like_compressed_data(write, word):
    path = write(word + b" 1 2\nof 3 4\n")
    assert list(read_vectors(path, ["of"]).words) == ["of"]


@pytest.mark.parametrize("packing", COMPRESSIONS)
@pytest.mark.parametrize(("keep", "vocabulary"), [(0.3, None), (0.99, ["w3"])])
def test_compressed_data_that_is_cut_short(write, packing, keep, vocabulary):
    packed = PACKERS[packing](long_content())
    path = write(packed[: int(keep * len(packed))])
    message = rf"{path}, byte \d+ after decompression: found {packing} data that is damaged or cut short"
    with pytest.raises(VectorFormatError, match=message):
        read_vectors(path, vocabulary)


@pytest.mark.parametrize("packing", COMPRESSIONS)
def test_compressed_data_that_is_damaged(write, packing):
    packed = bytearray(PACKERS[packing](long_content()))
    packed[len(packed) // 2] ^= 0xFF
    packed[len(packed) // 2 + 1] ^= 0xFF
    with pytest.raises(VectorFormatError, match=f"found {packing} data that is damaged"):
        read_vectors(write(packed))


def test_errors_of_the_system_are_raised_as_they_are(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_vectors(tmp_path / "missing.txt")
    with pytest.raises(IsADirectoryError), open_stream(tmp_path):
        pass


@pytest.mark.parametrize("packing", ["plain", *COMPRESSIONS])
def test_a_pipe_is_read_in_one_pass(tmp_path, packing):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    content = long_content(30_000)
    writer = threading.Thread(target=lambda: path.write_bytes(PACKERS[packing](content)))
    writer.start()
    vectors = read_vectors(path, ["w29999", "w0"], progress=False)
    writer.join()
    assert list(vectors.words) == ["w0", "w29999"]


READING = "from splitembed.vectors import read_vectors; print(read_vectors('-', progress=False).vectors.tolist())"


@pytest.mark.parametrize(
    ("packing", "is_file"), [("plain", False), ("plain", True), ("gzip", False), ("zip", False), ("zip", True)]
)
def test_standard_input(write, packing, is_file):
    path = write(PACKERS[packing](BINARY))
    options = {"stdin": path.open("rb")} if is_file else {"input": path.read_bytes()}
    done = subprocess.run([sys.executable, "-c", READING], capture_output=True, check=False, **options)
    # The list of files is at the end of a zip archive.
    if packing == "zip" and not is_file:
        assert b"standard input: found a zip archive in a stream; expected a file" in done.stderr
        assert b"unzip -p" in done.stderr
    else:
        assert done.stdout == b"[[1.0, 2.0], [3.0, 4.0]]\n", done.stderr.decode()


def test_no_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(SplitError, match=r"standard input is closed; expected an open file\. Pass a path"):
        read_vectors("-")


class OnlyRead:
    """A file object with the one method that none lacks, and a few bytes at a time."""

    def __init__(self, content):
        self._content = io.BytesIO(content)

    def read(self, size):
        return self._content.read(min(size, 5))


@pytest.mark.parametrize(
    ("packing", "content"), [*((packing, CONTENT) for packing in PACKERS), ("plain", BINARY), ("zip", BINARY)]
)
def test_open_files_are_read_and_left_open(write, packing, content):
    path = write(PACKERS[packing](content))
    with path.open("rb") as file, path.open("rb", buffering=0) as raw, tempfile.TemporaryFile() as temporary:
        temporary.write(path.read_bytes())
        temporary.seek(0)
        for each in (file, raw, temporary, io.BytesIO(path.read_bytes())):
            assert table_of(read_vectors(each)) == {"the": [1, 2], "of": [3, 4]}
            assert not each.closed
    if packing != "zip":
        assert len(read_vectors(OnlyRead(path.read_bytes()))) == 2


def test_a_file_object_with_other_content_than_its_file(write):
    records = b"".join(b"w%d " % number + f(0.5, 0.5) for number in range(1000))
    path = write(gzip.compress(b"1000 2\n" + records))
    # Its fileno is that of the compressed file.
    with gzip.open(path, "rb") as file:
        assert path.stat().st_size < 1000 * 9 and len(read_vectors(file)) == 1000


def test_a_file_is_read_from_its_position(write):
    for start in (0, 1, 100):
        path = write(b"#" * start + BINARY)
        with path.open("rb") as file, open_stream(file) as stream:
            assert stream.size == start + len(BINARY)
        with path.open("rb") as file:
            file.seek(start)
            with open_stream(file) as stream:
                assert stream.size == len(BINARY) and stream.reader.read() == BINARY


def test_a_file_that_was_opened_as_text(write):
    path = write(CONTENT)
    with path.open() as file, pytest.raises(SplitError) as caught:
        read_vectors(file)
    assert str(caught.value) == (
        f"{path}: found a file that was opened as text; expected bytes. Open it with open(path, 'rb')."
    )
    with pytest.raises(SplitError, match="the open file: found a file that was opened as text"):
        read_vectors(io.StringIO(CONTENT.decode()))


@pytest.mark.parametrize("packing", ["plain", "gzip"])
def test_a_member_is_refused_without_an_archive(write, packing):
    with pytest.raises(VectorFormatError, match=r"found no zip archive; expected one, because of member='v\.txt'"):
        read_vectors(write(PACKERS[packing](CONTENT)), member="v.txt")


@pytest.mark.parametrize("packing", PACKERS)
def test_attributes_of_a_stream(write, packing):
    path = write(PACKERS[packing](CONTENT))
    with open_stream(path) as stream:
        assert stream.path == (f"{path}: vectors.txt" if packing == "zip" else str(path))
        assert (stream.head, stream.head_is_all, stream.reader.read()) == (CONTENT, True, CONTENT)
        assert stream.is_sealed == (packing != "plain")
        assert stream.size == (len(CONTENT) if packing == "plain" else None)


class Terminal(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self):
        return self._is_terminal


@pytest.mark.parametrize(
    ("packing", "is_terminal", "progress", "shown"),
    [
        *((packing, True, None, True) for packing in ("plain", *COMPRESSIONS)),
        ("plain", False, None, False),
        ("plain", False, True, True),
        ("plain", True, False, False),
    ],
)
def test_progress_in_bytes_of_the_file(write, monkeypatch, packing, is_terminal, progress, shown):
    path = write(PACKERS[packing](long_content()))
    monkeypatch.setattr("sys.stderr", terminal := Terminal(is_terminal))
    read_vectors(path, progress=progress)
    output = terminal.getvalue()
    assert bool(output) == shown
    if shown:
        assert "vectors.txt: 100%" in output and f"{path.stat().st_size / 1000:.1f}k/" in output


def test_progress_in_bytes_of_a_member(write, monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal := Terminal(True))
    read_vectors(write(zipped(content := long_content())))
    assert (
        "vectors.txt: vectors.txt: 100%" in terminal.getvalue()
        and f"{len(content) / 1000:.1f}k/" in terminal.getvalue()
    )


def test_no_progress_bar_without_standard_error(write, monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    assert len(read_vectors(write(CONTENT))) == 2


def test_an_abandoned_reading_closes_its_file(write, monkeypatch):
    opened = []
    real_open = open
    monkeypatch.setattr(
        "builtins.open", lambda *args, **options: opened.append(real_open(*args, **options)) or opened[-1]
    )
    blocks = iter_vectors(write(long_content()))
    next(blocks)
    blocks.close()
    assert opened and all(file.closed for file in opened)
