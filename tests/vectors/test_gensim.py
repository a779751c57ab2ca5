"""Real files that come with gensim, value for value against gensim's own loader."""

import sys
from pathlib import Path

import numpy as np
import pytest

from splitembed.errors import VectorFileWarning, VectorFormatError
from splitembed.vectors import read_vectors

gensim = pytest.importorskip("gensim")
from gensim.models import FastText, KeyedVectors, Word2Vec  # noqa: E402

DATA = Path(gensim.__file__).parent / "test" / "test_data"
SENTENCES = [["the", "cat", "sat"], ["the", "dog", "ran"], ["a", "cat", "ran"]]

FILES = {
    "euclidean_vectors.bin": {"binary": True},
    "word2vec_pre_kv_c": {},
    "test_glove.txt": {"no_header": True},
    "lee_fasttext.vec": {},
    "crime-and-punishment.vec": {},
    "toy-model.vec": {},
    "poincare_vectors.bin": {"binary": True},
    "high_precision.kv.txt": {"datatype": np.float64},
    "high_precision.kv.bin": {"binary": True},
}


@pytest.mark.parametrize("name", FILES)
def test_real_files(name):
    expected = KeyedVectors.load_word2vec_format(str(DATA / name), **FILES[name])
    vectors = read_vectors(DATA / name)
    assert vectors.words == expected.index_to_key
    assert np.array_equal(vectors.vectors, expected.vectors.astype(np.float32))
    wanted = [*vectors.words[::7], "not there"]
    chosen = read_vectors(DATA / name, wanted)
    assert chosen.words == wanted[:-1] and np.array_equal(chosen.vectors, vectors.vectors[::7])


def test_a_real_file_with_words_that_are_not_utf8():
    path = DATA / "pang_lee_polarity_fasttext.vec"
    expected = KeyedVectors.load_word2vec_format(str(path), unicode_errors="surrogateescape")
    with pytest.warns(VectorFileWarning, match="not valid UTF-8, kept with their bytes escaped: 5 "):
        vectors = read_vectors(path)
    assert vectors.words == expected.index_to_key and np.array_equal(vectors.vectors, expected.vectors)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("word2vec_pre_kv_py3_4", "found a pickle, .*allow_pickle=True"),
        ("old_keyedvectors_320.dat", "found a pickle, .*allow_pickle=True"),
        ("phraser-3.6.0.model", "found a pickle, .*allow_pickle=True"),
        ("word2vec_pre_kv_sep_py3_4.syn0.npy", "found a NumPy .npy array"),
        ("ft_kv_3.6.0.model.gz", "found a pickle"),
    ],
)
def test_real_files_of_other_formats(name, message):
    with pytest.raises(VectorFormatError, match=message):
        read_vectors(DATA / name)


@pytest.mark.parametrize("model_type", [Word2Vec, FastText])
@pytest.mark.parametrize("binary", [False, True])
def test_models_in_memory_and_as_gensim_writes_them(tmp_path, model_type, binary):
    model = model_type(SENTENCES, vector_size=7, min_count=1, seed=1, workers=1, epochs=1)
    vectors = read_vectors(model.wv)
    assert vectors.words == model.wv.index_to_key and np.array_equal(vectors.vectors, model.wv.vectors)
    model.wv.save_word2vec_format(str(tmp_path / "saved"), binary=binary)
    saved = read_vectors(tmp_path / "saved")
    assert saved.words == vectors.words and np.array_equal(saved.vectors, vectors.vectors)
    with pytest.raises(VectorFormatError, match=r"Pass model\.wv"):
        read_vectors(model)


def test_a_missing_array_is_named(tmp_path):
    vectors = KeyedVectors(3)
    vectors.add_vectors(["the", "of"], np.ones((2, 3), np.float32))
    vectors.save(str(tmp_path / "k.kv"), sep_limit=0)
    assert read_vectors(tmp_path / "k.kv", allow_pickle=True).words == ["the", "of"]
    (tmp_path / "k.kv.vectors.npy").unlink()
    with pytest.raises(
        VectorFormatError, match=r"k\.kv: found no file .*k\.kv\.vectors\.npy; expected it beside k\.kv"
    ):
        read_vectors(tmp_path / "k.kv", allow_pickle=True)


# Saved by gensim 0.12 to 4.4, on Python 2 and 3; whole models give their vectors.
PICKLES = [
    "old_keyedvectors_320.dat",
    "word2vec_3.3",
    "word2vec_old",
    "word2vec_old_sep",
    "model-from-gensim-3.8.0.w2v",
    "compatible-hash-true.model",
]


@pytest.mark.parametrize("name", PICKLES)
def test_real_pickles_that_the_user_trusts(name):
    loaded = KeyedVectors.load(str(DATA / name))
    expected = getattr(loaded, "wv", loaded)
    vectors = read_vectors(DATA / name, allow_pickle=True)
    assert vectors.words == expected.index_to_key and np.array_equal(vectors.vectors, expected.vectors)


@pytest.mark.parametrize("name", ["word2vec_pre_kv_py2", "ft_kv_3.6.0.model.gz", "lee_fasttext"])
def test_real_pickles_that_gensim_cannot_load_are_refused(name):
    with pytest.raises(VectorFormatError, match=f"{name}: found a pickle that cannot be loaded here"):
        read_vectors(DATA / name, allow_pickle=True)


@pytest.mark.parametrize("separately", [[], ["vectors"]])
@pytest.mark.parametrize("name", ["v.kv", "v.kv.gz"])
def test_keyed_vectors_as_gensim_saves_them(tmp_path, separately, name):
    model = FastText(SENTENCES, vector_size=7, min_count=1, seed=1, workers=1, epochs=1, bucket=20)
    for saved in (model.wv, model):
        saved.save(str(tmp_path / name), separately=separately)
        vectors = read_vectors(tmp_path / name, ["cat", "the", "unheard"], allow_pickle=True)
        assert sorted(vectors.words) == ["cat", "the"]
        assert np.array_equal(vectors.take([0])[0], model.wv[vectors.words[0]])


def test_the_library_is_named_where_it_is_missing(monkeypatch):
    for name in ("gensim.models", "gensim"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"old_keyedvectors_320\.dat needs .*gensim.*splitembed\[gensim\]"):
        read_vectors(DATA / "old_keyedvectors_320.dat", allow_pickle=True)
