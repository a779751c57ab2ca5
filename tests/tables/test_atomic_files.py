"""A reader sees the old file or the new one, whenever writing fails."""

import errno
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
from splitembed.tables.atomic_files import locked_folder, replacing, writable_folder
from tests.helpers.bits import same_bits

ROOT = Path(__file__).parents[2]
OLD, NEW = np.zeros((4, 2), np.float32), np.ones((4, 2), np.float32)
FROZEN = "sha256:" + "0" * 64


def write_with(writer, path, rows):
    if writer == "write_frozen":
        write_frozen(path, rows, words=list("abcd") if len(rows) == 4 else None)
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


STEPS = ["write_table._create", "atomic_files.os.fsync", "atomic_files.os.replace"]
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
from splitembed.tables import atomic_files, write_table

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
    assert len(left) == 2 and left[0].startswith(".table.h5.") and left[0].endswith(".tmp")
    write_with(writer, path, NEW)
    same_bits(open_with(writer, path).vectors, NEW)
    assert os.listdir(tmp_path) == ["table.h5"]


@pytest.mark.skipif(os.name != "posix", reason="no such locks")
def test_the_temporary_file_of_a_live_writer_stays(tmp_path):
    (tmp_path / ".a.h5.0123abcd.tmp").write_bytes(b"left by a dead writer")
    (tmp_path / ".a.h5.tmp").write_bytes(b"of someone else")
    with replacing(tmp_path / "a.h5") as mine:
        write_frozen(tmp_path / "b.h5", OLD)
        assert sorted(os.listdir(tmp_path)) == sorted([mine.name, ".a.h5.tmp", "b.h5"])
    assert sorted(os.listdir(tmp_path)) == [".a.h5.tmp", "a.h5", "b.h5"]


@pytest.mark.skipif(os.name != "posix", reason="no such locks")
def test_a_writer_whose_file_was_taken_for_a_leftover_makes_another(tmp_path, monkeypatch):
    taken, lock = [], files_module.fcntl.flock

    def take_first(descriptor, how):
        if not taken:
            taken.extend(tmp_path.glob(".*.tmp"))
            taken[0].unlink()
        lock(descriptor, how)

    monkeypatch.setattr(files_module.fcntl, "flock", take_first)
    write_frozen(tmp_path / "table.h5", NEW)
    same_bits(open_frozen(tmp_path / "table.h5").vectors, NEW)


@pytest.mark.skipif(os.name != "posix", reason="no such locks")
@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_written_and_read(tmp_path, monkeypatch, code):
    def refuse(*_):
        raise OSError(code, "no locks")

    (tmp_path / ".a.h5.0123abcd.tmp").write_bytes(b"perhaps of a live writer")
    monkeypatch.setattr(files_module.fcntl, "flock", refuse)
    for writer in WRITERS:
        write_with(writer, tmp_path / f"{writer}.h5", NEW)
        same_bits(open_with(writer, tmp_path / f"{writer}.h5").vectors, NEW)
    with locked_folder(tmp_path):
        assert (tmp_path / ".a.h5.0123abcd.tmp").exists()


@pytest.mark.skipif(os.name != "posix", reason="no such rights elsewhere")
@pytest.mark.parametrize("writer", WRITERS)
def test_a_replaced_file_keeps_its_mode_and_owner(tmp_path, monkeypatch, writer):
    path, owners = tmp_path / "table.h5", []
    write_with(writer, path, OLD)
    path.chmod(0o640)
    monkeypatch.setattr(files_module.os, "chown", lambda _, *owner: owners.append(owner))
    write_with(writer, path, NEW)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert owners == [(os.getuid(), os.getgid())]


FULL = """
import resource, signal, sys
import numpy as np
from tests.tables.test_atomic_files import write_with
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    write_with(sys.argv[1], sys.argv[2], np.ones((100_000, 2), np.float32))
except OSError as error:
    print("OSError", error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
@pytest.mark.parametrize("limit", [1_000, 5_000, 100_000])
@pytest.mark.parametrize("writer", ["write_frozen", "write_trainable"])
def test_a_full_disk_leaves_the_old_file_and_is_an_oserror(tmp_path, writer, limit):
    """A limit on the size of files stands for it, because it fails at the same calls."""
    path = tmp_path / "table.h5"
    write_with(writer, path, OLD)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", FULL, writer, str(path), str(limit)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.startswith("OSError"), done.stderr
    assert os.listdir(tmp_path) == ["table.h5"]
    same_bits(open_with(writer, path).vectors, OLD)


@pytest.mark.parametrize("writer", WRITERS)
def test_the_bytes_reach_the_disk_before_the_name_does(tmp_path, monkeypatch, writer):
    done = []
    synchronize, replace = os.fsync, os.replace
    monkeypatch.setattr(files_module.os, "fsync", lambda number: (done.append("fsync"), synchronize(number)))
    monkeypatch.setattr(files_module.os, "replace", lambda *names: (done.append("replace"), replace(*names)))
    write_with(writer, tmp_path / "table.h5", NEW)
    assert done == ["fsync", "replace", "fsync"]


def test_a_folder_that_cannot_be_synchronised_is_accepted(tmp_path, monkeypatch):
    synchronize = os.fsync

    def refuse_folders(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError("not supported")
        synchronize(descriptor)

    monkeypatch.setattr(files_module.os, "fsync", refuse_folders)
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
