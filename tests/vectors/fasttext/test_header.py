"""Headers and matrix shapes of fastText models: every field is read, and every contradiction is named by its byte."""

import io

import numpy as np
import pytest

from splitembed.errors import VectorFormatError
from splitembed.vectors.fasttext.cursor import Cursor
from splitembed.vectors.fasttext.dictionary import read_words
from splitembed.vectors.fasttext.header import (
    Header,
    is_fasttext,
    read_dim,
    read_header,
    read_matrix_shape,
    skip_output,
)
from splitembed.vectors.read_checks import ReadChecks
from tests.helpers.fasttext_models import SUPERVISED, model_bytes

WORDS = [b"the", b"of"]
ROWS = np.arange(15, dtype=np.float32).reshape(5, 3)


def make_model(**options):
    return model_bytes(WORDS, ROWS, **{"bucket": 3, "minn": 2, "maxn": 4, **options})


def cursor_at_start(content):
    checks = ReadChecks("model.bin")
    checks.unit = "byte"
    return Cursor(io.BytesIO(content), checks), checks


def cursor_at_matrix(content):
    cursor, checks = cursor_at_start(content)
    header = read_header(cursor)
    read_words(cursor, header, frozenset())
    return cursor, header, checks


@pytest.mark.parametrize(("version", "position"), [(0, 56), (11, 64), (12, 64)])
def test_every_field_of_a_header(version, position):
    cursor, _ = cursor_at_start(make_model(version=version, labels=[b"__label__x"]))
    assert read_header(cursor) == Header(version != 0, 3, 3, 2, 4, 2, 1, position)


@pytest.mark.parametrize(("version", "maxn"), [(0, 0), (11, 0), (12, 4)])
def test_supervised_models_before_version_12_use_no_ngrams(version, maxn):
    cursor, _ = cursor_at_start(make_model(version=version, kind=SUPERVISED))
    assert read_header(cursor).maxn == maxn


@pytest.mark.parametrize(
    ("minn", "maxn", "has_subwords"), [(3, 6, True), (0, 1, True), (2, 2, True), (3, 2, False), (0, 0, False)]
)
def test_a_model_has_subwords_where_a_length_of_ngrams_is_allowed(minn, maxn, has_subwords):
    assert Header(True, 3, 3, minn, maxn, 2, 0, 64).has_subwords == has_subwords


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"version": 13}, "byte 4: found version 13 of fastText's format; expected version 11 or 12"),
        ({"size": 9}, "byte 64: found a dictionary of 9 entries, 2 words and 0 labels"),
        ({"pruned": 0}, r"byte 64: found a pruned dictionary \(0 n-grams kept\); expected all n-grams"),
        ({"maxn": 65}, "byte 48: found n-grams of 65 characters in the header; expected at most 64"),
    ],
)
def test_invalid_headers(options, message):
    cursor, _ = cursor_at_start(make_model(**options))
    with pytest.raises(VectorFormatError, match=message):
        read_header(cursor)


@pytest.mark.parametrize("version", [0, 12])
def test_a_model_is_recognized_by_its_first_bytes(version):
    content = make_model(version=version)
    assert is_fasttext(content) and read_dim(content) == 3
    assert not is_fasttext(content[:3])
    assert (read_dim(content[: 3 if version == 0 else 11]), read_dim(b"")) == (0, 0)


@pytest.mark.parametrize("content", [b"the 0.1 0.2\n", b"2 3\nthe ", b"\x93NUMPY", b""])
def test_other_files_are_not_recognized(content):
    assert not is_fasttext(content)


@pytest.mark.parametrize("version", [0, 12])
def test_the_cursor_is_at_the_first_row_after_the_shape(version):
    cursor, header, _ = cursor_at_matrix(make_model(version=version))
    assert read_matrix_shape(cursor, header) == 5
    assert cursor.take(ROWS.nbytes, "the rows") == ROWS.tobytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantized": True}, "found quantized rows; expected float32"),
        ({"shape": (5, 4)}, "found an input matrix of 5 rows of dim 4; expected 2 words and 3 buckets of dim 3"),
        ({"shape": (4, 3)}, "found an input matrix of 4 rows of dim 3"),
    ],
)
def test_invalid_matrix_shapes(options, message):
    cursor, header, _ = cursor_at_matrix(make_model(**options))
    with pytest.raises(VectorFormatError, match=message):
        read_matrix_shape(cursor, header)


def skip_to_the_end(content):
    cursor, header, checks = cursor_at_matrix(content)
    cursor.skip(read_matrix_shape(cursor, header) * header.dim * 4, "the input matrix")
    skip_output(cursor, header, checks)


def test_the_output_matrix_must_be_whole():
    skip_to_the_end(make_model())
    with pytest.raises(VectorFormatError, match="found 23 bytes of the output matrix; expected 24 bytes"):
        skip_to_the_end(make_model()[:-1])
    with pytest.raises(VectorFormatError, match="found an output matrix of 2 rows of dim 4; expected rows of dim 3"):
        skip_to_the_end(with_output_dim(4))


def with_output_dim(dim):
    content = bytearray(make_model())
    content[-24 - 8 : -24] = dim.to_bytes(8, "little")
    return bytes(content)
