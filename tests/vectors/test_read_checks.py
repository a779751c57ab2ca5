"""The checks of every reading: invalid options, wanted words, copies of rows."""

import numpy as np
import pytest

from splitembed.errors import VectorFormatError, VocabularyError
from splitembed.vectors import iter_vectors, read_vectors
from splitembed.vectors.read_checks import ReadChecks

SOURCE = {"the": [1.0, 2.0], "of": [3.0, 4.0]}


@pytest.mark.parametrize("read", [read_vectors, lambda *args, **options: list(iter_vectors(*args, **options))])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"non_finite": "drop"}, VectorFormatError, "`non_finite` must be one of error, zero. Received: 'drop'"),
        ({"dim": 0}, VectorFormatError, "`dim` must be an integer, at least 1, or None. Received: 0"),
        ({"vocabulary": b"the"}, VocabularyError, "`vocabulary` must be an iterable of tokens. Received: b'the'"),
        ({"vocabulary": 7}, VocabularyError, "must be an iterable of tokens. Received: 7"),
        ({"vocabulary": ["the", None]}, VocabularyError, "must hold strings. Received: token 1 is None of type None"),
        ({"vocabulary": ["the", b"of"]}, VocabularyError, "token 1 is b'of' of type bytes"),
    ],
)  # fmt: skip
def test_invalid_options_are_refused(read, options, error, message):
    with pytest.raises(error, match=message):
        read(SOURCE, **options)


@pytest.mark.parametrize(
    "vocabulary", [["of"], ("of", "of"), {"of"}, {"of": 1}, iter(["of"]), (each for each in ["of"])]
)
def test_any_iterable_is_a_vocabulary(vocabulary):
    assert read_vectors(SOURCE, vocabulary).words == ["of"]


def test_rows_that_fit_are_not_copied():
    rows = np.ones((2, 3), np.float32)
    assert ReadChecks("by hand").accept(["a", "b"], rows, [1, 2]).vectors is rows


def test_rows_are_never_changed_in_place():
    rows = np.array([[np.nan, 1.0]], np.float32)
    block = ReadChecks("by hand", non_finite="zero").accept(["a"], rows, [1])
    assert block.vectors.tolist() == [[0.0, 1.0]] and np.isnan(rows[0, 0])
