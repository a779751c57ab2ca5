"""HDF5 files that splitembed did not write: any two datasets by name, or an error that lists the datasets."""

import h5py
import numpy as np
import pytest

from splitembed.errors import VectorFileWarning, VectorFormatError
from splitembed.tables import write_frozen
from splitembed.vectors import VectorSource, iter_vectors, read_vectors
from splitembed.words import pack_words
from tests.helpers.odd_words import ODD_WORDS
from tests.helpers.reference import table_of

WORDS = ["the", "é", "of"]
MATRIX = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
TABLE = dict(zip(WORDS, MATRIX.tolist(), strict=True))
# The names that pandas writes, as in ConceptNet Numberbatch.
NAMES = ("mat/axis1", "mat/block0_values")


def write(tmp_path, words, matrix=MATRIX, **options):
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file.create_dataset(NAMES[0], data=words)
        file.create_dataset(NAMES[1], data=matrix, **options)
    return tmp_path / "v.h5"


@pytest.mark.parametrize(
    ("words", "dtype", "options"),
    [
        (np.array([word.encode() for word in WORDS]), "<f4", {}),
        (np.array(WORDS, h5py.string_dtype()), ">f8", {"chunks": (2, 1), "compression": "gzip"}),
        (np.array([word.encode() for word in WORDS], h5py.string_dtype("utf-8", 4)), "<f2", {}),
        (np.array([word.encode() for word in WORDS], h5py.string_dtype("ascii")), "<i2", {"chunks": (2, 1)}),
    ],
)
def test_words_and_rows_of_any_kind(tmp_path, words, dtype, options):
    path = write(tmp_path, words, MATRIX.astype(dtype), **options)
    assert table_of(read_vectors(path, datasets=NAMES)) == TABLE
    assert table_of(read_vectors(VectorSource(str(path), datasets=NAMES), ["of", "unheard"])) == {"of": [5, 6]}
    assert [block.words for block in iter_vectors(path, ["é"], datasets=NAMES)] == [["é"]]
    assert table_of(read_vectors((WORDS, path), datasets=NAMES[1])) == TABLE


def test_integers_are_words_and_so_are_bytes_with_offsets(tmp_path):
    assert read_vectors(write(tmp_path, np.array([7, 8, 9])), datasets=NAMES).words == ["7", "8", "9"]
    words = [word for word in ODD_WORDS if len(word) < 100]
    utf8, offsets = pack_words(words)
    with h5py.File(tmp_path / "w.h5", "w") as file:
        file["words/utf8"], file["words/offsets"], file["rows"] = utf8, offsets, np.ones((len(words), 2))
    with pytest.warns(VectorFileWarning, match="not valid UTF-8"):
        assert read_vectors(tmp_path / "w.h5", datasets=("words", "rows")).words == words
    with h5py.File(tmp_path / "w.h5", "r+") as file:
        file["words/offsets"][1] = 10_000
    with pytest.raises(VectorFormatError, match=r"w\.h5, 'words': Offsets of words must not decrease"):
        read_vectors(tmp_path / "w.h5", datasets=("words", "rows"))


def test_an_open_dataset_is_a_matrix(tmp_path):
    with h5py.File(write(tmp_path, np.arange(3)), "r") as file:
        assert table_of(read_vectors((WORDS, file[NAMES[1]]))) == TABLE
        assert table_of(read_vectors((WORDS, file[NAMES[1]]), ["é"])) == {"é": [3, 4]}


def test_many_rows_are_read_in_blocks_and_the_file_is_closed(tmp_path):
    matrix = np.random.default_rng(0).random((10_000, 3)).astype(np.float32)
    words = [f"w{number}" for number in range(10_000)]
    path = write(tmp_path, np.array(words, "S"), matrix)
    blocks = list(iter_vectors(path, datasets=NAMES))
    assert len(blocks) > 2 and [word for block in blocks for word in block.words] == words
    assert np.array_equal(np.concatenate([block.vectors for block in blocks]), matrix)
    # The file is closed, so it can be opened for writing.
    with h5py.File(path, "r+") as file:
        del file[NAMES[0]]


def test_without_names_the_error_lists_the_datasets(tmp_path):
    path = write(tmp_path, np.array(WORDS, h5py.string_dtype()))
    message = r"v\.h5: found an HDF5 file that splitembed did not write; .*'mat/axis1' \(3,\) object, "
    message += r"'mat/block0_values' \(3, 2\) float32.*read_vectors\(path, datasets=\(\"words\", \"matrix\"\)\)"
    with pytest.raises(VectorFormatError, match=message):
        read_vectors(path)
    with pytest.raises(VectorFormatError, match=r"VectorSource\(\(words, path\), datasets=\"matrix\"\)"):
        read_vectors((WORDS, path))


