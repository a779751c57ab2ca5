"""GloVe text, word2vec text, fastText .vec: known kinds of faults, and any text against a slow parser."""

import random
import warnings
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import VectorFileWarning, VectorFormatError
from splitembed.vectors import iter_vectors, read_vectors
from splitembed.vectors.streams import compressions
from splitembed.vectors.text import read_text as text
from tests.helpers.reference import parse_text, same_table, table_of, texts

BOM = b"\xef\xbb\xbf"
# The smallest float64 that float32 rounds to infinity.
LARGE = 3.4028235677973366e38


def rows(**table):
    return {word: [np.float32(value).item() for value in row] for word, row in table.items()}


def both_ways(path, **options):
    """The table, read whole, and read for a vocabulary of all its words."""
    whole = read_vectors(path, **options)
    chosen = read_vectors(path, [*whole.words, "unheard of", "x", ""], **options)
    assert table_of(chosen) == table_of(whole)
    return table_of(whole)


# T: which bytes are the word, and which the numbers


@pytest.mark.parametrize("space", ["\xa0", "\u3000", "\u2003", "\x85", "\x1c", "\x0b", "\x0c", "\ufeff", "\u200b"])
def test_T1_only_space_and_tab_separate(write, space):
    word = f".{space}.{space}."
    path = write(f"{word} 0.1 0.2\nthe 0.3 0.4\n".encode())
    assert both_ways(path) == rows(**{word: [0.1, 0.2], "the": [0.3, 0.4]})
    assert table_of(read_vectors(path, [word])) == rows(**{word: [0.1, 0.2]})


@pytest.mark.parametrize(
    "word",
    ["at me@x.org", "a b c", "New  York", " leading", "a\tb", "1 800", "in 1984", ". . .", "5 nan"],
)
@pytest.mark.parametrize("header", [b"", b"4 2\n"])
def test_T2_the_last_fields_are_the_numbers(write, header, word):
    content = header + b"the 0.1 0.2\n" + word.encode() + b" 0.5 0.6\nof 0.3 0.4\nat 0.7 0.8\n"
    expected = rows(the=[0.1, 0.2], **{word: [0.5, 0.6]}, of=[0.3, 0.4], at=[0.7, 0.8])
    path = write(content)
    assert both_ways(path) == expected
    assert table_of(read_vectors(path, [word])) == rows(**{word: [0.5, 0.6]})
    assert table_of(read_vectors(path, ["at", "me@x.org", "a", "New", "1", "in"])) == rows(at=[0.7, 0.8])


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (b"the  0.1  0.2", "the"),
        (b"the 0.1   0.2", "the"),
        (b"the\t\t0.1\t \t0.2", "the"),
        (b"New  York  0.1 0.2", "New  York"),
        (b" x\t y 0.1  0.2", " x\t y"),
        (b"  0.1 0.2", ""),
        (b"the      0.1      0.2", "the"),
        (b"a 1 2 3  0.1 0.2", "a 1 2 3"),
    ],
)
@pytest.mark.parametrize("others", [0, 1])
def test_several_separators_before_numbers_are_one(write, row, word, others):
    path = write(b"of 0.3 0.4\nat 0.5 0.6\n" * others + row + b"\nin  0.7 0.8\nby  0.7 0.8\n")
    expected = rows(**(dict(of=[0.3, 0.4], at=[0.5, 0.6]) if others else {}), **{word: [0.1, 0.2]}, by=[0.7, 0.8])
    expected["in"] = expected["by"]
    first = 1 + 2 * others
    for vocabulary in (None, [*expected, "York", "x"]):
        with pytest.warns(VectorFileWarning) as caught:
            vectors = read_vectors(path, vocabulary)
        assert table_of(vectors) == expected
        assert str(caught[0].message) == (
            f"{path}: rows with several spaces or tabs between numbers, read as one: 3 (first: line {first}). "
            "read_vectors(..., strict=True) refuses each."
        )
    with pytest.raises(VectorFormatError, match=f"line {first}: found rows with several spaces"):
        read_vectors(path, strict=True)


def test_T2_first_line(write):
    path = write(b"at me@x.org 0.5 0.6\nthe 0.1 0.2\nof 0.3 0.4\n")
    assert both_ways(path) == rows(**{"at me@x.org": [0.5, 0.6]}, the=[0.1, 0.2], of=[0.3, 0.4])


