"""Fixtures that make sources of vectors from bytes."""

import pytest

from tests.helpers.packings import PACKINGS, Delivery


@pytest.fixture
def write(tmp_path):
    """Return a function that writes bytes to a file and returns its path."""

    def write(content: bytes):
        path = tmp_path / "vectors.txt"
        path.write_bytes(content)
        return path

    return write


@pytest.fixture
def deliver(tmp_path, monkeypatch):
    """Return a function that makes a plain file of bytes, and can be called repeatedly."""
    return Delivery("plain", tmp_path, monkeypatch)


@pytest.fixture(params=PACKINGS)
def packed(request, tmp_path, monkeypatch):
    """Return a function that makes a source of bytes in each packing, and can be called repeatedly."""
    return Delivery(request.param, tmp_path, monkeypatch)
