"""Many readers, one writer, forked children: right values, or an error that gives the reason (CASES P5)."""

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from splitembed.errors import TableFormatError
from splitembed.tables import FrozenWriter, open_frozen, open_trainable, write_frozen, write_trainable
from tests.helpers.bits import same_bits

ROOT = Path(__file__).parents[2]
ROWS = np.random.default_rng(0).standard_normal((1_000, 8)).astype(np.float32)
WORDS = [f"word {number}" for number in range(len(ROWS))]
posix = pytest.mark.skipif(sys.platform == "win32", reason="locks and forks are others there")


@pytest.fixture
def path(tmp_path):
    write_frozen(tmp_path / "frozen.h5", ROWS, words=WORDS)
    return tmp_path / "frozen.h5"


def python(code, *arguments):
    """Run code in a new interpreter, which has no threads of other libraries, so that it can fork."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )


def test_P5_our_own_writer_does_not_disturb_readers(path):
    with FrozenWriter(path) as writer:
        writer.append(["new"], ROWS[:1])
        same_bits(open_frozen(path, verify=True).vectors, ROWS)
    assert open_frozen(path, verify=True).words == ["new"]


@posix
@pytest.mark.parametrize("mode", ["r+", "w"])
def test_P5_a_file_open_for_writing_in_this_process_is_refused(path, mode):
    with h5py.File(path, mode), pytest.raises(TableFormatError, match=r"frozen\.h5 is open for writing elsewhere"):
        open_frozen(path)


@posix
def test_P5_a_file_open_for_writing_in_another_process_is_refused(path):
    code = "import h5py, sys\nfile = h5py.File(sys.argv[1], 'r+')\nprint('open', flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdin=-1, stdout=-1, text=True) as writer:
        assert writer.stdout.readline() == "open\n"
        with pytest.raises(TableFormatError, match=r"frozen\.h5 is open for writing elsewhere"):
            open_frozen(path)
        writer.communicate("")
    assert writer.returncode == 0
    same_bits(open_frozen(path, verify=True).vectors, ROWS)


def test_P5_readers_share(path):
    mine = open_frozen(path)
    with h5py.File(path) as foreign:
        again = open_frozen(path)
        same_bits(foreign["vectors"][:], again.vectors)
    code = (
        "import sys\nfrom splitembed.tables import open_frozen\nprint(open_frozen(sys.argv[1], verify=True).words[-1])"
    )
    done = python(code, path)
    assert done.stdout == "word 999\n", done.stderr
    same_bits(mine.vectors, ROWS)


def write_any(path, rows):
    if path.stem == "frozen":
        write_frozen(path, rows)
    else:
        write_trainable(path, rows, [0, ~1], frozen_fingerprint="sha256:")


@posix
@pytest.mark.parametrize(("name", "opens"), [("frozen.h5", open_frozen), ("trainable.h5", open_trainable)])
def test_a_mapped_file_cannot_be_edited_in_place_by_hdf5(tmp_path, name, opens):
    """The map keeps the lock of a reader, so that no tool changes its rows; the file can be replaced."""
    path = tmp_path / name
    write_any(path, ROWS)
    table = opens(path)
    assert table.mapped
    with pytest.raises(BlockingIOError):
        h5py.File(path, "r+")
    write_any(path, ROWS + 1)
    same_bits(table.vectors, ROWS)
    with h5py.File(path, "r+") as file:
        file["vectors"][0] = 0
    same_bits(table.vectors, ROWS)


@posix
def test_no_lock_is_kept_of_a_file_that_was_read(tmp_path, path, monkeypatch):
    monkeypatch.setattr("splitembed.tables.read_trainable._MAPPED_FILES_CAN_BE_REPLACED", False)
    write_trainable(tmp_path / "trainable.h5", ROWS, [0], vocabulary=["a"], frozen_fingerprint="sha256:")
    kept = [open_frozen(path, memory_map=False), open_trainable(tmp_path / "trainable.h5")]
    for name in (path, tmp_path / "trainable.h5"):
        h5py.File(name, "r+").close()
    assert not kept[1].mapped
    assert kept[1].vocabulary == ["a"]


FORKS = """
import os, sys
import numpy as np
from splitembed.tables import open_frozen

table = open_frozen(sys.argv[1])
expected = np.random.default_rng(0).standard_normal((1_000, 8)).astype(np.float32)

def read():
    assert table.mapped
    assert table.take([999, 0, 0]).tobytes() == expected[[999, 0, 0]].tobytes()
    assert table.vectors.tobytes() == expected.tobytes()
    assert table.words[999] == "word 999"  # reads the file again, in this process
    assert open_frozen(sys.argv[1], verify=True).words[0] == "word 0"

children = []
for _ in range(2):
    child = os.fork()
    if not child:
        try:
            read()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    children.append(child)
read()
print([os.waitpid(child, 0)[1] for child in children])
"""


@posix
def test_P5_forked_children_read_the_right_values(path):
    done = python(FORKS, path)
    assert done.stdout == "[0, 0]\n", done.stderr