def test_T2_two_lines(write):
    path = write(b"at me@x.org 0.5 0.6\nthe 0.1 0.2\n")
    assert both_ways(path) == rows(**{"at me@x.org": [0.5, 0.6]}, the=[0.1, 0.2])


@pytest.mark.parametrize("count", [1, 2])
def test_words_that_end_in_numbers_need_the_dim(write, count):
    path = write(b"agent 007 0.5 0.6\narea 51 0.1 0.2\n"[: 18 * count])
    with pytest.raises(VectorFormatError, match=r": found rows of dim 3; expected dim=2"):
        read_vectors(path, dim=2)
    path = write(b"%d 2\n" % count + b"agent 007 0.5 0.6\narea 51 0.1 0.2\n"[: 18 * count])
    with pytest.raises(VectorFormatError, match=r"line 1: found a header of . rows of dim 2 above rows of dim 3"):
        read_vectors(path)
    assert list(both_ways(path, dim=2)) == ["agent 007", "area 51"][:count]


@pytest.mark.parametrize(
    "word", ["\u2028", "\u2029", "a\u2028b", "a\rb", "\r", "\ra", "a\r", "\x0b", "\x0c", "\x1e", "\x85", "\0", "a\0"]
)
def test_T3_only_lf_ends_a_row(write, word):
    path = write(word.encode() + b" 0.1 0.2\nthe 0.3 0.4\n")
    assert both_ways(path) == rows(**{word: [0.1, 0.2], "the": [0.3, 0.4]})
    assert table_of(read_vectors(path, [word])) == rows(**{word: [0.1, 0.2]})


@pytest.mark.parametrize("word", ["\u3000", "\xa0x", "x\xa0", "", "\ufeff", '"', "'", "#", "\\", "%"])
def test_T5_nothing_is_stripped_from_a_word(write, word):
    path = write(b"2 2\n" + word.encode() + b" 0.1 0.2\nthe 0.3 0.4\n")
    assert both_ways(path) == rows(**{word: [0.1, 0.2], "the": [0.3, 0.4]})
    assert table_of(read_vectors(path, [word])) == rows(**{word: [0.1, 0.2]})


@pytest.mark.parametrize(
    "row",
    [
        b"the 0.1 0.2 \n",
        b"the\t0.1\t0.2\n",
        b"the 0.1\t0.2\t\n",
        b"the\t0.1 0.2 \r\n",
        b"the 0.1 0.2  \n",
    ],
)
def test_T7_separators(write, row):
    assert both_ways(write(row)) == rows(the=[0.1, 0.2])
    assert both_ways(write(b"of 0.3 0.4\n" + row)) == rows(of=[0.3, 0.4], the=[0.1, 0.2])


def test_a_tab_after_the_word_alone(write):
    path = write(b"the\t0.1 0.2\nof 0.3\t0.4\nat me\t0.5 0.6\n")
    assert both_ways(path) == rows(the=[0.1, 0.2], of=[0.3, 0.4], **{"at me": [0.5, 0.6]})
    assert list(read_vectors(path, ["at me"]).words) == ["at me"]


# H: headers and dims


@pytest.mark.parametrize("header", [b"", b"2 2\n", b"2 2 \n", b"2\t2\r\n", b"02 2\n"])
def test_H1_with_and_without_header(write, header):
    assert both_ways(write(header + b"the 0.1 0.2\nof 0.3 0.4\n")) == rows(the=[0.1, 0.2], of=[0.3, 0.4])


@pytest.mark.parametrize("num_rows", [0, 3, 10**18 - 1])
@pytest.mark.parametrize(("vocabulary", "kept"), [(None, 2), (["of"], 1), ([], 0)])
def test_H2_a_wrong_number_of_rows_in_the_header(write, num_rows, vocabulary, kept):
    path = write(b"%d 2\nthe 0.1 0.2\nof 0.3 0.4\n" % num_rows)
    message = rf"header says {num_rows} rows, the file holds 2 \(first: line 1\)"
    with pytest.warns(VectorFileWarning, match=message) as caught:
        vectors = read_vectors(path, vocabulary)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert vectors.vectors.shape == (kept, 2)
    with pytest.raises(VectorFormatError, match=f"line 1: found header says {num_rows} rows"):
        read_vectors(path, vocabulary, strict=True)


