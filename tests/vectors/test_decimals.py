"""Decimal numbers: every value is that of Python's float, bit for bit, and an invalid number is named."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.vectors.decimals import NotANumberError, parse_decimals
from tests.helpers.reference import number_texts

NO_NUMBERS = [
    b"", b".", b"-", b"+", b"+-1", b"--1", b"e5", b"1e", b"1e+", b"1-2", b"1.2.3", b".1.2", b"1_000", b"0x10", b"1,5",
    b"12a", b"a12", b"nan(1)", b"infin", b"1\x0b", b"\xd9\xa1", b"1\x00", b"-1.5-", b"1.5f", b"\r", b"1:2", b"0/1",
    b"1.;2",
]  # fmt: skip
EDGES = [
    "0", "-0", "-0.0", "+0.0", "5.", ".5", "-.5", "+1.25", "007.50", "1e-05", "-3.2E+1", "1e400", "1e-400", "nan",
    "-NaN",
    "inf", "-Infinity", "9007199254740992.0", "9007199254740993.0", "90071992.54740993", "0.9007199254740993",
    "99999999.9999999", "12345678.12345678", "123456789.5", "0.1234567890123456", "0.12345678901234567",
    "0.00000000000000001", "-0.0000000000000001", "0.30000000000000004", "2.2250738585072014e-308", "0.000061035156",
]  # fmt: skip


@given(st.lists(number_texts, min_size=1, max_size=40), st.sampled_from([b" ", b"\t"]))
def test_values_are_those_of_float(fields, separator):
    expected = np.array([float(field.decode()) for field in fields])
    assert parse_decimals(separator.join(fields)).tobytes() == expected.tobytes()


@pytest.mark.parametrize("field", EDGES)
def test_edges(field):
    expected = np.array([0.5, float(field), -0.25])
    assert parse_decimals(f"0.5 {field} -0.25".encode()).tobytes() == expected.tobytes()


@pytest.mark.parametrize("field", NO_NUMBERS)
@pytest.mark.parametrize("index", [0, 1, 2])
def test_an_invalid_number_is_named(field, index):
    fields = [b"0.5", b"-1.25"]
    fields.insert(index, field)
    with pytest.raises(NotANumberError) as caught:
        parse_decimals(b" ".join(fields))
    assert (caught.value.index, caught.value.field) == (index, field)


@given(
    st.lists(st.one_of(number_texts, st.text("0123456789+-.eE", max_size=6).map(str.encode)), min_size=1, max_size=8)
)
def test_numbers_are_those_of_float(fields):
    def is_number(field):
        try:
            float(field.decode())
        except ValueError:
            return False
        return True

    wrong = [index for index, field in enumerate(fields) if not is_number(field)]
    if wrong:
        with pytest.raises(NotANumberError) as caught:
            parse_decimals(b" ".join(fields))
        assert caught.value.index == wrong[0]
    else:
        assert parse_decimals(b" ".join(fields)).tolist() == [float(field.decode()) for field in fields]
