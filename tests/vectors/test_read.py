"""Reading of any source: the same table from every container, in memory that follows the vocabulary."""

import json
import sys

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.accuracy.memory import anonymous_bytes
from splitembed.vectors import VectorSource, iter_vectors, read_vectors
from splitembed.vectors.save_frozen import save_frozen
from tests.helpers.bits import same_bits
from tests.helpers.fresh import run_fresh
from tests.helpers.reference import table_of

WORDS = ["the", "é", "\u2028", "a b", "7"]
MATRIX = np.array([[1, 2], [3, 4], [5, 6], [7, 8], [0.1, -0.5]], np.float32)


def text(folder, words, matrix):
    lines = [" ".join([word, *map(repr, row)]) + "\n" for word, row in zip(words, matrix.tolist(), strict=True)]
    (folder / "v.txt").write_text("".join(lines), encoding="utf-8", newline="\n")
    return VectorSource(folder / "v.txt", dim=matrix.shape[1])


def binary(folder, words, matrix):
    records = [word.encode() + b" " + row.tobytes() for word, row in zip(words, matrix, strict=True)]
    (folder / "v.bin").write_bytes(b"%d %d\n" % matrix.shape + b"".join(records))
    return VectorSource(folder / "v.bin", format="word2vec-binary")


def frozen(folder, words, matrix):
    save_frozen(folder / "frozen.h5", (words, matrix))
    return folder


def npy(folder, words, matrix):
    np.save(folder / "v.npy", np.asfortranarray(matrix))
    (folder / "words.txt").write_text("\n".join(words) + "\n", encoding="utf-8", newline="\n")
    return folder / "words.txt", folder / "v.npy"


def npz(folder, words, matrix):
    np.savez_compressed(folder / "v.npz", words=np.array(words), matrix=matrix)
    return folder / "v.npz"


def hdf5(folder, words, matrix):
    with h5py.File(folder / "v.h5", "w") as file:
        file.create_dataset("words", data=words, dtype=h5py.string_dtype())
        file["matrix"] = matrix
    return VectorSource(folder / "v.h5", datasets=("words", "matrix"))


def tensors(folder, words, matrix):
    library = pytest.importorskip("safetensors.numpy")
    library.save_file({"embeddings": matrix}, folder / "model.safetensors")
    return words, folder / "model.safetensors"


def spacy(folder, words, matrix):
    msgpack = pytest.importorskip("msgpack")
    from splitembed.vectors.pairs.spacy_keys import keys_of

    with open(folder / "vectors", "wb") as file:
        np.save(file, matrix)
    (folder / "key2row").write_bytes(msgpack.packb({key: row for row, key in enumerate(keys_of(words).tolist())}))
    (folder / "strings.json").write_text(json.dumps(sorted(words)))
    return folder


CONTAINERS = [text, binary, frozen, npy, npz, hdf5, tensors, spacy]


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_table(tmp_path, container):
    source = container(tmp_path, WORDS if container is not binary else [*WORDS[:3], "ab", "7"], MATRIX)
    vectors = read_vectors(source)
    assert list(vectors.words) == (WORDS if container is not binary else [*WORDS[:3], "ab", "7"])
    same_bits(np.asarray(vectors.vectors), MATRIX)
    blocks = list(iter_vectors(source, ["7", "é", "unheard"]))
    assert [word for block in blocks for word in block.words] == ["é", "7"]
    assert np.array_equal(np.concatenate([block.vectors for block in blocks]), MATRIX[[1, 4]])


# each reading of HDF5 starts processes: tests/vectors/pairs/test_hdf5.py has some kinds of words and rows
@pytest.mark.parametrize("container", [npy, npz, tensors, spacy])
@given(data=st.data())
def test_any_words_and_rows_are_read_back(tmp_path_factory, container, data):
    letters = st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"]), min_size=1, max_size=5)
    words = data.draw(
        st.lists(letters.filter(lambda word: word[0] not in "\ufeff{"), min_size=1, max_size=9, unique=True)
    )
    values = data.draw(
        st.lists(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
                 min_size=len(words), max_size=len(words))
    )  # fmt: skip
    matrix = np.array(values, np.float32).reshape(len(words), 3)
    source = container(tmp_path_factory.mktemp("any"), words, matrix)
    vectors = read_vectors(source)
    assert vectors.words == words
    same_bits(vectors.vectors, matrix)
    chosen = read_vectors(source, words[::2])
    assert chosen.words == words[::2]
    same_bits(chosen.vectors, np.ascontiguousarray(matrix[::2]))


def test_a_fasttext_model_brings_its_subwords_where_it_is_a_file():
    gensim = pytest.importorskip("gensim")
    path = gensim.__path__[0] + "/test/test_data/toy-model.bin"
    vectors = read_vectors(path, dim=5)
    assert vectors.subwords.rows(vectors.words[:1]).shape == (1, 5)
    with open(path, "rb") as file:
        assert read_vectors(file).subwords is None


# 102 MB of float32.
LARGE = (100_000, 256)
CODE = """
import sys
import numpy as np
import splitembed.vectors.read
from benchmarks.accuracy.memory import PeakMemory
from splitembed.vectors import VectorSource, read_vectors
words, matrix, datasets = sys.argv[1:]
source = (words, matrix) if words else matrix
options = {"datasets": tuple(datasets.split())} if datasets else {}
wanted = [f"w{number}" for number in range(0, 100_000, 1000)]
import safetensors
read_vectors(source, wanted[:1], **options)
with PeakMemory() as peak:
    vectors = read_vectors(source, wanted, **options)
assert vectors.words == wanted and vectors.vectors[1, 0] == 1000 and vectors.vectors[99, 255] == 99_255, vectors
print(peak.growth)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    matrix = np.arange(LARGE[0], dtype=np.float32)[:, None] + np.arange(LARGE[1], dtype=np.float32)
    words = [f"w{number}" for number in range(LARGE[0])]
    npy(folder, words, matrix)
    np.savez(folder / "plain.npz", words=np.array(words), matrix=matrix)
    npz(folder, words, matrix)
    hdf5(folder, words, matrix)
    tensors(folder, words, matrix)
    return folder


@pytest.mark.skipif(anonymous_bytes() is None, reason="the system does not tell anonymous memory")
@pytest.mark.skipif(sys.platform == "darwin", reason="the system does not tell anonymous memory")
@pytest.mark.parametrize(
    ("words", "matrix", "datasets"),
    [
        ("words.txt", "v.npy", ""),
        ("", "plain.npz", ""),
        ("", "v.npz", ""),
        ("", "v.h5", "words matrix"),
        ("words.txt", "model.safetensors", ""),
    ],
)
def test_M1_peak_memory_follows_the_vocabulary(large, words, matrix, datasets):
    growth = int(run_fresh(CODE, large / words if words else "", large / matrix, datasets))
    # Blocks of 4 MB and the words; the matrix has 98 MB.
    assert growth < 25 << 20, growth


def test_the_block_size_does_not_change_the_table(tmp_path, monkeypatch):
    source = hdf5(tmp_path, WORDS, MATRIX)
    monkeypatch.setattr("splitembed.vectors.pairs.rows.NUM_BLOCK_ROWS", 2)
    assert table_of(read_vectors(source)) == dict(zip(WORDS, MATRIX.tolist(), strict=True))
    assert [len(block.words) for block in iter_vectors(source)] == [2, 2, 1]