def test_a_header_counts_all_lines(write):
    path = write(b"3 2\nthe 1 1\nof 2 2\nat 3 3\n")
    assert list(read_vectors(path, ["of"], strict=True).words) == ["of"]


def test_a_header_of_another_dim_is_refused(write):
    with pytest.raises(
        VectorFormatError, match=r"line 1: found a header of 1 rows of dim 99999999999 above rows of dim 2"
    ):
        read_vectors(write(b"1 99999999999\nthe 0.1 0.2\n"))


@pytest.mark.parametrize("rows", [b"the 0.1\nof 0.2\n", b"the 0.1,0.2 0.3\nof 0.4,0.5 0.6\n", b"5 0.1\nof 0.2\n"])
def test_a_header_is_not_read_as_a_row(write, rows):
    with pytest.raises(VectorFormatError, match=r"line 1: found a header of 2 rows of dim 3 above rows of dim 1"):
        read_vectors(write(b"2 3\n" + rows))


def test_rows_of_dim_1_whose_words_are_numbers(write):
    assert both_ways(write(b"2 7\n3 8\n4 9\n")) == {"2": [7.0], "3": [8.0], "4": [9.0]}


def test_numbers_as_words(write):
    assert both_ways(write(b"1 0.5 0.6\n2 0.1 0.2\n-3.5 0.3 0.4\nnan 0 1\n")) == rows(
        **{"1": [0.5, 0.6], "2": [0.1, 0.2], "-3.5": [0.3, 0.4], "nan": [0, 1]}
    )


def test_an_empty_table(write):
    assert read_vectors(write(b"0 3\n")).vectors.shape == (0, 3)


@pytest.mark.parametrize("content", [b"2 2\n", b"2 2", b"2 2\n\n"])
def test_a_header_alone(write, content):
    with pytest.raises(VectorFormatError, match="line 1: found a header without rows; expected 2 rows"):
        read_vectors(write(content))


@pytest.mark.parametrize("header", [b"", b"2 2\n"])
@pytest.mark.parametrize(("vocabulary", "dim"), [(None, 1), (["unheard"], 3)])
def test_H5_another_dim_than_the_requested_one(write, header, vocabulary, dim):
    path = write(header + b"the 0.1 0.2\nof 0.3 0.4\n")
    with pytest.raises(VectorFormatError, match=f": found rows of dim 2; expected dim={dim}"):
        read_vectors(path, vocabulary, dim=dim)
    assert read_vectors(path, vocabulary, dim=2).dim == 2


# N: numbers


def test_N1_exponents(write):
    assert both_ways(write(b"the 1e-05 -3.2E+1\n")) == rows(the=[1e-05, -32.0])


@pytest.mark.parametrize("value", ["nan", "-NaN", "inf", "-Infinity", "1e39", "-1e400", repr(LARGE)])
def test_N3_values_that_are_not_finite(write, value):
    path = write(b"of 3 4\nbad 5 %s\nthe 1 2\n" % value.encode())
    assert list(read_vectors(path, ["the"]).words) == ["the"]
    for vocabulary in (None, ["bad"]):
        with pytest.raises(VectorFormatError, match=r"line 2: found \S+ in the row of 'bad'; .*non_finite=\"zero\""):
            read_vectors(path, vocabulary)
    with pytest.warns(VectorFileWarning, match=r"not finite, replaced by 0: 1 \(first: line 2\)"):
        vectors = read_vectors(path, non_finite="zero")
    assert table_of(vectors) == rows(of=[3, 4], bad=[5, 0], the=[1, 2])
    with pytest.raises(VectorFormatError, match="line 2: found values that are not finite"):
        read_vectors(path, non_finite="zero", strict=True)


def test_N3_nan_and_infinity_in_one_row(write):
    path = write(b"bad nan inf\nthe 1 2\n")
    with pytest.warns(VectorFileWarning, match="replaced by 0: 2 "):
        assert table_of(read_vectors(path, non_finite="zero")) == rows(bad=[0, 0], the=[1, 2])


def test_the_largest_float32_is_finite(write):
    assert both_ways(write(b"the 3.4028235677973362e38 -3.4028234e38\n")) == rows(the=[3.4028235e38, -3.4028235e38])


