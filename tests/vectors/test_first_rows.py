"""The first rows of a text: headings, commas between numbers, and numbers without words."""

import warnings

import pytest

from splitembed.errors import VectorFileWarning, VectorFormatError
from splitembed.vectors import read_vectors
from tests.helpers.reference import table_of


def test_a_heading_is_named(write):
    for vocabulary in (None, ["of"]):
        with pytest.raises(VectorFormatError, match=r"line 1: found a heading, b'word\\td0\\td1'; .*Remove that line"):
            read_vectors(write(b"word\td0\td1\nthe\t0.1\t0.2\n"), vocabulary)


def test_a_heading_is_a_line_that_can_be_skipped(write):
    with pytest.warns(VectorFileWarning, match=r"skipped: 1 \(first: line 1\)"):
        vectors = read_vectors(write(b"word d0 d1\nthe 0.5 0.25\n"), skip_bad_lines=True)
    assert vectors.words == ["the"]


MATRICES = [b"0.1\t0.2\t0.3\n0.4\t0.5\t0.6\n", b" 0.1 -0.2\n", b"1e-01 2e-01\n", b"1 2\n.5 .6 .7\n"]


@pytest.mark.parametrize("content", MATRICES)
def test_words_that_are_all_decimal_numbers_are_suspicious(write, content):
    path = write(content)
    with pytest.warns(
        VectorFileWarning, match=r": .*words that are all decimal numbers, as in .*\(pass \(words, path\), or"
    ):
        vectors = read_vectors(path)
    message = (
        r"line \d: found rows that start with decimal numbers, such as b'.*Pass \(words, path\).*`numbers_are_words`"
    )
    with pytest.raises(VectorFormatError, match=message):
        read_vectors(path, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert table_of(read_vectors(path, numbers_are_words=True)) == table_of(vectors)


@pytest.mark.parametrize(
    "content", [b" 0.1 -0.2\n-0.3  0.4\n", b"# x y\n 0.1 -0.2\n", b"# 1 2\n 0.1 -0.2\n", b" 0.1 -0.2\n# the end\n"]
)
def test_a_matrix_that_cannot_be_read_as_words_and_rows_is_refused(write, content):
    with pytest.raises(
        VectorFormatError, match=r"line \d: found rows that start with decimal numbers, such as b' 0.1 -0"
    ):
        read_vectors(write(content))


@pytest.mark.parametrize(
    "content",
    [
        b"1 2 3\n2 3 4\n",
        b"inf 1 2\n-nan 3 4\n",
        b"0.5 1 2\nthe 3 4\n",
        b"3 2\n-7 1 2\n8 3 4\n9 1 2\n",
        b"  the 1 2\n  of 3 4\n",
        b"# 1 2\n#x 3 4\n",
    ],
)
def test_integers_and_a_few_numbers_are_words(write, content):
    assert read_vectors(write(content), strict=True).dim == 2


@pytest.mark.parametrize(
    "content",
    [b"the, 0.1, 0.2\nof, 0.3, 0.4\n", b"the 0.1; 0.2; 0.3\n", b"the,  0.1,\t0.2\n", b"w, d0, d1\nthe, 0.1, 0.2\n"],
)
@pytest.mark.parametrize("vocabulary", [None, ["of"]])
def test_numbers_with_commas_are_not_part_of_the_word(write, content, vocabulary):
    with pytest.raises(VectorFormatError, match=r"found rows such as b'.*; expected spaces or tabs between numbers"):
        read_vectors(write(content), vocabulary)
    with pytest.raises(VectorFormatError, match="expected spaces or tabs|rows of dim 1"):
        read_vectors(write(content), vocabulary, dim=2)


def test_a_few_words_that_end_in_numbers_with_commas_are_words(write):
    content = b"in 1999, 0.5 0.25\n" + b"".join(b"w%d 0.5 0.25\n" % number for number in range(3))
    assert read_vectors(write(content)).words == ["in 1999,", "w0", "w1", "w2"]
