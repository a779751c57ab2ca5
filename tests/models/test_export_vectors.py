"""Files of vectors for other tools: read_vectors and gensim read the written bits, or the source is refused."""

import os

import numpy as np
import pytest
from click.testing import CliRunner
from gensim.models import KeyedVectors
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.accuracy.memory import PeakMemory
from splitembed import SplitEmbedding, SplitTable, export_vectors, read_vectors, save_frozen
from splitembed.cli.commands import main
from splitembed.errors import SplitError, VectorFormatError, VocabularyError
from splitembed.tables import open_frozen
from splitembed.vectors import WordVectors
from splitembed.vectors import write as writing
from tests.helpers.bits import same_bits
from tests.helpers.odd_words import ODD_WORDS, any_word, float32_rows

FORMATS = ("glove", "word2vec", "word2vec-binary")
READ_AS = {"glove": "text", "word2vec": "text", "word2vec-binary": "word2vec-binary"}
WORDS = ["the", "\u00e9t\u00e9", ".\xa0.", "\u3000", "me@x.org", "2", "-0.5", "\U0001f600"]


def rows_of(num_rows: int, dim: int = 3) -> np.ndarray:
    """Any finite float32, subnormal numbers and -0.0 among them, drawn evenly over their bits."""
    bits = np.random.default_rng(0).integers(0, 2**32, 4 * num_rows * dim, np.uint32)
    rows = bits.view(np.float32)
    rows = rows[np.isfinite(rows)][: num_rows * dim].reshape(num_rows, dim)
    rows[0, :2] = -0.0, np.finfo(np.float32).smallest_subnormal
    rows[-1, :3] = 0.1, np.finfo(np.float32).max, -9999999800000000.0
    return rows


def read_with_gensim(path, form: str) -> tuple[list[str], np.ndarray]:
    options = {"binary": form == "word2vec-binary", "no_header": form == "glove"}
    found = KeyedVectors.load_word2vec_format(str(path), **options)
    return found.index_to_key, found.vectors


@pytest.fixture
def split() -> SplitTable:
    """Every word, some of them trainable, and a padding token."""
    matrix = np.vstack([np.zeros((1, 3)), rows_of(len(WORDS))])
    return SplitTable.from_matrix(matrix, [2, 5], vocabulary=["", *WORDS], padding=0)


@pytest.mark.parametrize("form", FORMATS)
def test_gensim_reads_the_same_bits(split, tmp_path, form):
    assert export_vectors(tmp_path / "v", split, format=form, skip_unwritable=True) == [""]
    words, vectors = read_with_gensim(tmp_path / "v", form)
    assert words == WORDS
    same_bits(vectors, split.combine()[1:])


@pytest.mark.parametrize("form", FORMATS)
def test_read_vectors_reads_the_same_bits(split, tmp_path, form):
    export_vectors(tmp_path / "v", split, format=form, skip_unwritable=True)
    found = read_vectors(tmp_path / "v")
    assert list(found.words) == WORDS
    same_bits(found.vectors, split.combine()[1:])


def test_bytes_of_each_format(tmp_path):
    """As `glove.c` and `word2vec.c` write them."""
    vectors = WordVectors(["the", "of"], np.array([[1.0, -0.1], [1e-7, 300.0]], np.float32))
    expected = {
        "glove": b"the 1.0 -0.1\nof 1e-07 300.0\n",
        "word2vec": b"2 2\nthe 1.0 -0.1\nof 1e-07 300.0\n",
        "word2vec-binary": b"2 2\nthe "
        + vectors.vectors[0].tobytes()
        + b"\nof "
        + vectors.vectors[1].tobytes()
        + b"\n",
    }
    for form, content in expected.items():
        export_vectors(tmp_path / "v", vectors, format=form)
        assert (tmp_path / "v").read_bytes() == content


@given(words=st.lists(any_word, min_size=1, max_size=6, unique=True), data=st.data(), form=st.sampled_from(FORMATS))
def test_any_words_are_read_again_or_left_out(tmp_path_factory, words, data, form):
    rows = data.draw(float32_rows(len(words), data.draw(st.integers(1, 4))))
    rows = np.where(np.isfinite(rows), rows, np.float32(0))
    path = tmp_path_factory.mktemp("any") / "v"
    writable = [word for word in words if is_writable(word)]
    try:
        left_out = export_vectors(path, WordVectors(words, rows), format=form, skip_unwritable=True)
    except VocabularyError:
        assert not writable
        return
    kept = [index for index, word in enumerate(words) if word in writable and word not in left_out]
    # GloVe files cannot start with "\ufeff"
    assert len(kept) + len(left_out) == len(words) and len(writable) - len(kept) <= (form == "glove")
    gensim_words, gensim_vectors = read_with_gensim(path, form)
    assert gensim_words == [words[index] for index in kept]
    same_bits(gensim_vectors, rows[kept])
    found = read_vectors(path, format=READ_AS[form])
    assert list(found.words) == gensim_words
    same_bits(found.vectors, rows[kept])


