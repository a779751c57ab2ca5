"""fastText .bin: every word has the vector of fastText; damage is an error and allocates nothing."""

import gzip
import struct
import tracemalloc
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import VectorFileWarning, VectorFormatError
from splitembed.vectors import iter_vectors, read_vectors
from splitembed.vectors.streams import compressions
from tests.helpers.fasttext_models import (
    SUPERVISED,
    fasttext_command,
    model_bytes,
    options_of_ngrams,
    printed_vectors,
    raw_words,
    vector_of,
)
from tests.helpers.reference import same_table, table_of

# fastText 0.9.2, dim 2, "aa" and "</s>", n-grams of 2 characters in 2 buckets: "<a" and "aa" in 0 or 1 by their hash.
GOLDEN = (
    b"\xba\x16\x4f\x2f\x0c\0\0\0"
    b"\2\0\0\0\5\0\0\0\5\0\0\0\1\0\0\0\5\0\0\0\1\0\0\0\2\0\0\0\2\0\0\0\2\0\0\0\2\0\0\0\2\0\0\0\x64\0\0\0"
    b"\x2d\x43\x1c\xeb\xe2\x36\x1a\x3f"
    b"\2\0\0\0\2\0\0\0\0\0\0\0" b"\7\0\0\0\0\0\0\0" b"\xff\xff\xff\xff\xff\xff\xff\xff"
    b"aa\0" b"\5\0\0\0\0\0\0\0" b"\0"
    b"</s>\0" b"\2\0\0\0\0\0\0\0" b"\0"
    b"\0" b"\4\0\0\0\0\0\0\0" b"\2\0\0\0\0\0\0\0"
    b"\0\0\x80\x3f\0\0\0\x40" b"\0\0\x40\x40\0\0\x80\x40" b"\0\0\0\x41\0\0\x80\x41" b"\0\0\0\x42\0\0\x80\x42"
    b"\0" b"\2\0\0\0\0\0\0\0" b"\2\0\0\0\0\0\0\0" + bytes(16)
)  # fmt: skip
# Rows: aa 1 2, </s> 3 4, bucket 0 is 8 16, bucket 1 is 32 64. Hashes of <a, aa, a> by hand: odd, even, even.
GOLDEN_TABLE = {"aa": [(1 + 32 + 8 + 8) / 4, (2 + 64 + 16 + 16) / 4], "</s>": [3, 4]}
TEXT = "the cat sat on the mat\nthe dog ran and the cat ran\nnaïve café мышь кот 日本語 the cat\n" * 20
OOV = ["cats", "doggy", "кошка", "日本", "x", "<>"]


def test_golden_bytes(write):
    path = write(GOLDEN)
    assert table_of(read_vectors(path)) == GOLDEN_TABLE
    assert table_of(read_vectors(path, ["</s>", "unheard"])) == {"</s>": [3, 4]}
    assert table_of(read_vectors(path, format="fasttext-bin", dim=2)) == GOLDEN_TABLE
    assert table_of(read_vectors(path, [])) == {}
    assert [words for words, _ in iter_vectors(path)] == [["aa", "</s>"]]


@pytest.mark.parametrize("vocabulary", [None, ["aa"], []])
def test_a_model_cut_short_at_any_byte(write, vocabulary):
    for position in range(len(GOLDEN)):
        with pytest.raises(VectorFormatError):
            read_vectors(write(GOLDEN[:position]), vocabulary)


@pytest.mark.parametrize(
    ("position", "message"),
    [
        (20, r"byte 8: found 12 bytes of the header; expected 56 bytes\. The file is damaged or cut short"),
        (90, r"byte 64: found 26 bytes of the header; expected 28"),
        (100, r"byte 92: found 0 of 2 entries, then 8 other bytes; expected a word, NUL and 9 bytes"),
        (106, r"byte 104: found 1 of 2 entries, then 2 other bytes"),
        (130, r"byte 119: found 11 bytes of the input matrix; expected 16 bytes"),
        (160, r"byte 135: found 25 bytes of the input matrix; expected 32 bytes"),
        (len(GOLDEN) - 1, r"byte 184: found 15 bytes of the output matrix; expected 16 bytes"),
    ],
)
def test_missing_bytes_are_named(write, position, message):
    with pytest.raises(VectorFormatError, match=message):
        read_vectors(write(GOLDEN[:position]))


