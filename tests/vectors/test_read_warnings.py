"""ReadWarnings: counted, told once, at the line that asked."""

import warnings

import pytest

from splitembed.errors import VectorFileWarning
from splitembed.vectors import iter_vectors, read_vectors

DOUBTFUL = (["the", "the"], [[1.0], [2.0]])


def test_the_warning_names_the_line_that_asked():
    for read in (lambda: read_vectors(DOUBTFUL), lambda: list(iter_vectors(DOUBTFUL))):
        with pytest.warns(VectorFileWarning) as caught:
            read()
        assert [each.filename for each in caught] == [__file__]


def test_no_doubt_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_vectors(DOUBTFUL, [])
