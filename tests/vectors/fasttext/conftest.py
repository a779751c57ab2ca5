"""Files of fastText models: a plain one is mapped, a compressed one is read from front to back."""

import gzip

import pytest


@pytest.fixture(params=["mapped", "streamed"])
def write(request, tmp_path):
    """Return a function that writes the bytes of a model to a file, in each form, and returns its path."""

    def write(content: bytes):
        path = tmp_path / "model"
        path.write_bytes(content if request.param == "mapped" else gzip.compress(content))
        return path

    return write