def is_writable(word: str) -> bool:
    """Written in other words than the writer's."""
    is_text = all(not 0xD800 <= ord(character) < 0xE000 for character in word)
    return bool(word) and is_text and not set(word) & set("\0\t\n\v\f\r ")


@pytest.mark.parametrize(
    ("form", "word", "reason"),
    [
        ("word2vec", "a b", "it holds ' ', at which readers end a word"),
        ("word2vec-binary", "a b", "it holds ' ', at which readers end a word"),
        ("glove", "", "it is empty"),
        ("glove", "a b", "it holds ' ', at which readers end a word"),
        ("glove", "a\tb", r"it holds '\t'"),
        ("glove", "a\n", r"it holds '\n'"),
        ("glove", "\r", r"it holds '\r'"),
        ("glove", "a\0b", r"it holds '\x00'"),
        ("glove", "the", "it is a duplicate, and readers keep only its first row"),
        ("glove", "\udcff", "it is not Unicode text: it holds a lone surrogate"),
        ("glove", "\ud800", "it is not Unicode text"),
        ("glove", "x" * (2**20 + 1), "it has 1048577 bytes, more than the 1048576 of a word"),
    ],
)
def test_unwritable_words_are_named(tmp_path, form, word, reason):
    vectors = WordVectors(["the", word, "of"], np.eye(3, 2, dtype=np.float32))
    shown = repr(word if len(word) < 80 else word[:80] + "...")
    with pytest.raises(VocabularyError) as caught:
        export_vectors(tmp_path / "v", vectors, format=form)
    assert str(caught.value).startswith(f"Word 1, {shown}, cannot be written to a {form} file: {reason}")
    assert not any(tmp_path.iterdir())
    assert export_vectors(tmp_path / "v", vectors, format=form, skip_unwritable=True) == [word]
    assert read_with_gensim(tmp_path / "v", form)[0] == ["the", "of"]


def test_a_byte_order_mark_at_the_start_is_refused(tmp_path):
    vectors = WordVectors(["", "\ufeffthe", "\ufeff"], np.ones((3, 2), np.float32))
    with pytest.raises(VocabularyError, match=r"Word 0, ''.*, nor can 2 others: it is empty"):
        export_vectors(tmp_path / "v", vectors)
    with pytest.raises(VocabularyError, match="None of 3 words can be written to a glove file"):
        export_vectors(tmp_path / "v", vectors, skip_unwritable=True)
    assert export_vectors(tmp_path / "v", vectors, format="word2vec", skip_unwritable=True) == [""]
    assert list(read_vectors(tmp_path / "v").words) == ["\ufeffthe", "\ufeff"]


def test_odd_words_are_written(tmp_path):
    vectors = WordVectors(ODD_WORDS, rows_of(len(ODD_WORDS)))
    for form in FORMATS:
        left_out = export_vectors(tmp_path / "v", vectors, format=form, skip_unwritable=True)
        assert left_out == [word for word in ODD_WORDS if not is_writable(word)]
        found = read_vectors(tmp_path / "v")
        assert list(found.words) == [word for word in ODD_WORDS if is_writable(word)]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_refused_and_the_old_file_stays(tmp_path, value):
    (tmp_path / "v").write_text("old")
    rows = np.ones((3, 2), np.float32)
    rows[1, 1] = value
    for form in FORMATS:
        with pytest.raises(SplitError, match=f"The row of 'of' holds {value}"):
            export_vectors(tmp_path / "v", WordVectors(["the", "of", "and"], rows), format=form)
        assert os.listdir(tmp_path) == ["v"] and (tmp_path / "v").read_text() == "old"


def test_numbers_are_exact_under_an_old_style_of_printing(tmp_path):
    rows = rows_of(50)
    with np.printoptions(legacy="1.13"):
        export_vectors(tmp_path / "v", WordVectors([f"w{index}" for index in range(50)], rows))
    same_bits(read_vectors(tmp_path / "v").vectors, rows)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_rows_of_low_precision_are_written_as_the_layer_gives_them(tmp_path, dtype):
    matrix = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    split = SplitTable.from_matrix(matrix, [1], vocabulary=list("abcde")).with_frozen_dtype(dtype)
    export_vectors(tmp_path / "v", SplitEmbedding(split))
    found = read_vectors(tmp_path / "v")
    same_bits(found.vectors, split.combine())
    assert (found.vectors[0] != matrix[0]).any()


