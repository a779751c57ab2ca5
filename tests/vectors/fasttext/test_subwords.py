"""Vectors of any word from a fastText .bin model, against fastText, gensim and plain Python."""

import gzip
import re
import zipfile
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import SplitError, VectorFileWarning, VectorFormatError, VocabularyError
from splitembed.initializers.by_name import initialize_rows
from splitembed.vectors import WordVectors, read_vectors
from splitembed.vectors.fasttext.subwords import SubwordVectors
from splitembed.vectors.streams import compressions
from tests.helpers.fasttext_models import (
    fasttext_command,
    model_bytes,
    options_of_ngrams,
    printed_vectors,
    raw_words,
    vector_of,
)

WORDS = [b"the", "café".encode(), b"</s>"]
ROWS = np.random.default_rng(5).standard_normal((23, 4)).astype(np.float32)
OPTIONS = {"bucket": 20, "minn": 2, "maxn": 4}
QUERIES = ["café", "unheard", "the", "кот", "</s>", "the", "x", ""]
TEXT = "the cat sat on the mat\nthe dog ran and the cat ran\nnaïve café мышь кот 日本語 the cat\n" * 20


@pytest.fixture
def model(write):
    return write(model_bytes(WORDS, ROWS, **OPTIONS))


def test_any_words_in_any_order_with_repetitions(model):
    vectors = SubwordVectors(model)
    rows = vectors.rows(QUERIES)
    assert (vectors.dim, vectors.has_subwords, rows.dtype, rows.shape) == (4, True, np.float32, (8, 4))
    expected = [vector_of(word.encode(), WORDS, ROWS, **OPTIONS) for word in QUERIES]
    np.testing.assert_allclose(rows, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(rows[2], rows[5])
    np.testing.assert_array_equal(vectors.rows(QUERIES[:1]), rows[:1])
    assert vectors.rows([]).shape == (0, 4)
    assert repr(vectors) == f"<SubwordVectors of {model}: dim 4>"


def test_words_of_the_model_have_the_rows_of_read_vectors(model):
    vectors = read_vectors(model)
    np.testing.assert_allclose(SubwordVectors(model).rows(vectors.words), vectors.vectors, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(vectors.subwords.rows(QUERIES), SubwordVectors(model).rows(QUERIES))


@given(
    st.lists(raw_words, min_size=1, max_size=5, unique=True),
    st.lists(raw_words, max_size=8),
    options_of_ngrams,
    st.booleans(),
    st.integers(1, 99),
)
def test_any_words_of_any_model(tmp_path_factory, words, others, options, compressed, chunk):
    rows = np.random.default_rng(chunk).standard_normal((len(words) + options["bucket"], 2)).astype(np.float32)
    content = model_bytes(words, rows, **options)
    path = tmp_path_factory.getbasetemp() / "drawn.bin"
    path.write_bytes(gzip.compress(content) if compressed else content)
    queries = [*others, *words]
    with mock.patch.object(compressions, "CHUNK_BYTES", chunk):
        found = SubwordVectors(path).rows([word.decode("utf-8", "surrogateescape") for word in queries])
    expected = np.array([vector_of(word, words, rows, **options) for word in queries])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)


def test_a_word_without_ngrams_is_zero_as_in_fasttext(write):
    vectors = SubwordVectors(write(model_bytes(WORDS, ROWS, bucket=20, minn=5, maxn=6)))
    rows = vectors.rows(["x", "unheard", "xy", "the"])
    assert [bool(row.any()) for row in rows] == [False, True, False, True]


def test_a_model_without_subwords(write):
    path = write(model_bytes(WORDS, ROWS[:3], bucket=0, minn=0, maxn=0))
    vectors = SubwordVectors(path)
    assert not vectors.has_subwords
    np.testing.assert_array_equal(vectors.rows(["unheard", "the"]), [[0, 0, 0, 0], ROWS[0]])
    message = re.escape(f"{path} has no subwords (it was trained with -maxn 0), so it has no row for a token")
    with pytest.raises(SplitError, match=message):
        vectors.make_rows(["unheard"], None, None)


def test_it_initializes_rows(model):
    expected = SubwordVectors(model).rows(["unheard", "кот"])
    known = read_vectors(model, ["the"])
    for initializer in ("subwords", SubwordVectors(model)):
        np.testing.assert_array_equal(initialize_rows(initializer, ["unheard", "кот"], 4, known=known), expected)
    plain = WordVectors(["the"], ROWS[:1], source="glove.txt")
    np.testing.assert_array_equal(initialize_rows(SubwordVectors(model), ["unheard", "кот"], 4, known=plain), expected)
    with pytest.raises(
        SplitError, match=r"vectors of glove\.txt, which come without.*SubwordVectors\(\"model\.bin\"\)"
    ):
        initialize_rows("subwords", ["unheard"], 4, known=plain)
    with pytest.raises(SplitError, match=r"must return numbers of shape \(1, 3\)\. Received: shape \(1, 4\)"):
        initialize_rows(SubwordVectors(model), ["unheard"], 3)


def test_a_model_in_a_zip_archive(tmp_path):
    path = tmp_path / "models.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("small.bin", model_bytes(WORDS, ROWS[:, :2], **OPTIONS))
        archive.writestr("large.bin", model_bytes(WORDS, ROWS, **OPTIONS))
    expected = [vector_of(word.encode(), WORDS, ROWS, **OPTIONS) for word in QUERIES]
    for options in ({"member": "large.bin"}, {"dim": 4}):
        np.testing.assert_allclose(SubwordVectors(path, **options).rows(QUERIES), expected, rtol=1e-6, atol=1e-6)


def test_other_files_are_refused(write, tmp_path, model):
    with pytest.raises(VectorFormatError, match=": found rows of dim 4; expected dim=3"):
        SubwordVectors(model, dim=3)
    with pytest.raises(VectorFormatError, match=r"found b'the 0\.1\\n' at its start; expected a fastText \.bin model"):
        SubwordVectors(write(b"the 0.1\n"))
    with pytest.raises(FileNotFoundError):
        SubwordVectors(tmp_path / "none.bin")
    content = model_bytes(WORDS, ROWS, **OPTIONS, pruned=4)
    with pytest.raises(VectorFormatError, match="found a pruned dictionary"):
        SubwordVectors(write(content))


def test_a_word_that_cannot_be_encoded_is_refused(model):
    with pytest.raises(VocabularyError, match="lone surrogate"):
        SubwordVectors(model).rows(["the", "\ud800"])


def test_N3_values_that_are_not_finite(write):
    rows = ROWS.copy()
    rows[3:] = np.nan
    vectors = SubwordVectors(write(model_bytes(WORDS, rows, **OPTIONS)))
    with pytest.raises(VectorFormatError, match="values that are not finite in the vector of 'unheard'"):
        vectors.rows(["</s>", "unheard"])
    np.testing.assert_array_equal(vectors.rows(["</s>"]), rows[2:3])


def test_a_model_cut_short_at_any_byte(write):
    content = model_bytes([b"the"], ROWS[:3, :1], bucket=2, minn=2, maxn=3)
    for position in range(len(content)):
        with pytest.raises(VectorFormatError):
            SubwordVectors(write(content[:position])).rows(["unheard"])
    vectors = SubwordVectors(write(content + b"?"))
    with pytest.warns(VectorFileWarning, match="bytes after the model's end"):
        vectors.rows(["unheard"])


def test_only_the_header_is_read_at_first_and_the_file_is_closed(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(model_bytes(WORDS, ROWS, **OPTIONS)[:92])
    vectors = SubwordVectors(path)
    path.unlink()
    path.write_bytes(model_bytes(WORDS, ROWS, **OPTIONS))
    assert vectors.rows(["the"]).shape == (1, 4)


# Debian's fasttext, and gensim


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fasttext")
    (folder / "text").write_text(TEXT, encoding="utf-8")
    fasttext_command("skipgram", "-input", folder / "text", "-output", folder / "model", "-thread", 1, "-epoch", 1,
                     "-minCount", 1, "-dim", 7, "-bucket", 1000, "-minn", 2)  # fmt: skip
    return folder / "model.bin"


UNHEARD = ["cats", "doggy", "кошка", "日本", "x", "naïveté", "<>", "a-b", "</s>", "the"]


def test_a_fresh_model_against_fasttext(fresh, tmp_path):
    expected = printed_vectors(fresh, UNHEARD)
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(fresh.read_bytes()))
    for path in (fresh, packed):
        # fastText prints 5 digits.
        np.testing.assert_allclose(SubwordVectors(path).rows(UNHEARD), expected, rtol=6e-5, atol=1e-9)


def load_with_gensim(path):
    return pytest.importorskip("gensim.models.fasttext").load_facebook_vectors(str(path))


def test_a_fresh_model_against_gensim(fresh):
    check_against_gensim(fresh)


@pytest.mark.parametrize(
    "name",
    ["lee_fasttext.bin", "non_ascii_fasttext.bin", "lee_fasttext_new.bin", "crime-and-punishment.bin", "toy-model.bin"],
)
def test_real_files_against_gensim(name):
    datapath = pytest.importorskip("gensim.test.utils").datapath
    check_against_gensim(datapath(name))


def check_against_gensim(path):
    # gensim gives "</s>" n-grams, which fastText no longer does.
    words = [word for word in UNHEARD if word != "</s>"]
    expected = np.stack([load_with_gensim(path)[word] for word in words])
    np.testing.assert_allclose(
        SubwordVectors(path).rows(words), expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max()
    )


def test_warnings_about_a_model_are_issued_once(write):
    path = write(model_bytes(WORDS, ROWS, **OPTIONS) + b"more")
    with pytest.warns(VectorFileWarning, match="bytes after the model's end") as caught:
        vectors = read_vectors(path, ["the"])
        initialize_rows("subwords", ["unheard"], 4, known=vectors)
        alone = SubwordVectors(path)
        alone.rows(["the"])
        alone.rows(["unheard"])
    # One by `read_vectors`, one by the other object.
    assert len(caught) == 2


def test_a_model_is_found_after_the_working_directory_changed(tmp_path, monkeypatch):
    (tmp_path / "model.bin").write_bytes(model_bytes(WORDS, ROWS, **OPTIONS))
    monkeypatch.chdir(tmp_path)
    vectors = read_vectors("model.bin", ["the"])
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(vectors.subwords.rows(QUERIES), SubwordVectors(tmp_path / "model.bin").rows(QUERIES))
