"""The `verify` command: both views of whole files, and the fault of each damaged one."""

import json
import shutil

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import splitembed as se
from splitembed.cli.commands import main
from splitembed.cli.verify import as_text, verify
from splitembed.tables import open_frozen
from tests.golden import FOLDER
from tests.helpers.table_heads import attribute, rewrite_head


@pytest.fixture
def folder(tmp_path):
    words = ["", "[UNK]", "the", "of", *(f"w{number}" for number in range(2_000))]
    vectors = {"the": [1.0, 2.0], "of": [3.0, 4.0], **{f"w{number}": [number, 1.0] for number in range(2_000)}}
    se.build_split(words, vectors, frozen_dtype="int8").save(tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.h5")), ids=lambda path: path.stem)
def test_the_golden_files_are_whole(path):
    found = verify(path)
    assert found["ok"], found


def test_a_directory_is_checked_as_a_pair(folder):
    found = verify(folder)
    assert [each["format"] for each in found["files"]] == ["splitembed.trainable", "splitembed.frozen"]
    assert found["ok"] and as_text(found).count(": whole, splitembed.") == 2
    (folder / "trainable.h5").unlink()
    assert [each["format"] for each in verify(folder)["files"]] == ["splitembed.frozen"]


def edited(name, value=None):
    """Return a change of a dataset or an attribute as another HDF5 tool makes it."""

    def change(path):
        with h5py.File(path, "r+") as file:
            if value is None:
                file[name][1500] += 1
            else:
                file.attrs[name] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edited("vectors"), "its content has the fingerprint|first or last bytes of `vectors`"),
        (edited("words/utf8"), "fingerprint|`words/utf8`"),
        (edited("scale"), "`scale`"),
        (edited("source", "elsewhere"), "is not as splitembed wrote it"),
        (edited("dim", np.int32(2)), "the attribute `dim` is 2 in its head"),
        (lambda path: path.write_bytes(path.read_bytes()[:-9]), "is not as splitembed wrote it"),
        (lambda path: path.write_bytes(b"text"), "without the head"),
        (lambda path: rewrite_head(path, attribute("words_fingerprint", "sha256:0")), "`words_fingerprint`"),
        (lambda path: path.unlink(), "was not found"),
    ],
)
def test_a_change_is_found(folder, change, message):
    change(folder / "frozen.h5")
    found = verify(folder)
    faults = [each["fault"] for each in found["files"] if each["fault"]]
    assert not found["ok"]
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(faults)


def test_arrays_that_differ_for_hdf5_alone_are_found(folder, tmp_path):
    """The head of one file before the arrays of another that has the same places for others."""
    path = folder / "frozen.h5"
    head = path.read_bytes()[:4096]
    with h5py.File(path, "r+") as file:
        words = file["words/offsets"][:]
        file.move("words/offsets", "words/old")
        file["words/offsets"] = words[::-1].copy()
    shutil.copy(path, tmp_path / "longer.h5")
    rewrite_head(path, lambda found: found.update(file_size=path.stat().st_size))
    assert path.read_bytes()[:16] == head[:16] and open_frozen(path, verify=True)
    found = verify(path)
    assert "the array `words/offsets` is 'some numbers' in its head, and 'others' for HDF5" in as_text(found)


def test_the_command_says_it_in_lines_in_json_and_by_its_exit_code(folder):
    run = CliRunner().invoke
    done = run(main, ["verify", str(folder)])
    assert done.exit_code == 0 and done.output.count("whole") == 2
    (folder / "frozen.h5").write_bytes(b"text")
    done = run(main, ["verify", str(folder), "--json", "-"])
    found = json.loads(done.stdout)
    assert done.exit_code == 1 and not found["ok"] and found["files"][0]["path"].endswith("trainable.h5")
