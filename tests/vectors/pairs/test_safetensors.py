"""safetensors: tensors by name, and folders of model2vec, against the safetensors library and its own arithmetic."""

import json
import sys

import numpy as np
import pytest

from splitembed.errors import VectorFileWarning, VectorFormatError
from splitembed.vectors import VectorSource, iter_vectors, read_vectors
from tests.helpers.fresh import run_fresh
from tests.helpers.reference import table_of

safetensors = pytest.importorskip("safetensors.numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")

WORDS = ["the", "é", "of"]
MATRIX = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
TABLE = dict(zip(WORDS, MATRIX.tolist(), strict=True))
TOKENS = ["[PAD]", "[UNK]", "the", "of", "##ing"]
ROWS = np.arange(10, dtype=np.float32).reshape(5, 2)


def save_folder(folder, tensors, tokens=TOKENS):
    folder.mkdir(parents=True, exist_ok=True)
    safetensors.save_file(tensors, folder / "model.safetensors")
    special = [
        {"id": index, "content": token, "special": True, "normalized": False, "single_word": False, "lstrip": False}
        | {"rstrip": False}
        for index, token in enumerate(tokens[:2])
    ]
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
    model |= {"max_input_chars_per_word": 100, "vocab": {token: index for index, token in enumerate(tokens)}}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None}
    tokenizer |= {"pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None, "model": model}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    return folder


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "uint16", "int64"])
def test_a_matrix_of_any_dtype(tmp_path, dtype):
    path = tmp_path / "v.safetensors"
    safetensors.save_file({"vectors": MATRIX.astype(np.dtype(dtype)), "bias": np.zeros(3)}, path)
    assert table_of(read_vectors((WORDS, path))) == TABLE
    assert table_of(read_vectors((WORDS, str(path)), ["of"], datasets="vectors")) == {"of": [5, 6]}
    with pytest.raises(VectorFormatError, match=r"found 2 words and rows of shape \(3, 2\)"):
        read_vectors((WORDS[:2], path))


def test_values_of_low_precision_are_those_of_the_library(tmp_path):
    matrix = np.random.default_rng(0).normal(size=(5000, 7)).astype(ml_dtypes.bfloat16)
    safetensors.save_file({"v": matrix}, tmp_path / "v.safetensors")
    vectors = read_vectors((range(5000), tmp_path / "v.safetensors"))
    expected = safetensors.load_file(tmp_path / "v.safetensors")["v"].astype(np.float32)
    assert np.array_equal(vectors.vectors, expected)


def test_bfloat16_needs_nothing_that_is_imported_before(tmp_path, monkeypatch):
    path = tmp_path / "v.safetensors"
    safetensors.save_file({"v": MATRIX.astype(ml_dtypes.bfloat16)}, path)
    code = "import sys; from splitembed.vectors import read_vectors; "
    code += "print(read_vectors((range(3), sys.argv[1])).vectors.tolist())"
    assert run_fresh(code, path).strip() == str(MATRIX.tolist())
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ImportError, match=r"v\.safetensors needs the library ml_dtypes.*\"splitembed\[safetensors\]\""):
        read_vectors((WORDS, path))


def test_several_matrices_must_be_named(tmp_path):
    path = tmp_path / "v.safetensors"
    safetensors.save_file({"a": MATRIX, "b": 2 * MATRIX}, path)
    with pytest.raises(VectorFormatError, match=r"'a' \(3, 2\) F32, 'b' \(3, 2\) F32; expected one matrix. Name one"):
        read_vectors((WORDS, path))
    with pytest.raises(VectorFormatError, match="expected a tensor 'c'"):
        read_vectors((WORDS, path), datasets="c")
    assert read_vectors((WORDS, path), ["é"], datasets="b").vectors.tolist() == [[6, 8]]


def test_a_matrix_without_words_is_refused(tmp_path):
    safetensors.save_file({"a": MATRIX}, tmp_path / "v.safetensors")
    with pytest.raises(
        VectorFormatError, match=r"found a safetensors file, which holds no words.*Pass \(words, path\)"
    ):
        read_vectors(tmp_path / "v.safetensors")


@pytest.mark.parametrize("length", [9, 40, 90])
def test_a_file_cut_short(tmp_path, length):
    safetensors.save_file({"a": MATRIX}, tmp_path / "v.safetensors")
    (tmp_path / "v.safetensors").write_bytes((tmp_path / "v.safetensors").read_bytes()[:length])
    with pytest.raises(VectorFormatError, match="found safetensors data that is damaged or cut short"):
        read_vectors((WORDS, tmp_path / "v.safetensors"))


