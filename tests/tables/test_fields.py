"""Attributes of our files: written with fixed length, read with checks."""

import io

import h5py
import numpy as np
import pytest

from splitembed.errors import SplitError, TableFormatError
from splitembed.tables import fields


@pytest.fixture
def file():
    with h5py.File(io.BytesIO(), "w") as file:
        yield file


@pytest.mark.parametrize("text", ["", "plain", "é😀\n", "\udcff/bad name"])
def test_text_is_read_as_it_was_written(file, text):
    fields.store_text(file, source=text)
    assert fields.text_attribute(file, "source") == text
    assert h5py.check_string_dtype(file.attrs.get_id("source").dtype).length is not None


def test_text_with_nul_is_refused(file):
    with pytest.raises(SplitError, match="`source` must not contain NUL characters"):
        fields.store_text(file, source="a\0b")


@pytest.mark.parametrize(
    ("value", "read", "expected"),
    [
        (7, fields.text_attribute, "text"),
        ("7", fields.integer_attribute, "an integer"),
        (7.0, fields.integer_attribute, "an integer"),
        (np.array([7]), fields.integer_attribute, "an integer"),
    ],
)
def test_an_attribute_of_another_type_is_refused(file, value, read, expected):
    file.attrs["dim"] = value
    with pytest.raises(TableFormatError, match=rf"is damaged: its attribute `dim` is .*7.*; expected {expected}"):
        read(file, "dim")


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64])
def test_integers_of_any_width_are_read(file, dtype):
    file.attrs["dim"] = dtype(100)
    assert fields.integer_attribute(file, "dim") == 100


def test_an_index_is_optional_and_in_range(file):
    assert fields.index_attribute(file, "padding", 5) is None
    for value, message in ((4, None), (5, "is 5; expected 0 to 4"), (-1, "is -1; expected 0 to 4")):
        file.attrs["padding"] = value
        if message is None:
            assert fields.index_attribute(file, "padding", 5) == value
        else:
            with pytest.raises(TableFormatError, match=message):
                fields.index_attribute(file, "padding", 5)


def test_the_other_format_names_its_function(file):
    fields.store_text(file, format=fields.TRAINABLE_FORMAT)
    with pytest.raises(TableFormatError, match=r"has the format .*trainable.* Open it with open_trainable"):
        fields.check_format(file, fields.FROZEN_FORMAT)


def test_a_fingerprint_must_be_the_recorded_one(file):
    fields.store_text(file, fingerprint="sha256:one")
    fields.check_fingerprint(file, "fingerprint", "sha256:one")
    with pytest.raises(TableFormatError, match="sha256:two; expected sha256:one"):
        fields.check_fingerprint(file, "fingerprint", "sha256:two")