def test_the_weights_of_a_keras_model_are_named_as_such(tmp_path):
    with h5py.File(tmp_path / "m.weights.h5", "w") as file:
        file["layers/embedding/vars/0"] = MATRIX
    with pytest.raises(VectorFormatError, match="found the weights of a Keras model; .*'layers/embedding/vars/0'"):
        read_vectors(tmp_path / "m.weights.h5")
    source = VectorSource((WORDS, tmp_path / "m.weights.h5"), datasets="layers/embedding/vars/0")
    assert table_of(read_vectors(source)) == TABLE


@pytest.mark.parametrize(
    ("datasets", "message"),
    [
        (("mat/axis2", NAMES[1]), "found no dataset 'mat/axis2'; expected one. It holds 'mat/axis1'"),
        ((NAMES[0], "mat"), "found no dataset 'mat'"),
        ((NAMES[1], NAMES[0]), r"found 'mat/block0_values' of shape \(3, 2\) .* Name the words first"),
        ((NAMES[0], NAMES[0]), r"found 3 words and rows of shape \(3,\)"),
        ("mat", "expected the names of the words and of the matrix"),
    ],
)
def test_names_that_do_not_fit(tmp_path, datasets, message):
    with pytest.raises(VectorFormatError, match=message):
        read_vectors(write(tmp_path, np.array([b"a", b"b", b"c"])), datasets=datasets)


def test_words_of_another_number_are_refused(tmp_path):
    with pytest.raises(VectorFormatError, match=r"v\.h5: found 2 words and rows of shape \(3, 2\)"):
        read_vectors(write(tmp_path, np.arange(2)), datasets=NAMES)


def test_a_file_that_is_cut_short(tmp_path):
    path = write(tmp_path, np.arange(3000), np.ones((3000, 50)))
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(VectorFormatError, match=r"v\.h5: found HDF5 data that cannot be read \(OSError: .*truncated"):
        read_vectors(path, datasets=NAMES)


def test_damaged_chunks_are_named(tmp_path):
    path = write(
        tmp_path, np.arange(3000), np.random.default_rng(0).random((3000, 50)), chunks=(3000, 50), fletcher32=True
    )
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(VectorFormatError, match=r"v\.h5: found HDF5 data that cannot be read"):
        read_vectors(path, datasets=NAMES)


def test_our_own_files_need_no_names(tmp_path):
    write_frozen(tmp_path / "frozen.h5", MATRIX, words=WORDS)
    with pytest.raises(VectorFormatError, match=r"datasets=\('words', 'vectors'\).* Leave `datasets` out"):
        read_vectors(tmp_path / "frozen.h5", datasets=("words", "vectors"))


def test_datasets_of_nothing_or_without_end(tmp_path):
    path = write(tmp_path, WORDS)
    with h5py.File(path, "a") as file:
        file["none"] = h5py.Empty("f4")
        # A few bytes on the disk.
        file.create_dataset("wide", (3, 10**12), "f4", chunks=(1, 1024))
    for names in [(NAMES[0], "none"), ("none", NAMES[1]), ("\udc80", NAMES[1]), (NAMES[0], "\udc80")]:
        with pytest.raises(VectorFormatError, match="found no dataset"):
            read_vectors(path, datasets=names)
    with pytest.raises(VectorFormatError, match="found no dataset 'none'"):
        read_vectors((WORDS, path), datasets="none")
    with pytest.raises(VectorFormatError, match="found a row of 1000000000000 numbers; expected at most 16777216"):
        read_vectors(path, datasets=(NAMES[0], "wide"))


@pytest.mark.parametrize(
    ("utf8", "offsets"),
    [
        (np.zeros(2, np.uint8), np.zeros((3, 2), np.uint64)),
        (np.array([97.0, 98.0]), np.array([0, 1, 2], np.uint64)),
        (np.array([97, 98], np.uint16), np.array([0, 1, 2], np.uint64)),
        (np.array([97, 98], np.uint8), np.array([0.0, 1.0, 2.0])),
        (np.uint8(97), np.uint64(0)),
    ],
)
def test_a_group_of_words_of_another_kind(tmp_path, utf8, offsets):
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["words/utf8"], file["words/offsets"], file["m"] = utf8, offsets, MATRIX
    with pytest.raises(VectorFormatError, match=r"as `utf8` and `offsets` of 'words'; expected uint8 \(num_bytes,\)"):
        read_vectors(tmp_path / "v.h5", datasets=("words", "m"))
