"""A frozen table is found by its fingerprint, in the folders that SPLITEMBED_PATH lists."""

import os

import h5py
import numpy as np
import pytest

from splitembed.errors import FingerprintError
from splitembed.tables import find_frozen, is_frozen, open_pair, search_path, write_frozen, write_trainable

ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Put two folders on the search path, with a missing one between them."""
    made = [tmp_path / name for name in ("first", "gone", "second")]
    for folder in (made[0], made[2]):
        folder.mkdir()
    monkeypatch.setenv("SPLITEMBED_PATH", os.pathsep.join(map(str, made)))
    return made[0], made[2]


@pytest.fixture
def trainable(tmp_path):
    """Write a trainable table whose frozen table is at a path that no longer exists."""
    folder = tmp_path / "model"
    folder.mkdir()
    fingerprint = write_frozen(tmp_path / "once.h5", ROWS)
    (tmp_path / "once.h5").unlink()
    gone = str(tmp_path / "once.h5")
    write_trainable(folder / "trainable.h5", [[9.0, 9.0]], [2, ~0], frozen_fingerprint=fingerprint, frozen_path=gone)
    return folder


def test_a_table_is_found_under_any_name_in_any_folder(folders, trainable):
    fingerprint = write_frozen(folders[1] / "another.h5", ROWS)
    write_frozen(folders[0] / "other.h5", ROWS + 1)
    assert list(find_frozen(fingerprint)) == [folders[1] / "another.h5"]
    _, frozen = open_pair(trainable, verify=True)
    assert frozen.path == folders[1] / "another.h5"
    assert frozen.vectors.tobytes() == ROWS.tobytes()


def test_the_first_folder_comes_first_and_the_search_path_last(folders, trainable):
    for folder in folders:
        write_frozen(folder / "glove.h5", ROWS)
    assert open_pair(trainable)[1].path == folders[0] / "glove.h5"
    write_frozen(trainable / "frozen.h5", ROWS)
    assert open_pair(trainable)[1].path == trainable / "frozen.h5"


def test_another_table_beside_does_not_hide_the_right_one(folders, trainable):
    write_frozen(trainable / "frozen.h5", ROWS + 1)
    with pytest.raises(FingerprintError, match=r"frozen\.h5 is sha256"):
        open_pair(trainable)
    write_frozen(folders[0] / "glove.h5", ROWS)
    assert open_pair(trainable)[1].path == folders[0] / "glove.h5"


def test_other_files_are_skipped(folders, trainable):
    fingerprint = write_frozen(folders[0] / "z.h5", ROWS)
    (folders[0] / "a.h5").write_bytes(b"\x80\x04")
    (folders[0] / "b.h5").touch()
    (folders[0] / "c.h5").mkdir()
    (folders[0] / "d.h5").write_bytes((folders[0] / "z.h5").read_bytes()[:-20])
    (folders[0] / "e.h5").symlink_to(folders[0] / "nowhere.h5")
    if hasattr(os, "mkfifo"):
        # Opening a pipe would wait for its writer.
        os.mkfifo(folders[0] / "f.h5")
    with h5py.File(folders[0] / "g.h5", "w") as file:
        file.attrs["fingerprint"] = fingerprint
    write_trainable(folders[0] / "h.h5", [[9.0, 9.0]], [0], frozen_fingerprint=fingerprint)
    assert list(find_frozen(fingerprint)) == [folders[0] / "z.h5"]
    assert open_pair(trainable)[1].path == folders[0] / "z.h5"


def test_a_table_that_is_being_written_is_skipped(folders):
    fingerprint = write_frozen(folders[0] / "glove.h5", ROWS)
    with h5py.File(folders[0] / "glove.h5", "r+"):
        assert not is_frozen(folders[0] / "glove.h5", fingerprint)
    assert is_frozen(folders[0] / "glove.h5", fingerprint)


def test_the_message_for_a_missing_table_names_every_searched_path(folders, trainable, monkeypatch):
    with pytest.raises(FileNotFoundError) as caught:
        open_pair(trainable)
    for part in (str(trainable / "frozen.h5"), "once.h5", *map(str, folders), "`frozen`", "SPLITEMBED_PATH"):
        assert part in str(caught.value)
    monkeypatch.delenv("SPLITEMBED_PATH")
    with pytest.raises(FileNotFoundError, match="or list its folder in the environment variable SPLITEMBED_PATH"):
        open_pair(trainable)


def test_the_environment_variable_is_read_at_each_call(folders, trainable, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("SPLITEMBED_PATH", os.pathsep.join(["", os.path.join("~", "first"), ""]))
    assert search_path() == [folders[0]]
    write_frozen(folders[0] / "glove.h5", ROWS)
    assert open_pair(trainable)[1].path == folders[0] / "glove.h5"
    monkeypatch.delenv("SPLITEMBED_PATH")
    assert search_path() == []


def test_named_folders_replace_the_search_path(folders, tmp_path):
    fingerprint = write_frozen(tmp_path / "here.h5", ROWS)
    assert list(find_frozen(fingerprint, [str(tmp_path)])) == [tmp_path / "here.h5"]
    assert list(find_frozen(fingerprint)) == []


def test_rows_are_read_into_memory_on_request(folders, trainable):
    write_frozen(folders[0] / "glove.h5", ROWS)
    assert open_pair(trainable)[1].mapped
    for frozen in (None, folders[0] / "glove.h5"):
        _, table = open_pair(trainable, frozen, memory_map=False)
        assert not table.mapped and table.vectors.tobytes() == ROWS.tobytes()
