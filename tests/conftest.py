"""What every test stands on: one Hypothesis profile, Keras on TensorFlow, and real data only where it was fetched."""

import os
import zipfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")  # tests/test_every_backend.py runs on the others too

import pytest
from hypothesis import HealthCheck, settings

from splitembed.bench import packages

# Derandomized: the same examples on every machine. No deadline: TensorFlow's first trace takes seconds.
settings.register_profile(
    "splitembed", derandomize=True, deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("splitembed")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked `needs_data(name, ...)` where `make data` has not put those packages."""
    missing = [name for mark in item.iter_markers("needs_data") for name in mark.args if not is_fetched(name)]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not in the data folder: `make data` fetches it")


def is_fetched(name: str) -> bool:
    return packages.archive_path(name).exists()


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    """An empty data folder."""
    monkeypatch.setenv("SPLITEMBED_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def no_pip(monkeypatch):
    """Make every download an error."""

    def refuse(*_args, **_kwargs):
        raise AssertionError("pip was called")

    monkeypatch.setattr(packages.subprocess, "run", refuse)


@pytest.fixture
def place_archive(data_folder, no_pip, monkeypatch):
    """Put a made-up wheel in the place of a real one, its own sum recorded."""

    def place(name, members):
        path = packages.archive_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w") as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        monkeypatch.setitem(packages.PACKAGES, name, packages.PACKAGES[name]._replace(sha256=packages.sha256_of(path)))
        return path

    return place
