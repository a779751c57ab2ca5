"""A source with its options: given once, known by name, and refused if they do not fit."""

import dataclasses
import inspect

import pytest

from splitembed.errors import VectorFormatError
from splitembed.vectors import VectorSource, read_vectors
from splitembed.vectors.source import refuse_datasets, with_options

SOURCE = {"the": [1.0, 2.0]}


def test_options_are_added_to_a_plain_source():
    assert with_options(SOURCE, dim=2, strict=True) == VectorSource(SOURCE, dim=2, strict=True)


def test_a_vector_source_keeps_its_own_options():
    source = VectorSource(SOURCE, dim=2)
    assert with_options(source) is source
    assert with_options(source, dim=None, format="auto") is source


@pytest.mark.parametrize("option", [{"dim": 2}, {"strict": True}, {"format": "text"}, {"datasets": "a"}])
def test_options_beside_a_vector_source_are_refused(option):
    (name,) = option
    with pytest.raises(VectorFormatError, match=f"Found `{name}` beside a VectorSource; expected all options in one"):
        with_options(VectorSource(SOURCE), **option)


def test_an_unknown_option_is_named_with_the_known_ones():
    with pytest.raises(TypeError, match="argument 'dims'; the options of a source are dim, format, member, datasets"):
        with_options(SOURCE, dims=2)


def test_datasets_are_refused_only_where_given():
    refuse_datasets(VectorSource(SOURCE))
    with pytest.raises(VectorFormatError, match="Found datasets='a'; expected it only with HDF5"):
        refuse_datasets(VectorSource(SOURCE, datasets="a"))


def test_read_vectors_has_the_options_of_a_source_with_the_same_defaults():
    parameters = inspect.signature(read_vectors).parameters
    for field in dataclasses.fields(VectorSource)[1:]:
        assert parameters[field.name].default == field.default, field.name
