"""Missing libraries: one error that names the file, the library and the extra."""

import sys

import pytest

from splitembed.vectors.optional import load_library


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    for name in ("gensim", "gensim.models"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        ImportError, match=r'^v\.kv is read with the library gensim, which is missing .*"splitembed\[g\]"'
    ):
        load_library("gensim.models", "v.kv", "g")


def test_a_library_that_is_there_is_imported():
    assert load_library("os.path", "v", "g").basename("a/b") == "b"