def test_a_layer_is_written_as_trained(split, tmp_path):
    layer = SplitEmbedding(split)
    layer.build()
    layer.trainable_rows.assign(np.full((2, 3), 7.0))
    export_vectors(tmp_path / "v", layer, skip_unwritable=True)
    found = read_vectors(tmp_path / "v").vectors
    assert (found[[1, 4]] == 7).all()
    same_bits(found[0], split.lookup(1))


def test_a_frozen_table_is_written_without_its_zero_row(tmp_path):
    table = save_frozen(tmp_path / "frozen.h5", {"the": [1.0, 2.0], "of": [3.0, 4.0]}, dtype="int8")
    assert table.zero_row == 2
    for source in (tmp_path / "frozen.h5", table):
        assert export_vectors(tmp_path / "v", source) == []
        assert (tmp_path / "v").read_text().split("\n")[1].startswith("of ")
        same_bits(read_vectors(tmp_path / "v").vectors, table.take([0, 1]))


def test_other_sources_and_formats_are_refused(tmp_path):
    for source in (SplitTable.from_matrix([[1.0]], []), SplitEmbedding(SplitTable.from_matrix([[1.0]], []))):
        with pytest.raises(SplitError, match="has no words to write with its rows"):
            export_vectors(tmp_path / "v", source)
    with pytest.raises(SplitError, match="`source` must be a SplitTable, or a layer that has one"):
        export_vectors(tmp_path / "v", np.ones((2, 3)))
    with pytest.raises(
        VectorFormatError,
        match=r"`format` must be one of glove, word2vec, word2vec-binary, projector\. Received: 'bin'",
    ):
        export_vectors(tmp_path / "v", WordVectors(["a"], np.ones((1, 1), np.float32)), format="bin")
    assert not any(tmp_path.iterdir())


def test_many_blocks_are_one_file(tmp_path, monkeypatch):
    # blocks of two rows
    monkeypatch.setattr(writing, "NUM_BLOCK_NUMBERS", 7)
    words, rows = [f"w{index}" for index in range(11)], rows_of(11)
    for form in FORMATS:
        export_vectors(
            tmp_path / "v",
            WordVectors([*words[:4], "", *words[4:]], np.insert(rows, 4, 0, 0)),
            format=form,
            skip_unwritable=True,
        )
        found_words, found = read_with_gensim(tmp_path / "v", form)
        assert found_words == words
        same_bits(found, rows)


def test_memory_stays_bounded(tmp_path):
    """A table of 60 MB, mapped: what is held is one block and the words."""
    num_words, dim = 150_000, 100
    save_frozen(
        tmp_path / "frozen.h5", ([f"w{index}" for index in range(num_words)], np.ones((num_words, dim), np.float32))
    )
    table = open_frozen(tmp_path / "frozen.h5")
    # the words are decoded here
    assert table.words[0] == "w0"
    with PeakMemory() as peak:
        export_vectors(tmp_path / "v", table, format="word2vec-binary")
    assert (tmp_path / "v").stat().st_size > 60_000_000
    assert peak.growth is None or peak.growth < 40_000_000


def test_the_command_exports_folders_and_single_tables(split, tmp_path):
    split.save(tmp_path / "tables")
    save_frozen(tmp_path / "shared.h5", {"the": [1.0, 2.0]})
    out = str(tmp_path / "out.txt")
    for source in ("tables", "tables/trainable.h5"):
        refused = CliRunner().invoke(main, ["export", str(tmp_path / source), out])
        assert refused.exit_code == 1 and refused.output.startswith(
            "Error: Word 0, '', cannot be written to a glove file"
        )
        done = CliRunner().invoke(main, ["export", str(tmp_path / source), out, "--skip-unwritable"])
        assert done.exit_code == 0 and done.output == f"{out}: glove, 1 token left out: ''\n"
        same_bits(read_vectors(out).vectors, split.combine()[1:])
    done = CliRunner().invoke(main, ["export", str(tmp_path / "shared.h5"), out, "--format", "word2vec"])
    assert done.output == f"{out}: word2vec, every token\n"
    assert (tmp_path / "out.txt").read_text() == "1 2\nthe 1.0 2.0\n"