def changed(position, value):
    raw = struct.pack("<i" if position < 76 else "<q", value)
    return GOLDEN[:position] + raw + GOLDEN[position + len(raw) :]


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (4, 13, "byte 4: found version 13 of fastText's format; expected version 11 or 12"),
        (8, 0, "found a fastText .bin model of dim 0; expected at least 1"),
        (8, -2, "found a fastText .bin model of dim -2"),
        (8, 1 << 30, "byte 8: found dim 1073741824 in the header"),
        (8, 3, "byte 119: found an input matrix of 4 rows of dim 2; expected 2 words and 2 buckets of dim 3"),
        (40, 0, "byte 40: found 0 buckets of n-grams in the header; expected 1 or more"),
        (40, -1, "byte 40: found -1 buckets"),
        (40, 2**31 - 1, "input matrix of 4 rows of dim 2; expected 2 words and 2147483647 buckets"),
        (48, 2**31 - 1, "byte 48: found n-grams of 2147483647 characters in the header; expected at most 64"),
        (64, 3, "byte 64: found a dictionary of 3 entries, 2 words and 0 labels"),
        (68, 2**31 - 1, "byte 64: found a dictionary of 2 entries, 2147483647 words"),
        (84, 0, r"byte 64: found a pruned dictionary \(0 n-grams kept\).*Pass the \.bin that it was made from"),
        (84, 2**62, "byte 64: found a pruned dictionary"),
        (119, 2**62, "byte 119: found an input matrix of 4611686018427387904 rows of dim 2"),
        (168, 2**62, "byte 184: found 16 bytes of the output matrix; expected"),
        (168, -(2**62), "byte 168: found an output matrix of -4611686018427387904 rows"),
    ],
)
def test_a_damaged_header_allocates_nothing(write, position, value, message):
    path = write(changed(position, value))
    tracemalloc.start()
    try:
        with pytest.raises(VectorFormatError, match=message):
            read_vectors(path)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_dictionary_with_too_large_counts(write):
    changed_header = changed(64, 2**31 - 1)
    changed_header = changed_header[:68] + struct.pack("<i", 2**31 - 1) + changed_header[72:]
    with pytest.raises(VectorFormatError, match="entry|entries"):
        read_vectors(write(changed_header))


def test_entries_of_the_wrong_type(write):
    content = model_bytes([b"the", b"of"], np.ones((4, 1)), bucket=2, minn=1, maxn=2)
    position = content.index(b"of\0") + 11
    with pytest.raises(VectorFormatError, match=r"byte \d+: found entry 1 of type 1; expected 2 words, type 0, then"):
        read_vectors(write(content[:position] + b"\1" + content[position + 1 :]))


def test_data_without_an_end_of_a_word_is_refused_before_it_fills_the_memory(write):
    content = GOLDEN[:92] + b"a" * 5_000_000
    with pytest.raises(VectorFormatError, match=r"byte 92: found 0 of 2 entries, then \d{7} other bytes"):
        read_vectors(write(content))


def test_quantized_rows_are_refused(write):
    content = model_bytes([b"the"], np.ones((2, 1)), bucket=1, minn=1, maxn=2, quantized=True)
    with pytest.raises(
        VectorFormatError, match=r"found quantized rows; expected float32\. .* `fasttext print-word-vec"
    ):
        read_vectors(write(content))


def test_bytes_after_the_end_give_a_warning(write):
    with pytest.warns(VectorFileWarning, match=r"bytes after the model's end, ignored \(first: byte 200\)"):
        assert table_of(read_vectors(write(GOLDEN + b"?"))) == GOLDEN_TABLE
    with pytest.raises(VectorFormatError, match="bytes after the model's end"):
        read_vectors(write(GOLDEN + b"?"), strict=True)


