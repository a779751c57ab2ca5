"""Files of vectors for tests, made of byte literals: plain and gzip, under names that say something else (CASES X3)."""

import gzip

import pytest

from tests.helpers.packings import PACKINGS, Delivery


@pytest.fixture(params=["plain", "gzip"])
def write(request, tmp_path):
    """Writes bytes as a file and returns its path."""

    def write(content: bytes):
        path = tmp_path / {"plain": "vectors.gz", "gzip": "vectors.txt"}[request.param]
        path.write_bytes(content if request.param == "plain" else gzip.compress(content))
        return path

    return write


@pytest.fixture
def write_plain(tmp_path):
    """Writes bytes as they are and returns the path."""

    def write(content: bytes):
        path = tmp_path / "vectors.txt"
        path.write_bytes(content)
        return path

    return write


@pytest.fixture(params=PACKINGS)
def deliver(request, tmp_path, monkeypatch):
    """Gives bytes to a reader in every packing there is, anew at each call."""
    return Delivery(request.param, tmp_path, monkeypatch)
