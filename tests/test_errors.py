"""The classes of errors, the shortening of lists in messages, and the error of a missing library."""

import pickle
import sys

import pytest

from splitembed import errors
from splitembed.errors import UnknownTokenError, load_library, shortened

KINDS = {
    "VectorFormatError": ValueError,
    "TableFormatError": ValueError,
    "FingerprintError": ValueError,
    "VocabularyError": ValueError,
    "SplitError": ValueError,
    "TokenIdError": IndexError,
    "UnknownTokenError": KeyError,
    "MissingTableError": RuntimeError,
}


@pytest.mark.parametrize("name", KINDS)
def test_an_error_is_also_of_the_kind_that_callers_expect(name):
    error = getattr(errors, name)("where, found, expected")
    assert isinstance(error, KINDS[name]) and isinstance(error, errors.SplitEmbedError)
    assert str(error) == str(pickle.loads(pickle.dumps(error))) == "where, found, expected"


def test_the_module_docstring_lists_every_class():
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and kind.__module__ == errors.__name__:
            assert name in errors.__doc__


def test_the_message_of_an_unknown_token_is_not_quoted():
    assert str(UnknownTokenError("line\nline")) == "line\nline" and str(UnknownTokenError()) == ""


def test_long_lists_are_shortened():
    assert shortened(["a", "b", "c"]) == "'a', 'b', 'c'"
    assert shortened(list("abcde")) == "'a', 'b', 'c' and 2 more"
    assert shortened(range(5000), limit=1, show=str) == "0 and 4,999 more"
    assert shortened([]) == ""


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    for name in ("gensim", "gensim.models"):
        monkeypatch.setitem(sys.modules, name, None)
    message = r'^v\.kv needs the library gensim, which is not installed .*`pip install "splitembed\[g\]"`'
    with pytest.raises(ImportError, match=message):
        load_library("gensim.models", "v.kv", "g")


def test_an_installed_library_is_imported():
    assert load_library("os.path", "v", "g").basename("a/b") == "b"
