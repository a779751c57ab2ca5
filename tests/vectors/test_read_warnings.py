"""Warnings about suspicious content: counted, and given once, at the line of the caller."""

import warnings

import pytest

from splitembed.errors import VectorFileWarning
from splitembed.vectors import iter_vectors, read_vectors

SUSPICIOUS = (["the", "the"], [[1.0], [2.0]])


def test_the_warning_names_the_line_of_the_caller():
    for read in (lambda: read_vectors(SUSPICIOUS), lambda: list(iter_vectors(SUSPICIOUS))):
        with pytest.warns(VectorFileWarning) as caught:
            read()
        assert [each.filename for each in caught] == [__file__]


def test_valid_content_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_vectors(SUSPICIOUS, [])
