"""A reader sees the old file or the new one, whenever writing fails."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from splitembed.errors import TableFormatError
from splitembed.tables import FrozenWriter, open_frozen, open_trainable, write_frozen, write_trainable
from splitembed.tables import atomic_files as files_module
from splitembed.tables.atomic_files import writable_folder
from tests.helpers.bits import same_bits

ROOT = Path(__file__).parents[2]
OLD, NEW = np.zeros((4, 2), np.float32), np.ones((4, 2), np.float32)
FROZEN = "sha256:" + "0" * 64


def write_with(writer, path, rows):
    if writer == "write_frozen":
        write_frozen(path, rows, words=list("abcd"))
    elif writer == "FrozenWriter":
        with FrozenWriter(path) as stream:
            stream.append(list("abcd"), rows)
    else:
        write_trainable(path, rows, [0, ~3], frozen_fingerprint=FROZEN)


def open_with(writer, path):
    return open_trainable(path, verify=True) if writer == "write_trainable" else open_frozen(path, verify=True)


WRITERS = ["write_frozen", "FrozenWriter", "write_trainable"]


class Interruption(BaseException):
    """An exception outside `Exception`, like KeyboardInterrupt."""


STEPS = ["spool.create_dataset", "atomic_files._synchronize", "atomic_files.os.replace"]
CASES = [
    *((writer, step, OSError("disk full"), True) for writer in WRITERS for step in STEPS),
    *(("write_frozen", step, Interruption(), False) for step in STEPS),
]


@pytest.mark.parametrize(("writer", "step", "error", "existing"), CASES)
def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, writer, step, error, existing):
    path = tmp_path / "table.h5"
    if existing:
        write_with(writer, path, OLD)

    def fail(*_arguments):
        raise error

    monkeypatch.setattr(f"splitembed.tables.{step}", fail)
    with pytest.raises(type(error)):
        write_with(writer, path, NEW)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == (["table.h5"] if existing else [])
    if existing:
        same_bits(open_with(writer, path).vectors, OLD)
    write_with(writer, path, NEW)
    same_bits(open_with(writer, path).vectors, NEW)


KILLED = """
import os, signal, sys
import numpy as np
from splitembed.tables import atomic_files, spool

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

{step} = die
sys.path.insert(0, "tests/tables")
from tests.tables.test_atomic_files import write_with, NEW
write_with("{writer}", sys.argv[1], NEW)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nothing to kill with")
@pytest.mark.parametrize(("writer", "step"), zip(WRITERS, STEPS, strict=True))
def test_a_killed_writer_leaves_the_old_file_whole(tmp_path, writer, step):
    path = tmp_path / "table.h5"
    write_with(writer, path, OLD)
    code = KILLED.format(writer=writer, step=step)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, env=environment, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    same_bits(open_with(writer, path).vectors, OLD)
    left = sorted(os.listdir(tmp_path))
    assert left[-1] == "table.h5"
    assert all(name.startswith(".table.h5.") and name.endswith(".tmp") for name in left[:-1])
    write_with(writer, path, NEW)
    same_bits(open_with(writer, path).vectors, NEW)


@pytest.mark.parametrize("writer", WRITERS)
def test_the_bytes_reach_the_disk_before_the_name_does(tmp_path, monkeypatch, writer):
    done = []
    synchronize, replace = files_module._synchronize, os.replace
    monkeypatch.setattr(files_module, "_synchronize", lambda path: (done.append(path), synchronize(path)))
    monkeypatch.setattr(files_module.os, "replace", lambda *names: (done.append(names[1]), replace(*names)))
    write_with(writer, tmp_path / "table.h5", NEW)
    assert [path.suffix for path in done[:2]] == [".tmp", ".h5"]
    assert done[2:] == [tmp_path]


def test_a_folder_that_cannot_be_synchronised_is_accepted(tmp_path, monkeypatch):
    synchronize = files_module._synchronize

    def refuse_folders(path):
        if path.is_dir():
            raise OSError("not supported")
        synchronize(path)

    monkeypatch.setattr(files_module, "_synchronize", refuse_folders)
    write_frozen(tmp_path / "table.h5", NEW)
    assert os.listdir(tmp_path) == ["table.h5"]


def test_a_mapped_table_outlives_its_file(tmp_path):
    path = tmp_path / "table.h5"
    # Many pages, most untouched.
    rows = np.random.default_rng(0).standard_normal((5_000, 40)).astype(np.float32)
    write_frozen(path, rows)
    first = open_frozen(path)
    write_frozen(path, rows + 1)
    second = open_frozen(path)
    path.unlink()
    assert first.mapped
    assert second.mapped
    same_bits(first.vectors, rows)
    same_bits(second.vectors, rows + 1)


def test_the_target_of_a_symbolic_link_is_replaced(tmp_path):
    (tmp_path / "store").mkdir()
    write_frozen(tmp_path / "store" / "table.h5", OLD)
    (tmp_path / "link.h5").symlink_to("store/table.h5")
    for writer in ("write_frozen", "FrozenWriter"):
        write_with(writer, tmp_path / "link.h5", NEW)
        assert (tmp_path / "link.h5").is_symlink()
        same_bits(open_frozen(tmp_path / "store" / "table.h5").vectors, NEW)
        assert os.listdir(tmp_path / "store") == ["table.h5"]


@pytest.mark.skipif(os.name != "posix", reason="no such rights elsewhere")
@pytest.mark.parametrize("writer", WRITERS)
def test_the_umask_decides_who_can_read_a_new_file(tmp_path, writer):
    before = os.umask(0o022)
    try:
        write_with(writer, tmp_path / "table.h5", NEW)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "table.h5").stat().st_mode) == 0o644


@pytest.mark.parametrize("writer", WRITERS)
def test_the_same_table_makes_the_same_bytes(tmp_path, writer):
    for name in ("a.h5", "b.h5"):
        write_with(writer, tmp_path / name, NEW)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe")
def test_a_pipe_or_device_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="A device or pipe cannot be replaced"):
        write_frozen(tmp_path / "pipe", np.eye(2, dtype=np.float32))
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_missing_folder_is_named_by_the_path_that_was_given(tmp_path, monkeypatch, writer):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="The folder of this file does not exist") as caught:
        write_with(writer, "nope/table.h5", NEW)
    assert caught.value.filename == "nope/table.h5"


def test_a_folder_that_cannot_be_written_is_named_by_the_path_that_was_given(tmp_path, monkeypatch):
    monkeypatch.setattr("splitembed.tables.atomic_files.os.access", lambda folder, mode: False)
    with pytest.raises(PermissionError, match="cannot be written") as caught:
        writable_folder(tmp_path / "table.h5")
    assert caught.value.filename == str(tmp_path / "table.h5")


def test_a_table_does_not_replace_one_of_the_other_kind(tmp_path):
    write_frozen(tmp_path / "frozen.h5", OLD)
    with pytest.raises(TableFormatError, match=r"frozen.h5 exists and is a table of the format splitembed.frozen"):
        write_trainable(tmp_path / "frozen.h5", OLD, np.arange(2), frozen_fingerprint=FROZEN)
    same_bits(open_frozen(tmp_path / "frozen.h5").vectors, OLD)
