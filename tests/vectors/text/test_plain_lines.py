"""Lines parsed at once: the same bits as line by line, and None where a line is not plain."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.vectors import read_vectors
from splitembed.vectors.text import plain_lines
from splitembed.vectors.text import read_text as text
from splitembed.vectors.text.plain_lines import parse_plain_lines
from tests.helpers.reference import number_texts, same_table, texts


@given(st.lists(st.tuples(st.binary(max_size=9), st.tuples(number_texts, number_texts)), min_size=1), st.data())
def test_plain_lines_are_parsed_like_float(lines, data):
    end = data.draw(st.sampled_from([b"\n", b"\r\n", b" \n", b"\t\r\n"]))
    separator = data.draw(st.sampled_from([b" ", b"\t"]))
    words = [word.translate(None, b" \t\r\n") for word, _ in lines]
    content = b"".join(separator.join((word, *row)) + end for word, (_, row) in zip(words, lines, strict=True))
    with mock.patch.object(plain_lines, "NUMBERS_AT_ONCE", data.draw(st.integers(1, 7))):
        plain = parse_plain_lines(content, 2)
    expected = np.array([[np.float32(float(number)) for number in row] for _, row in lines])
    assert plain.words == words and plain.rows.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "line",
    [
        b"\n", b" \n", b"\r\n", b"the 1\n", b"the 1 2 3\n", b"a b 1 2\n", b"the  1 2\n", b"the 1 2  \n", b"the 1 x\n",
        b"the 1 2\r\n", b"the 1 2 \n", b"the 1 2", b"a\x001 2\n", b"the 1\n2\n", b"1 2\nthe 1 2 3\n",
        b"the 1 2\rof 1 2\n",
    ],
)  # fmt: skip
def test_other_lines_give_none(line):
    assert parse_plain_lines(b"of 3 4\n" + line, 2) is None


@given(st.integers(1, 3), st.data())
def test_both_readers_return_the_same(tmp_path_factory, dim, data):
    path = tmp_path_factory.mktemp("plain") / "vectors.txt"
    path.write_bytes(b"".join(b"w%d" % number + b" 0.5" * dim + b"\n" for number in range(3)) + data.draw(texts(dim)))

    def read():
        return read_vectors(path, dim=dim, non_finite="zero")

    with mock.patch("warnings.warn"):
        at_once = read()
        with mock.patch.object(text, "parse_plain_lines", return_value=None):
            line_by_line = read()
    expected = dict(zip(line_by_line.words, line_by_line.vectors, strict=True))
    assert same_table(at_once, expected, dim)
