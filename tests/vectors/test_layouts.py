"""Formats named by content, and how a file is laid out: dim, header, dtype."""

import numpy as np
import pytest

from splitembed.errors import VectorFormatError
from splitembed.vectors import read_vectors
from tests.helpers.reference import f


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n \n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_an_empty_file(write, content):
    with pytest.raises(VectorFormatError, match=r"found an empty file \(\d bytes\); expected rows"):
        read_vectors(write(content))


@pytest.mark.parametrize(
    "content",
    [b"the quick brown fox\n", b"the\nof\nand\n", b"\0" * 100, b"2 2\nthe quick\nbrown fox\n", b"x"],
)
def test_unknown_content_is_refused(write, content):
    with pytest.raises(
        VectorFormatError, match=r"found no rows of vectors; it starts with b'.*Expected lines of a word"
    ):
        read_vectors(write(content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"the,0.1,0.2\n", "found comma-separated values, no rows of vectors; it starts with b'the,0.1"),
        (b"word,d0,d1\nthe,0.1,0.2\n", "found comma-separated values with a heading, no .* b'word,d0,d1'"),
        (b'"word";"d0"\n"the";"0.1"\n', "found comma-separated values with a heading"),
        (b"item_id:token\te:float_seq\n1\t0.1 0.2\n", "found an atomic file of RecBole, .* Remove the first line if"),
        (b"item_id:token\n1\n", "found an atomic file of RecBole"),
    ],
)
def test_tables_are_named_with_advice(write, content, message):
    for vocabulary in (None, ["of"]):
        with pytest.raises(VectorFormatError, match=message):
            read_vectors(write(content), vocabulary)


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_word2vec_binary_of_integer_words_is_recognised(write, end):
    records = b"".join(b"%d " % number + bytes(12) + end for number in range(2))
    assert read_vectors(write(b"2 3\n" + records)).words == ["0", "1"]


def test_format_refuses_the_other(write):
    path = write(b"2 2\nthe 0.1 0.2\nof 0.3 0.4\n")
    assert len(read_vectors(path, format="text")) == 2
    with pytest.raises(VectorFormatError, match="found text; expected word2vec-binary, because of format="):
        read_vectors(path, format="word2vec-binary")
    path = write(b"2 2\nthe " + f(1, 2) + b"of " + f(3, 4))
    with pytest.raises(VectorFormatError, match="found word2vec-binary; expected text, because of format="):
        read_vectors(path, format="text")


def test_format_word2vec_binary_takes_records_that_look_like_words(write):
    content = b"2 1\nthe abcdof efgh"
    with pytest.raises(VectorFormatError, match="no rows of vectors"):
        read_vectors(write(content))
    vectors = read_vectors(write(content), format="word2vec-binary-float32")
    assert vectors.words == ["the", "of"]
    assert vectors.vectors.tobytes() == b"abcdefgh"


def test_an_unknown_format_is_refused(write):
    with pytest.raises(
        VectorFormatError,
        match=r"`format` must be one of auto, fasttext-bin, word2vec-binary, text, word2vec-binary-float32, "
        r"word2vec-binary-float16, word2vec-binary-float64\. Received: 'glove'",
    ):
        read_vectors(write(b"the 1 2\n"), format="glove")


def test_most_rows_decide_the_dim_where_no_header_does(write):
    rows = b"".join(b"w%d 0.5 0.25\n" % number for number in range(60))
    years = b"".join(b"in %d 0.5 0.25\n" % number for number in range(1900, 1940))
    vectors = read_vectors(write(years + rows))
    assert vectors.dim == 2 and vectors.words[:2] == ["in 1900", "in 1901"]
    few = b"".join(rows.splitlines(keepends=True)[:10])
    with pytest.raises(VectorFormatError, match="line 41: found 2 numbers"):
        read_vectors(write(years + few))
    assert read_vectors(write(years + few), dim=2).words[39:42] == ["in 1939", "w0", "w1"]


def test_one_row_is_enough_to_bear_out_a_header(write):
    years = b"".join(b"in %d 0.5 0.25\n" % number for number in range(1900, 1950))
    vectors = read_vectors(write(b"51 2\n" + years + b"of 0.5 0.25\n"))
    assert vectors.dim == 2 and vectors.words[-2:] == ["in 1949", "of"]


def test_a_dim_of_some_longer_rows_is_not_that_of_the_file(write):
    rows = b"of 0.5 0.25\nin 1900 0.5 0.25\n" + b"on 1 %d 0.5 0.25\n" % 7 + b"on 2 7 0.5 0.25\n"
    # The header, or the option, agrees with a row; but another row has fewer numbers.
    with pytest.raises(VectorFormatError, match="line 1: found a header of 4 rows of dim 3 above rows of dim 4"):
        read_vectors(write(b"4 3\n" + rows))
    with pytest.raises(VectorFormatError, match="found rows of dim 4; expected dim=3"):
        read_vectors(write(rows), dim=3)
    assert read_vectors(write(rows), dim=2).words == ["of", "in 1900", "on 1 7", "on 2 7"]
    assert read_vectors(write(b"4 2\n" + rows)).words == ["of", "in 1900", "on 1 7", "on 2 7"]


def test_the_larger_of_two_dims_is_taken_so_that_no_row_is_misread(write):
    with pytest.raises(VectorFormatError, match=r"line 1: found 2 numbers .* expected a word and 3 numbers"):
        read_vectors(write(b"the 0.1 0.2\nof 0.1 0.2 0.3\n"))


def test_format_names_the_numbers_of_word2vec_binary(write):
    content = b"1 4\nthe " + np.array([1, 2, 3, 4], np.float16).tobytes()
    with pytest.raises(
        VectorFormatError, match=r'a header of 1 rows of dim 4 that does not agree with .* pass format="word2vec'
    ):
        # Half of one record is a record, too.
        read_vectors(write(content))
    assert read_vectors(write(content), format="word2vec-binary-float16").vectors.tolist() == [[1, 2, 3, 4]]
    for other in ("word2vec-binary-float32", "word2vec-binary-float64", "word2vec-binary"):
        with pytest.raises(VectorFormatError):
            read_vectors(write(content), format=other)
    with pytest.raises(VectorFormatError, match="found text; expected word2vec-binary-float64, because of"):
        read_vectors(write(b"1 2\nthe 1 2\n"), format="word2vec-binary-float64")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("says", [29, 31, 59, 300])
def test_a_header_of_another_dim_is_not_borne_out_by_binary_records(write, dtype, end, says):
    rows = np.random.default_rng(0).normal(0, 0.4, (50, 30)).astype(dtype)
    records = b"".join(b"word%d " % number + row.tobytes() + end for number, row in enumerate(rows))
    with pytest.raises(VectorFormatError, match=r"does not agree|cut short|found nan"):
        read_vectors(write(b"50 %d\n" % says + records))
    assert read_vectors(write(b"50 30\n" + records)).vectors.tobytes() == rows.astype(np.float32).tobytes()