def test_N5_words_that_other_readers_read_as_values(write):
    content = b'null 1 2\nNA 3 4\n" 5 6\nthe 7 8\nnan 9 1\n-inf 2 3\n# 4 5\n1_0 6 7\n'
    names = ["null", "NA", '"', "the", "nan", "-inf", "#", "1_0"]
    expected = [[1, 2], [3, 4], [5, 6], [7, 8], [9, 1], [2, 3], [4, 5], [6, 7]]
    assert both_ways(write(content)) == rows(**dict(zip(names, expected, strict=True)))


@pytest.mark.parametrize(
    "number",
    ["0.1", "-0.0", "1.00000005960464477540", "0.000061035156", "123456789.123456789", "1e-46", "-.5", "5.", "+7"],
)
def test_N5_values_are_float32_of_float(write, number):
    vectors = read_vectors(write(f"the {number} 0\n".encode()))
    assert vectors.vectors[0, :1].tobytes() == np.float32(float(number)).tobytes()


@pytest.mark.parametrize("field", [b"x", b"", b"1_0", b"0x1", b"1,5", b"1-2", b"\xd9\xa1", b"1\r", b"1\0", b"nan(0)"])
@pytest.mark.parametrize("vocabulary", [None, ["of"]])
def test_a_field_that_is_not_a_number(write, field, vocabulary):
    path = write(b"2 3\nthe 1 2 3\nof 4 %s 6\n" % field)
    with pytest.raises(VectorFormatError) as caught:
        read_vectors(path, vocabulary)
    assert str(caught.value) == (
        f"{path}, line 3: found {field!r} as number 2 in the row of 'of'; expected a word and 3 numbers. "
        "Fix or remove that line, download the file again, or set `skip_bad_lines` to leave out such lines."
    )
    assert list(read_vectors(path, ["the"]).words) == ["the"]


@pytest.mark.parametrize("end", [b"\x0b", b"\x0c", b"\x1c", b"\xa0"])
def test_only_space_and_tab_are_stripped_from_the_end_of_a_row(write, end):
    with pytest.raises(VectorFormatError, match=r"line 1: found b'2.*' as number 2"):
        read_vectors(write(b"the 1 2" + end + b"\nof 3 4\n"), dim=2)


@pytest.mark.parametrize("row", [b"of 4 5", b"of 4", b"of", b"of 4 5 ", b"a\tb"])
def test_a_row_with_too_few_numbers(write, row):
    path = write(b"the 1 2 3\nat 4 5 6\n" + row + b"\nin 7 8 9\n")
    with pytest.raises(VectorFormatError, match=r"line 3: found \d numbers in b'.*'; expected a word and 3 numbers"):
        read_vectors(path)
    with pytest.raises(VectorFormatError, match=r"line 3: found \d numbers"):
        read_vectors(path, ["the"])


@pytest.mark.parametrize("vocabulary", [None, ["the"], []])
def test_a_last_row_that_is_cut_short_is_found_with_any_vocabulary(write, vocabulary):
    with pytest.raises(VectorFormatError, match="line 3: found 2 numbers"):
        read_vectors(write(b"the 1 2 3\nat 4 5 6\nof 7 8"), vocabulary)


GROWN_WORD = "3 3\nthe 1 2 3\n\u76844 5 6\nof 7 8 9\n".encode()


@pytest.mark.parametrize("vocabulary", [None, ["\u7684"], ["the", "of"], []])
def test_a_word_merged_with_its_number_is_reported_whether_wanted_or_not(write, vocabulary):
    path = write(GROWN_WORD)
    message = r"line 3: found 2 numbers in b'.*4 5 6'; expected a word and 3 numbers.*set `skip_bad_lines`"
    with pytest.raises(VectorFormatError, match=message):
        read_vectors(path, vocabulary)
    with pytest.raises(VectorFormatError, match=message):
        read_vectors(path, vocabulary, skip_bad_lines=True, strict=True)
    with pytest.warns(
        VectorFileWarning, match=r": lines that cannot be read, skipped: 1 \(first: line 3\)\. "
    ) as caught:
        vectors = read_vectors(path, vocabulary, skip_bad_lines=True)
    assert len(caught) == 1
    assert table_of(vectors) == {
        word: row for word, row in rows(the=[1, 2, 3], of=[7, 8, 9]).items() if vocabulary is None or word in vocabulary
    }


