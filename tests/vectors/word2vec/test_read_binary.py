"""word2vec binary: records in any chunks, words of any bytes, and damage named by its byte."""

import gzip
import warnings
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import VectorFileWarning, VectorFormatError
from splitembed.vectors import iter_vectors, read_vectors
from splitembed.vectors.layouts import LARGEST_DIM
from splitembed.vectors.streams import compressions
from tests.helpers.reference import f, same_table, table_of

LF = pytest.mark.parametrize("end", [b"\n", b""])
TABLE = {"the": [1, 2], "of": [3, 4]}


def records(end, **table):
    return b"".join(word.encode() + b" " + f(*row) + end for word, row in table.items())


@LF
@pytest.mark.parametrize("header", [b"2 2\n", b"2\t2\n", b"2 2 \n"])
def test_B1_with_and_without_line_feeds(write, header, end):
    path = write(header + records(end, **TABLE))
    assert table_of(read_vectors(path)) == TABLE
    assert table_of(read_vectors(path, ["of", "unheard"])) == {"of": [3, 4]}
    assert table_of(read_vectors(path, format="word2vec-binary", dim=2)) == TABLE


@LF
def test_one_record(write, end):
    assert table_of(read_vectors(write(b"1 2\n" + records(end, the=[1, 2])))) == {"the": [1, 2]}


@LF
def test_a_last_record_without_its_line_feed(write, end):
    path = write(b"3 2\n" + records(end, **TABLE) + records(b"", at=[5, 6]))
    assert table_of(read_vectors(path)) == {**TABLE, "at": [5, 6]}


@LF
def test_B3_words_that_are_not_utf8(write, end):
    raw = [b"\xd0\xbf\xd1", b"\xd0\xbf\xd2", b"ok"]
    content = b"3 2\n" + b"".join(word + b" " + f(number, -number) + end for number, word in enumerate(raw, 1))
    words = [word.decode("utf-8", "surrogateescape") for word in raw]
    message = r"not valid UTF-8, kept with their bytes escaped: 2 \(first: byte 4\)"
    for vocabulary in (None, words):
        with pytest.warns(VectorFileWarning, match=message):
            vectors = read_vectors(write(content), vocabulary)
        assert table_of(vectors) == dict(zip(words, [[1, -1], [2, -2], [3, -3]], strict=True))
        assert [word.encode("utf-8", "surrogateescape") for word in vectors.words] == raw
    with pytest.raises(VectorFormatError, match="byte 4: found words that are not valid UTF-8"):
        read_vectors(write(content), strict=True)


@pytest.mark.parametrize("word", ["", "\n", "\n\n", "a\nb", "\t", "\u3000", "\xa0x", "a\rb", "\r", "x" * 3000])
def test_nothing_is_stripped_from_a_word(write, word):
    path = write(b"3 2\n" + records(b"", the=[1, 2], **{word: [3, 4]}, of=[5, 6]))
    assert table_of(read_vectors(path)) == {"the": [1, 2], word: [3, 4], "of": [5, 6]}
    if not word.startswith("\n"):
        path = write(b"3 2\n" + records(b"\n", the=[1, 2], **{word: [3, 4]}, of=[5, 6]))
        assert table_of(read_vectors(path, [word])) == {word: [3, 4]}


@LF
@pytest.mark.parametrize(("num_rows", "vocabulary"), [(0, ["of"]), (3, None), (99_999_999_999, ["of"])])
def test_H2_a_wrong_number_of_rows_in_the_header(write, num_rows, vocabulary, end):
    path = write(b"%d 2\n" % num_rows + records(end, **TABLE))
    with pytest.warns(VectorFileWarning, match=f"header says {num_rows} rows, the file holds 2"):
        vectors = read_vectors(path, vocabulary)
    assert table_of(vectors) == (TABLE if vocabulary is None else {"of": [3, 4]})


def test_H5_another_dim_than_the_requested_one(write):
    with pytest.raises(VectorFormatError, match=": found rows of dim 2; expected dim=3"):
        read_vectors(write(b"2 2\n" + records(b"", **TABLE)), dim=3)


@pytest.mark.parametrize("dim", [99_999_999_999, 1 << 25, 0])
def test_a_damaged_header_allocates_nothing(write, dim):
    path = write(b"1 %d\n" % dim + records(b"", **TABLE))
    with pytest.raises(VectorFormatError, match=rf"byte 0: found dim {dim} in the header, {4 * dim} bytes a row"):
        read_vectors(path)


def test_a_row_may_have_as_many_bytes_as_follow_the_header_and_no_more(write):
    content = b"the " + bytes(24)
    # 28 bytes follow the header: 7 numbers would leave none for the word.
    with pytest.raises(VectorFormatError, match="byte 4: found 28 bytes of a record at the end"):
        read_vectors(write(b"1 7\n" + content), format="word2vec-binary-float32")
    with pytest.raises(
        VectorFormatError, match="byte 0: found dim 8 in the header, 32 bytes a row; expected rows of 1 to 28"
    ):
        read_vectors(write(b"1 8\n" + content), format="word2vec-binary-float32")


