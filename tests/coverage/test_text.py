"""Numbers and sizes for people."""

import pytest

from splitembed.coverage.text import aligned, in_bytes, number, printable


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (1_000_000, "1.0 MB"),
        (2_500_000_000, "2.5 GB"),
        (10**15, "1,000.0 TB"),
    ],
)
def test_bytes(num_bytes, text):
    assert in_bytes(num_bytes) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (0, "0"), (1234567, "1,234,567"), (0.25, "0.25"), (1e6 / 3, "333,333")]
)
def test_numbers(value, text):
    assert number(value) == text


def test_columns_are_aligned_and_nothing_trails():
    lines = aligned([("", "matched", "of", ""), ("types", "1", "20", "5 %"), ("x", "", "", "")])
    assert lines == ["       matched  of", "types        1  20  5 %", "x"]


def test_an_empty_token_is_seen():
    assert printable("") == "''"