@pytest.mark.parametrize("tensor", ["embeddings", "embedding.weight", "anything"])
def test_a_folder_with_a_tokenizer(tmp_path, tensor):
    folder = save_folder(tmp_path / "model", {tensor: ROWS})
    for source in (folder, str(folder), folder / "model.safetensors"):
        assert table_of(read_vectors(source)) == {"the": [4, 5], "of": [6, 7]}
        assert table_of(read_vectors(source, ["of", "[UNK]", "##ing"])) == {"of": [6, 7]}
    assert table_of(read_vectors(folder, datasets=tensor)) == {"the": [4, 5], "of": [6, 7]}
    with pytest.raises(VectorFormatError, match="expected the name of the matrix alone"):
        read_vectors(folder, datasets=("a", "b"))


def test_a_folder_inside_a_folder(tmp_path):
    save_folder(tmp_path / "model" / "0_StaticEmbedding", {"embedding.weight": ROWS})
    assert read_vectors(tmp_path / "model").words == ["the", "of"]


def test_tokens_share_rows_where_a_mapping_says_so(tmp_path):
    mapping = np.array([0, 0, 1, 1, 2])
    folder = save_folder(tmp_path / "model", {"embeddings": ROWS[:3], "mapping": mapping})
    vectors = read_vectors(folder)
    assert vectors.words == ["the", "of"] and vectors.matrix.tolist() == [[2, 3]] and vectors.row_of.tolist() == [0, 0]
    assert np.array_equal(np.concatenate([block.vectors for block in iter_vectors(folder)]), vectors.vectors)


def test_weights_are_factors_of_the_rows(tmp_path):
    mapping, weights = np.array([0, 0, 1, 1, 2], np.int32), np.array([0, 0, 0.5, 2, 9])
    folder = save_folder(tmp_path / "a", {"embeddings": ROWS[:3], "mapping": mapping, "weights": weights})
    assert table_of(read_vectors(folder)) == {"the": [1, 1.5], "of": [4, 6]}
    folder = save_folder(tmp_path / "b", {"embeddings": ROWS, "weights": weights.astype(np.float16)})
    assert table_of(read_vectors(folder)) == {"the": [2, 2.5], "of": [12, 14]}


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"embeddings": ROWS[:4]}, r"found 5 words and rows of shape \(4, 2\)"),
        ({"embeddings": ROWS[:4], "weights": np.ones(5)}, r"found 5 words and rows of shape \(4, 2\)"),
        ({"embeddings": ROWS, "weights": np.ones(4)}, r"found `weights` of shape \(4,\); expected \(5,\)"),
        ({"embeddings": ROWS, "mapping": np.zeros(6, np.int64)}, r"found `mapping` of shape \(6,\); expected \(5,\)"),
        ({"embeddings": ROWS, "mapping": np.full(5, 5)}, r"found rows 5 to 5 in `mapping`; expected 0 to 4"),
        ({"embeddings": ROWS, "mapping": np.full(5, -1)}, r"found rows -1 to -1 in `mapping`"),
        ({"embeddings": ROWS.astype(np.int8)}, "found rows of int8, numbers without their scale"),
        ({"a": ROWS, "b": ROWS}, "expected one matrix. Name one"),
    ],
)
def test_tensors_of_different_models_are_refused(tmp_path, tensors, message):
    with pytest.raises(VectorFormatError, match=message):
        read_vectors(save_folder(tmp_path / "model", tensors))


def test_N3_values_that_are_not_finite(tmp_path):
    rows = ROWS.copy()
    # Row 0 belongs to a special token.
    rows[[0, 3], 1] = np.nan
    folder = save_folder(tmp_path / "model", {"embeddings": rows})
    with pytest.raises(VectorFormatError, match="row 3: found nan in the row of 'of'"):
        read_vectors(folder)
    with pytest.warns(VectorFileWarning, match="replaced by 0: 1"):
        vectors = read_vectors(VectorSource(folder, non_finite="zero"))
    assert table_of(vectors) == {"the": [4, 5], "of": [6, 0]}


def test_the_library_is_named_where_it_is_missing(tmp_path, monkeypatch):
    folder = save_folder(tmp_path / "model", {"embeddings": ROWS})
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r"model\.safetensors needs .*\"splitembed\[safetensors\]\""):
        read_vectors(folder)