def test_H5_another_dim_than_the_requested_one(write):
    with pytest.raises(VectorFormatError, match=": found rows of dim 2; expected dim=3"):
        read_vectors(write(GOLDEN), dim=3)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_N3_values_that_are_not_finite(write, value):
    # Own rows, then the bucket that all n-grams share.
    rows = [[1, 2], [value, value], [5, 6], [value, 0]]
    path = write(model_bytes([b"the", b"bad", b"</s>"], rows, bucket=1, minn=9, maxn=9))
    assert table_of(read_vectors(path, ["the", "</s>"])) == {"the": [1, 2], "</s>": [5, 6]}
    if not np.isfinite(value):
        with pytest.raises(VectorFormatError, match=r"byte 105: found \S+ in the row of 'bad'"):
            read_vectors(path)
        with pytest.warns(VectorFileWarning, match=r"replaced by 0: 2 \(first: byte 105\)"):
            assert table_of(read_vectors(path, non_finite="zero"))["bad"] == [0, 0]
    path = write(model_bytes([b"the"], [[value, 1], [value, 1]], bucket=1, minn=2, maxn=2))
    with warnings.catch_warnings():
        # A sum that overflows float32 is reported once, by the error.
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(VectorFormatError, match=r"byte 92: found \S+ in the row of 'the'"):
            read_vectors(path)


def test_B3_words_that_are_not_utf8(write):
    words = [b"\xd0\xbf\xd1", b"\xd0\xbf\xd2", b"ok", b"\x80"]
    rows = np.random.default_rng(1).standard_normal((14, 3)).astype(np.float32)
    options = {"bucket": 10, "minn": 1, "maxn": 4}
    path = write(model_bytes(words, rows, **options))
    with pytest.warns(VectorFileWarning, match=r"kept with their bytes escaped: 3 \(first: byte 92\)"):
        vectors = read_vectors(path)
    assert [word.encode("utf-8", "surrogateescape") for word in vectors.words] == words
    expected = [vector_of(word, words, rows, **options) for word in words]
    np.testing.assert_allclose(vectors.vectors, expected, rtol=1e-6, atol=1e-6)


def test_Y1_the_first_of_two_duplicates_is_kept(write):
    path = write(model_bytes([b"the", b"of", b"the"], [[1], [2], [3], [4]], bucket=1, minn=0, maxn=0))
    with pytest.warns(VectorFileWarning, match=r"duplicate words, first row kept: 1 \(first: byte 117\)"):
        assert table_of(read_vectors(path)) == {"the": [1], "of": [2]}


def test_labels_are_not_words(write):
    labels = [b"__label__a", b"__label__b"]
    path = write(model_bytes([b"the"], [[1]], labels=labels, bucket=0, minn=0, maxn=0, kind=SUPERVISED))
    assert table_of(read_vectors(path)) == table_of(read_vectors(path, ["the", "__label__a"])) == {"the": [1]}


@pytest.mark.parametrize(("version", "expected"), [(0, 1), (11, 1), (12, 2)])
def test_old_supervised_models_use_no_ngrams(write, version, expected):
    path = write(model_bytes([b"the"], [[1], [3]], bucket=1, minn=5, maxn=5, version=version, kind=SUPERVISED))
    assert table_of(read_vectors(path)) == {"the": [expected]}


def test_only_the_first_format_has_ngrams_of_the_end_of_a_sentence(write):
    for version, expected in ((0, 2), (11, 1), (12, 1)):
        path = write(model_bytes([b"</s>"], [[1], [3]], bucket=1, minn=6, maxn=6, version=version))
        assert table_of(read_vectors(path)) == {"</s>": [expected]}


def test_a_model_without_words(write):
    path = write(model_bytes([], np.ones((2, 3)), bucket=2, minn=1, maxn=2))
    vectors = read_vectors(path)
    assert (list(vectors.words), vectors.vectors.shape) == ([], (0, 3))


@st.composite
def models(draw):
    """Words, rows and options of a model, and its bytes."""
    options = draw(options_of_ngrams)
    words = draw(st.lists(raw_words, min_size=1, max_size=8, unique=True))
    rows = np.random.default_rng(draw(st.integers(0, 99))).standard_normal((len(words) + options["bucket"], 3))
    rows = rows.astype(np.float32)
    return words, rows, options, model_bytes(words, rows, version=draw(st.sampled_from([11, 12])), **options)