def test_skipped_lines_are_counted_and_the_first_three_named(write):
    bad = [b"x", b"y 1", b"z 1 x", b"the  1", b"v 1 2,5"]
    path = write(
        b"".join(b"w%d 1 2\n" % number + line + b"\n" for number, line in enumerate(bad)) + b"the 3 4\nv 5 6\n"
    )
    for vocabulary, count, first in ((None, 5, "2, line 4, line 6"), (["the", "v"], 4, "2, line 4, line 8")):
        with pytest.warns(VectorFileWarning, match=rf"skipped: {count} \(first: line {first}\)"):
            vectors = read_vectors(path, vocabulary, skip_bad_lines=True)
        table = table_of(vectors)
        # A later row of the same word is kept.
        assert (table["the"], table["v"], len(table)) == ([3, 4], [5, 6], 2 if vocabulary else 7)


# Warnings


def test_Y1_the_first_of_two_duplicates_is_kept(write):
    path = write(b"3 2\nthe 1 1\nof 2 2\nthe 3 3\n")
    for vocabulary in (None, ["the", "of"]):
        with pytest.warns(VectorFileWarning) as caught:
            vectors = read_vectors(path, vocabulary)
        assert table_of(vectors) == rows(the=[1, 1], of=[2, 2])
        assert len(caught) == 1
        assert str(caught[0].message) == (
            f"{path}: duplicate words, first row kept: 1 (first: line 4). read_vectors(..., strict=True) refuses each."
        )
    assert list(read_vectors(path, ["of"]).words) == ["of"]
    with pytest.raises(VectorFormatError, match="line 4: found duplicate words"):
        read_vectors(path, strict=True)


def test_duplicates_in_later_blocks(write):
    content = b"".join(b"w%d 1 %d\n" % (number % 900, number) for number in range(2000))
    with (
        mock.patch.object(text, "BATCH_BYTES", 100),
        pytest.warns(VectorFileWarning, match=r"kept: 1100 \(first: line 901\)"),
    ):
        vectors = read_vectors(write(content))
    assert vectors.vectors[:, 1].tolist() == list(range(900))


def test_words_that_are_not_utf8_stay_distinct(write):
    path = write(b"\xd0\xbf\xd1 1 2\n\xd0\xbf\xd2 3 4\nok 5 6\n")
    bad = [b"\xd0\xbf\xd1".decode("utf-8", "surrogateescape"), b"\xd0\xbf\xd2".decode("utf-8", "surrogateescape")]
    for vocabulary in (None, [*bad, "ok"]):
        with pytest.warns(
            VectorFileWarning, match=r"not valid UTF-8, kept with their bytes escaped: 2 \(first: line 1\)"
        ):
            vectors = read_vectors(path, vocabulary)
        assert table_of(vectors) == rows(**{bad[0]: [1, 2], bad[1]: [3, 4]}, ok=[5, 6])


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b"  \n", b"\t\r\n"])
def test_blank_lines(write, blank):
    path = write(blank + b"3 2\nthe 1 2\n" + 2 * blank + b"of 3 4\n" + blank + b"at 5 6\n")
    for vocabulary, count in ((None, 3), (["at"], 1)):
        with pytest.warns(VectorFileWarning, match=r"blank lines, skipped: 4 \(first: line 1\)\. ") as caught:
            vectors = read_vectors(path, vocabulary)
        assert len(vectors) == count and "header" not in str(caught[0].message)
    with pytest.raises(VectorFormatError, match="line 1: found blank lines"):
        read_vectors(path, strict=True)


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b" \n", b"\n\n\n", b" "])
@pytest.mark.parametrize("vocabulary", [None, ["of"]])
def test_blank_lines_at_the_end_give_no_warning(write, blank, vocabulary):
    vectors = read_vectors(write(b"2 2\nthe 1 2\nof 3 4\n" + blank), vocabulary, strict=True)
    assert list(vectors.words) == (vocabulary or ["the", "of"])


def test_all_warnings_are_issued_as_one(write):
    path = write(b"9 2\nthe 1 nan\n\nof 3 4\nthe 5 6\n\xff 7 1e39\n")
    with pytest.warns(VectorFileWarning) as caught:
        read_vectors(path, non_finite="zero")
    assert len(caught) == 1
    assert str(caught[0].message) == (
        f"{path}: duplicate words, first row kept: 1 (first: line 5); "
        "words that are not valid UTF-8, kept with their bytes escaped: 1 (first: line 6); "
        "values that are not finite, replaced by 0: 2 (first: line 2); "
        "blank lines, skipped: 1 (first: line 3); "
        "header says 9 rows, the file holds 4 (first: line 1). read_vectors(..., strict=True) refuses each."
    )