@pytest.mark.parametrize("dim", [LARGEST_DIM, LARGEST_DIM + 1])
def test_the_largest_dim_of_a_file_of_unknown_size(write, monkeypatch, dim):
    monkeypatch.setattr(compressions, "HEAD_BYTES", 64)
    monkeypatch.setattr(compressions, "LONG_HEAD_BYTES", 64)
    path = write(gzip.compress(b"1 %d\nthe " % dim + bytes(1000)))
    message = {LARGEST_DIM: "bytes of a record at the end", LARGEST_DIM + 1: "byte 0: found dim 16777217 in the header"}
    with pytest.raises(VectorFormatError, match=message[dim]):
        read_vectors(path, format="word2vec-binary-float32")


def test_a_row_longer_than_the_file(write):
    message = "dim 1000 in the header, 4000 bytes a row|23 bytes of a record at the end"
    # The size of a compressed file is unknown.
    with pytest.raises(VectorFormatError, match=message):
        read_vectors(write(b"1 1000\n" + records(b"", **TABLE)))


@LF
@pytest.mark.parametrize("vocabulary", [None, ["the"]])
@pytest.mark.parametrize("num_lost", [1, 7])
def test_a_record_that_is_cut_short(write, vocabulary, end, num_lost):
    content = (b"2 2\n" + records(end, **TABLE)).removesuffix(end)[:-num_lost]
    second = 4 + 12 + len(end)
    message = rf"byte {second}: found {len(content) - second} bytes of a record at the end; .* 8 bytes, float32 x 2"
    with pytest.raises(VectorFormatError, match=message):
        read_vectors(write(content), vocabulary)


def test_a_record_without_a_line_feed_after_records_with_one(write):
    many = records(b"\n", **{f"word{number}": [0.1, number] for number in range(100_000)})
    with pytest.raises(VectorFormatError, match=r"byte \d{7}: found b'o' after a record, not LF"):
        read_vectors(write(b"100002 2\n" + many + records(b"", **TABLE)))


def test_data_without_any_space_is_refused_before_it_fills_the_memory(write):
    content = b"9 2\n" + records(b"", **{f"w{number}": [1, 2] for number in range(9)}) + b"\xff" * 5_000_000
    with pytest.raises(VectorFormatError, match=r"byte 103: found \d{7} bytes without a space"):
        read_vectors(write(content))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_N3_values_that_are_not_finite(write, value):
    path = write(b"3 2\n" + records(b"", the=[1, 2], bad=[5, value], of=[3, 4]))
    assert table_of(read_vectors(path, ["the", "of"])) == TABLE
    with pytest.raises(VectorFormatError, match=r"byte 16: found \S+ in the row of 'bad'"):
        read_vectors(path)
    with pytest.warns(VectorFileWarning, match=r"replaced by 0: 1 \(first: byte 16\)"):
        assert table_of(read_vectors(path, non_finite="zero")) == {"the": [1, 2], "bad": [5, 0], "of": [3, 4]}


def test_Y1_the_first_of_two_duplicates_is_kept(write):
    path = write(b"3 2\n" + records(b"\n", **TABLE) + records(b"\n", the=[5, 6]))
    with pytest.warns(VectorFileWarning, match=r": duplicate words, first row kept: 1 \(first: byte 29\)\. read_"):
        assert table_of(read_vectors(path)) == TABLE


@st.composite
def tables(draw):
    """Words of any bytes that the format can hold, rows of any finite bits."""
    dim = draw(st.integers(1, 5))
    word = st.binary(max_size=6).map(lambda raw: raw.replace(b" ", b"").replace(b"\n", b""))
    value = st.floats(width=32, allow_nan=False, allow_infinity=False)
    words = draw(st.lists(word, min_size=3, max_size=8, unique=True))
    return dim, {each: draw(st.lists(value, min_size=dim, max_size=dim)) for each in words}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("binary") / "drawn.bin"


@given(tables(), st.integers(1, 40), st.sampled_from([b"\n", b""]), st.data())
def test_write_then_read_is_the_identity_in_any_chunks(path, table, chunk, end, data):
    dim, rows = table
    # A row that is not text.
    rows[b"last"] = [np.float32(1.1)] * dim
    content = b"%d %d\n" % (len(rows), dim) + b"".join(word + b" " + f(*row) + end for word, row in rows.items())
    path.write_bytes(content)
    expected = {word.decode("utf-8", "surrogateescape"): row for word, row in rows.items()}
    wanted = data.draw(st.lists(st.sampled_from(sorted(expected))))
    with mock.patch.object(compressions, "CHUNK_BYTES", chunk), warnings.catch_warnings():
        warnings.simplefilter("ignore", VectorFileWarning)
        # Random words and numbers would not show the dtype.
        options = {"format": "word2vec-binary-float32"}
        vectors = read_vectors(path, **options)
        chosen = read_vectors(path, wanted, **options)
        blocks = list(iter_vectors(path, **options))
    assert same_table(vectors, expected, dim)
    assert same_table(chosen, {word: row for word, row in expected.items() if word in wanted}, dim)
    assert [word for block in blocks for word in block.words] == list(expected)
