"""Matrices of numbers in text, against NumPy's own reader and writer, and the errors of lines that are not rows."""

import gzip
import io
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import VectorFormatError
from splitembed.vectors import read_vectors
from splitembed.vectors.streams import compressions
from splitembed.vectors.streams.opening import open_stream
from splitembed.vectors.text.read_matrix import is_matrix, read_matrix
from tests.helpers.reference import table_of

WORDS = ["the", "of"]
TABLE = {"the": [0.5, -0.25], "of": [1.0, 2.0]}


@given(st.lists(st.lists(st.floats(width=32), min_size=3, max_size=3), min_size=1), st.data())
def test_any_matrix_that_numpy_writes(rows, data):
    matrix, file = np.array(rows, np.float32), io.BytesIO()
    delimiter = data.draw(st.sampled_from([" ", "\t", ",", ", "]))
    header, end = data.draw(st.sampled_from(["", "two\nlines 1 2"])), data.draw(st.sampled_from(["\n", "\r\n", " \n"]))
    np.savetxt(
        file, matrix, delimiter=delimiter, header=header, newline=end, fmt=data.draw(st.sampled_from(["%.9g", "% .9e"]))
    )
    with (
        mock.patch.object(compressions, "CHUNK_BYTES", data.draw(st.integers(1, 99))),
        open_stream(io.BytesIO(file.getvalue()), progress=False) as stream,
    ):
        assert is_matrix(stream.head)
        assert read_matrix(stream).tobytes() == np.where(np.isnan(matrix), np.float32(np.nan), matrix).tobytes()


@pytest.mark.parametrize(
    "content",
    [
        b"0.5\t-0.25\n1.0\t2.0\n",
        b"0.5,-0.25\n1,2",
        b"# a header\n 0.5 -0.25 \n\n 1    2\n# the end\n",
        b"\xef\xbb\xbf0.5 , -0.25\r\n1 , 2\r\n",
        gzip.compress(b"0.5 -0.25\n1 2\n", mtime=0),
    ],
)
def test_a_matrix_in_text_is_read_with_its_words(write, content):
    assert table_of(read_vectors((WORDS, write(content)))) == TABLE
    assert table_of(read_vectors((WORDS, str(write(content))), ["of"])) == {"of": [1, 2]}


def test_a_matrix_of_one_column_and_of_one_row(write):
    assert table_of(read_vectors((WORDS, write(b"1\n2\n")))) == {"the": [1], "of": [2]}
    assert table_of(read_vectors((["the"], write(b"1 2")))) == {"the": [1, 2]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1 2\n3\n", r"line 2: found b'3'; expected 2 numbers, as in the first row\. Fix or remove"),
        (b"# x\n1 2\n\n3 4 5\n", "line 4: found b'3 4 5'; expected 2 numbers"),
        (b"1 2\n3 x\n", "line 2: found b'3 x'"),
        (b"1,2\n3,,4\n", "line 2: found b'3,,4'"),
        (b"1,,2\n3,,4\n", "starts with b'1,,2"),
        (b"1,2,\n3,4,\n", "starts with b'1,2,"),
        (b"1 2\n3 4\n5 6\n", r"found 2 words and rows of shape \(3, 2\)"),
        (b"1 2\n3 nan\n", "found nan in the row of 'of'"),
        (b"d0,d1\n1,2\n3,4\n", r"starts with b'd0,d1\\n1,2\\n3,4\\n'; expected the matrix .* or lines of numbers"),
        (b"the 1 2\nof 3 4\n", "starts with b'the 1 2"),
    ],
)
def test_lines_that_are_not_rows_are_refused(write, content, message):
    for size in (1, 1 << 20):
        with mock.patch.object(compressions, "CHUNK_BYTES", size), pytest.raises(VectorFormatError, match=message):
            read_vectors((WORDS, write(content)))


def test_the_advice_about_a_matrix_without_words_leads_to_its_rows(write):
    path = write(b"0.5\t-0.25\n1.5\t2.0\n")
    with pytest.raises(VectorFormatError, match=r"Pass \(words, path\)"):
        read_vectors(path, strict=True)
    assert table_of(read_vectors((WORDS, path), strict=True)) == {"the": [0.5, -0.25], "of": [1.5, 2.0]}
