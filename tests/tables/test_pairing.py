"""Pairs of tables: the frozen table of a trainable one is found, and any other is refused."""

import dataclasses

import numpy as np
import pytest

from splitembed.errors import FingerprintError, TableFormatError
from splitembed.tables import (
    check_pair,
    frozen_name,
    open_frozen,
    open_pair,
    open_trainable,
    pairing,
    write_frozen,
    write_trainable,
)
from tests.helpers.bits import same_bits
from tests.helpers.table_heads import attribute, rewrite_head

ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.fixture
def save(tmp_path):
    """Write a frozen table with `ROWS + shift`, and optionally a trainable one for it."""

    def save(frozen, trainable=None, shift=0, frozen_path="", remap=(2, ~0)):
        (tmp_path / frozen).parent.mkdir(parents=True, exist_ok=True)
        fingerprint = write_frozen(tmp_path / frozen, ROWS + np.float32(shift))
        if trainable:
            (tmp_path / trainable).parent.mkdir(parents=True, exist_ok=True)
            write_trainable(
                tmp_path / trainable, [[9.0, 9.0]], remap, frozen_fingerprint=fingerprint, frozen_path=frozen_path
            )
        return fingerprint

    return save


def test_tables_in_one_folder(tmp_path, save):
    save("frozen.h5", "trainable.h5")
    for given in (tmp_path, tmp_path / "trainable.h5", str(tmp_path)):
        trainable, frozen = open_pair(given, verify=True)
        same_bits(frozen.vectors, ROWS)
        assert trainable.remap.tolist() == [2, -1]


def test_a_shared_table_is_found_at_the_recorded_path(tmp_path, save):
    save("shared/glove.h5", "model/trainable.h5", frozen_path=str(tmp_path / "shared" / "glove.h5"))
    assert open_pair(tmp_path / "model")[1].path == tmp_path / "shared" / "glove.h5"


def test_the_hint_may_be_relative_to_the_trainable_table(tmp_path, save, monkeypatch):
    save("shared/glove.h5", "model/trainable.h5", frozen_path="../shared/glove.h5")
    monkeypatch.chdir("/")
    same_bits(open_pair(tmp_path / "model")[1].vectors, ROWS)


def test_the_table_in_the_same_folder_comes_first_if_it_is_the_right_one(tmp_path, save):
    hint = str(tmp_path / "shared" / "glove.h5")
    save("shared/glove.h5", "model/trainable.h5", frozen_path=hint)
    save("model/frozen.h5", shift=1)
    assert open_pair(tmp_path / "model")[1].path == tmp_path / "shared" / "glove.h5"
    save("model/frozen.h5")
    assert open_pair(tmp_path / "model")[1].path == tmp_path / "model" / "frozen.h5"


def test_the_frozen_table_can_be_a_path_or_an_opened_table(tmp_path, save):
    save("anywhere.h5", "trainable.h5")
    table = open_frozen(tmp_path / "anywhere.h5")
    assert open_pair(tmp_path, table)[1] is table
    same_bits(open_pair(tmp_path, tmp_path / "anywhere.h5")[1].vectors, ROWS)


@pytest.mark.parametrize("hint", ["", "gone/glove.h5"])
def test_the_message_for_a_missing_table_has_its_fingerprint_and_paths(tmp_path, save, hint):
    fingerprint = save("anywhere.h5", "model/trainable.h5", frozen_path=hint)
    with pytest.raises(FileNotFoundError) as caught:
        open_pair(tmp_path / "model")
    for part in (fingerprint, str(tmp_path / "model" / "frozen.h5"), hint, "`frozen`"):
        assert part in str(caught.value)


@pytest.mark.parametrize("named", [True, False])
def test_another_table_is_refused_with_both_fingerprints(tmp_path, save, named):
    expected = save("frozen.h5", "trainable.h5")
    found = save("frozen.h5", shift=1)
    with pytest.raises(FingerprintError) as caught:
        open_pair(tmp_path, tmp_path / "frozen.h5" if named else None)
    for part in (expected, found, "trainable.h5", "frozen.h5"):
        assert part in str(caught.value)


def test_a_remap_beyond_the_frozen_table_is_refused(tmp_path, save):
    save("frozen.h5", "trainable.h5", remap=[0, 3, 4])
    with pytest.raises(TableFormatError, match=r"`remap\[2\]` is row 4; .*frozen\.h5 has 3 rows"):
        open_pair(tmp_path)