@given(models(), st.integers(1, 60), st.booleans(), st.data())
def test_any_model_in_any_chunks(tmp_path_factory, model, chunk, compressed, data):
    words, rows, options, content = model
    path = tmp_path_factory.getbasetemp() / "drawn.bin"
    path.write_bytes(gzip.compress(content) if compressed else content)
    expected = np.array([vector_of(word, words, rows, **options) for word in words])
    strings = [word.decode("utf-8", "surrogateescape") for word in words]
    wanted = data.draw(st.lists(st.sampled_from(strings)))
    with mock.patch.object(compressions, "CHUNK_BYTES", chunk), warnings.catch_warnings():
        warnings.simplefilter("ignore", VectorFileWarning)
        vectors, chosen = read_vectors(path), read_vectors(path, wanted)
    assert list(vectors.words) == strings
    # At most 40 float32 additions of numbers of size 1.
    np.testing.assert_allclose(vectors.vectors, expected, rtol=1e-5, atol=2e-6)
    kept = [position for position, word in enumerate(strings) if word in wanted]
    assert same_table(chosen, {strings[position]: vectors.vectors[position] for position in kept}, 3)


# Models that Debian's fasttext writes


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Trains a model with some options, once."""
    folder, paths = tmp_path_factory.mktemp("fasttext"), {}

    def train(name, *options, command="skipgram", text=TEXT):
        if name not in paths:
            (folder / "text").write_text(text, encoding="utf-8")
            fasttext_command(command, "-input", folder / "text", "-output", folder / name, "-thread", 1, "-epoch", 1,
                             "-minCount", 1, "-dim", 7, *options)  # fmt: skip
            paths[name] = folder / f"{name}.bin"
        return paths[name]

    return train


MODELS = {
    "skipgram": ("-bucket", 1000),
    "wide": ("-bucket", 37, "-minn", 1, "-maxn", 9),
    "pairs": ("-bucket", 5, "-minn", 2, "-maxn", 2),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("compressed", [False, True])
def test_a_fresh_model_with_subwords(trained, tmp_path, name, compressed):
    path = trained(name, *MODELS[name])
    source = path
    if compressed:
        source = tmp_path / "model"
        source.write_bytes(gzip.compress(path.read_bytes()))
    vectors = read_vectors(source)
    # 5 digits are printed: half a unit of the fifth.
    np.testing.assert_allclose(vectors.vectors, printed_vectors(path, vectors.words), rtol=6e-5, atol=1e-9)
    assert {"the", "</s>", "naïve", "日本語"} <= set(vectors.words)
    # The text that fastText wrote for the same model.
    written = read_vectors(path.with_suffix(".vec"))
    assert list(written.words) == list(vectors.words)
    np.testing.assert_allclose(vectors.vectors, written.vectors, rtol=6e-5, atol=1e-9)
    chosen = read_vectors(source, ["мышь", "unheard", "the"])
    assert same_table(chosen, {word: vectors.vectors[vectors.words.index(word)] for word in ("the", "мышь")}, 7)


def test_a_fresh_model_without_subwords(trained):
    path = trained("cbow", "-maxn", 0, command="cbow")
    vectors = read_vectors(path)
    np.testing.assert_allclose(vectors.vectors, printed_vectors(path, vectors.words), rtol=6e-5, atol=1e-9)


@pytest.mark.parametrize(
    "options", [("-wordNgrams", 2, "-bucket", 50), ("-minn", 2, "-maxn", 3, "-bucket", 50)], ids=["words", "letters"]
)
def test_a_fresh_supervised_model(trained, options):
    text = "".join(f"__label__{number % 2} {line}\n" for number, line in enumerate(TEXT.splitlines()))
    path = trained("supervised" + options[0], *options, command="supervised", text=text)
    vectors = read_vectors(path)
    assert "the" in vectors.words and not any(word.startswith("__label__") for word in vectors.words)
    np.testing.assert_allclose(vectors.vectors, printed_vectors(path, vectors.words), rtol=6e-5, atol=1e-9)


@pytest.mark.parametrize("options", [(), ("-cutoff", 300)], ids=["quantized", "pruned"])
def test_a_fresh_quantized_model_is_refused(trained, tmp_path, options):
    text = "".join(f"__label__{number % 2} word{number} word{number + 1}\n" for number in range(900))
    trained("large", command="supervised", text=text)
    folder = trained("large").parent
    (folder / "text").write_text(text)
    fasttext_command("quantize", "-input", folder / "text", "-output", folder / "large", *options)
    with pytest.raises(
        VectorFormatError, match=r"found (a pruned dictionary|quantized rows).*compressed model \(\.ftz\)"
    ):
        read_vectors(folder / "large.ftz")


# gensim's files and reader


def load_with_gensim(path):
    fasttext = pytest.importorskip("gensim.models.fasttext")
    return fasttext.load_facebook_vectors(str(path))


def real_file(name):
    gensim = pytest.importorskip("gensim")
    return Path(gensim.__file__).parent / "test" / "test_data" / name


@pytest.mark.parametrize(
    "name",
    [
        # The first format.
        "lee_fasttext.bin",
        # The first format.
        "non_ascii_fasttext.bin",
        # Version 11.
        "lee_fasttext_new.bin",
        "crime-and-punishment.bin",
        "toy-model.bin",
        "toy-model-pretrained.bin",
    ],
)
def test_real_files_against_gensim(name):
    expected = load_with_gensim(real_file(name))
    vectors = read_vectors(real_file(name))
    assert list(vectors.words) == expected.index_to_key
    # gensim gives "</s>" n-grams in every version, fastText in the first alone; else the sums are rounded alike, or by
    # one unit of the largest row in them.
    same = [position for position, word in enumerate(vectors.words) if word != "</s>" or name == "lee_fasttext.bin"]
    scale = np.abs(expected.vectors).max()
    np.testing.assert_allclose(vectors.vectors[same], expected.vectors[same], rtol=1e-6, atol=1e-6 * scale)
    wanted = [*vectors.words[::7], "not there"]
    chosen = read_vectors(real_file(name), wanted)
    assert chosen.words == wanted[:-1] and np.array_equal(chosen.vectors, vectors.vectors[::7])


@pytest.mark.parametrize("name", ["lee_fasttext", "crime-and-punishment", "toy-model", "pang_lee_polarity_fasttext"])
# The last model has words that are not UTF-8.
@pytest.mark.filterwarnings("ignore::splitembed.errors.VectorFileWarning")
def test_real_files_against_the_text_files_of_fasttext(name):
    vectors, text = read_vectors(real_file(f"{name}.bin")), read_vectors(real_file(f"{name}.vec"))
    assert list(vectors.words) == list(text.words)
    # fastText prints 5 digits.
    np.testing.assert_allclose(vectors.vectors, text.vectors, rtol=6e-5, atol=1e-9)


def test_a_fresh_model_against_gensim(trained):
    path = trained("skipgram", *MODELS["skipgram"])
    expected, vectors = load_with_gensim(path), read_vectors(path)
    assert list(vectors.words) == expected.index_to_key
    same = [position for position, word in enumerate(vectors.words) if word != "</s>"]
    scale = np.abs(expected.vectors).max()
    np.testing.assert_allclose(vectors.vectors[same], expected.vectors[same], rtol=1e-6, atol=1e-6 * scale)


def test_M1_memory_follows_the_vocabulary(tmp_path):
    words = [b"word%d" % number for number in range(20_000)]
    rows = np.random.default_rng(0).standard_normal((120_000, 50)).astype(np.float32)
    options = {"bucket": 100_000, "minn": 3, "maxn": 6}
    content = model_bytes(words, rows, **options)
    path, packed = tmp_path / "model.bin", tmp_path / "packed"
    path.write_bytes(content)
    packed.write_bytes(gzip.compress(content, 1))
    wanted = words[::200]
    for source in (path, packed):
        tracemalloc.start()
        vectors = read_vectors(source, [word.decode() for word in wanted])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        expected = [vector_of(word, words, rows, **options) for word in wanted]
        np.testing.assert_allclose(vectors.vectors, expected, rtol=1e-5, atol=1e-6)
        # Measured: 6 MB of chunks, including the head; the rows of the file have 24 MB.
        assert peak < 10_000_000