# X4: byte order mark and CRLF


@pytest.mark.parametrize("mark", [b"", BOM])
@pytest.mark.parametrize("header", [b"", b"2 2\n"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_X4_byte_order_mark_and_crlf(write, mark, header, end):
    content = mark + (header + b"the 1 2\nof 3 4\n").replace(b"\n", end)
    assert both_ways(write(content)) == rows(the=[1, 2], of=[3, 4])


def test_only_one_byte_order_mark_is_dropped(write):
    assert both_ways(write(BOM + BOM + b"the 1 2\nof 3 4\n")) == rows(**{"\ufeffthe": [1, 2]}, of=[3, 4])


# Any text, any chunk size


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("texts") / "drawn.txt"


@given(st.data(), st.integers(1, 4), st.integers(1, 40), st.integers(1, 60), st.sampled_from([b"first", b"header"]))
def test_any_text_in_any_chunks_against_a_slow_parser(path, data, dim, chunk, batch, start):
    content = data.draw(texts(dim))
    if start == b"header":
        expected, content = parse_text(content, dim), b"%d %d\n" % (content.count(b"\n"), dim) + content
    else:
        content = b"first" + b" 0.5" * dim + b"\n" + content
        expected = parse_text(content, dim)
    path.write_bytes(content)
    wanted = data.draw(st.lists(st.sampled_from(sorted(expected))))
    with (
        mock.patch.object(compressions, "CHUNK_BYTES", chunk),
        mock.patch.object(text, "BATCH_BYTES", batch),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", VectorFileWarning)
        vectors = read_vectors(path, dim=dim)
        chosen = read_vectors(path, wanted, dim=dim)
        blocks = list(iter_vectors(path, dim=dim))
    assert same_table(vectors, expected, dim)
    assert same_table(chosen, {word: row for word, row in expected.items() if word in wanted}, dim)
    assert [word for block in blocks for word in block.words] == list(expected)


def test_a_large_file_against_a_slow_parser(write):
    generator = random.Random(0)
    lines = []
    for number in range(3000):
        numbers = [f"{generator.gauss(0, 0.4):.{generator.randint(1, 17)}g}" for _ in range(20)]
        lines.append(f"word{number} " + " ".join(numbers))
    content = "\n".join(lines).encode() + b"\n"
    expected = parse_text(content, 20)
    wanted = [f"word{number}" for number in range(0, 6000, 7)]
    path = write(content)
    with mock.patch.object(compressions, "CHUNK_BYTES", 10_000):
        assert same_table(read_vectors(path), expected, 20)
        assert same_table(read_vectors(path, wanted), {word: expected[word] for word in wanted if word in expected}, 20)


def test_a_line_without_end_is_refused_before_it_fills_the_memory(write):
    path = write(b"the 1 2\nof 3 4\n" + b"\0" * 5_000_000)
    for vocabulary in (None, ["of"]):
        with pytest.raises(VectorFormatError, match="line 3: found a line of more than 1048704 bytes"):
            read_vectors(path, vocabulary)


@pytest.mark.parametrize("joint", [b"", b" ", b"\r", b"\t"])
@pytest.mark.parametrize("vocabulary", [None, ["the"]])
def test_a_lost_line_end_gives_a_warning(write, joint, vocabulary):
    path = write(b"a 1 2 3\nthe 1 2 3" + joint + b"of 4 5 6\nb 7 8 9\n")
    message = r"lines that hold the numbers of two rows, read as one: 1 \(first: line 2\)"
    with pytest.warns(VectorFileWarning, match=message):
        assert "the" not in read_vectors(path, vocabulary).words
    with pytest.raises(VectorFormatError, match="line 2: found lines that hold the numbers of two rows"):
        read_vectors(path, vocabulary, strict=True)


def test_a_word_of_some_numbers_gives_no_warning(write):
    content = b"of 1 2 and a great many others 0.5 0.25 1.5 2.5\nthe 0.5 0.25 1.5 2.5\n"
    assert read_vectors(write(content), strict=True).words == ["of 1 2 and a great many others", "the"]
