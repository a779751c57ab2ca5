"""Cells and columns of text tables."""

import pytest

from splitembed.coverage.text_table import aligned, number, printable


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (0, "0"), (1234567, "1,234,567"), (0.25, "0.25"), (1e6 / 3, "333,333")]
)
def test_numbers_have_thousands_separators(value, text):
    assert number(value) == text


def test_columns_are_aligned_without_trailing_spaces():
    lines = aligned([("", "matched", "of", ""), ("types", "1", "20", "5 %"), ("x", "", "", "")])
    assert lines == ["       matched  of", "types        1  20  5 %", "x"]
    assert aligned([("long", "of"), ("a", "the")], "><") == ["long  of", "   a  the"]


def test_an_empty_token_is_quoted():
    assert printable("") == "''"


def test_a_long_token_is_cut_to_the_width():
    assert printable("x" * 41) == "x" * 37 + "..."
    assert printable("x" * 40) == "x" * 40
    assert printable("\n" * 20, width=10) == "'\\n\\n\\n..."