def test_dims_must_agree(tmp_path, save):
    fingerprint = save("frozen.h5")
    write_trainable(tmp_path / "trainable.h5", [[9.0]], [0], frozen_fingerprint=fingerprint)
    with pytest.raises(TableFormatError, match=r"trainable\.h5 has dim 1; expected 2, as .*frozen\.h5"):
        open_pair(tmp_path)


def test_tables_in_memory_are_named_as_such(tmp_path, save):
    save("frozen.h5", "trainable.h5")
    frozen = dataclasses.replace(open_frozen(tmp_path / "frozen.h5"), path=None, fingerprint="sha256:other")
    trainable = dataclasses.replace(open_trainable(tmp_path / "trainable.h5"), path=None)
    with pytest.raises(FingerprintError, match=r"the trainable table was made for .*the frozen table is sha256:other"):
        check_pair(frozen, trainable)


def test_tables_without_rows_are_a_pair(tmp_path):
    fingerprint = write_frozen(tmp_path / "frozen.h5", np.zeros((0, 2), np.float32))
    write_trainable(tmp_path / "trainable.h5", np.zeros((0, 2), np.float32), [], frozen_fingerprint=fingerprint)
    trainable, frozen = open_pair(tmp_path, verify=True)
    assert (frozen.num_frozen, len(trainable.vectors), len(trainable.remap)) == (0, 0, 0)


def test_verify_reaches_both_tables(tmp_path, save):
    save("frozen.h5", "trainable.h5")
    for name in ("frozen.h5", "trainable.h5"):
        path = tmp_path / name
        rewrite_head(path, attribute("fingerprint", "sha256:" + "2" * 64))
        if name == "trainable.h5":
            open_pair(tmp_path)
        else:
            rewrite_head(tmp_path / "trainable.h5", attribute("frozen_fingerprint", "sha256:" + "2" * 64))
        with pytest.raises(TableFormatError, match=f"{name} is damaged: its content has the fingerprint"):
            open_pair(tmp_path, verify=True)
        save("frozen.h5", "trainable.h5")


def test_a_folder_without_tables_is_named_as_it_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"Found no trainable\.h5 in the folder") as caught:
        open_pair(".")
    assert caught.value.filename == "."


def test_a_recorded_path_outside_a_folder_is_named_and_not_opened(tmp_path, save, monkeypatch):
    (tmp_path / "inside").mkdir()
    save("frozen.h5", "inside/trainable.h5", frozen_path="../frozen.h5")
    assert open_pair(tmp_path / "inside")[1].path.samefile(tmp_path / "frozen.h5")
    assert open_pair(tmp_path / "inside", within=tmp_path)[1].num_frozen
    opened = []
    monkeypatch.setattr(pairing, "open_frozen", lambda path, **_: opened.append(path))
    with pytest.raises(FileNotFoundError, match=r"the recorded path, \.\./frozen\.h5, is outside .*inside"):
        open_pair(tmp_path / "inside", within=tmp_path / "inside")
    assert opened == []


def test_a_table_under_its_fingerprint_is_found(tmp_path, save):
    save("frozen.h5", "trainable.h5")
    fingerprint = open_trainable(tmp_path / "trainable.h5").frozen_fingerprint
    (tmp_path / "frozen.h5").rename(tmp_path / frozen_name(fingerprint))
    assert open_pair(tmp_path)[1].fingerprint == fingerprint
    write_frozen(tmp_path / "frozen.h5", ROWS + 1)
    assert open_pair(tmp_path)[1].fingerprint == fingerprint


def test_a_pair_replaced_while_it_is_opened_is_read_again(tmp_path, save, monkeypatch):
    save("frozen.h5", "trainable.h5")

    def replace_first(path, **options):
        monkeypatch.undo()
        fingerprint = write_frozen(tmp_path / "frozen.h5", ROWS + 1)
        write_trainable(tmp_path / "trainable.h5", [[9.0, 9.0]], [0], frozen_fingerprint=fingerprint)
        return open_frozen(path, **options)

    monkeypatch.setattr(pairing, "open_frozen", replace_first)
    assert open_pair(tmp_path)[1].vectors.tolist() == (ROWS + 1).tolist()
