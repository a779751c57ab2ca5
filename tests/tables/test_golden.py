"""Golden files: every format version stays readable, and the present version is written byte for byte."""

import h5py
import numpy as np
import pytest

from splitembed.tables import FORMAT_VERSION, check_pair, open_frozen, open_trainable
from tests.golden import (
    BFLOAT16_BITS,
    FLOAT16_BITS,
    FLOAT32_BITS,
    FOLDER,
    INT8_ROWS,
    INT8_SCALES,
    NAMES,
    OTHER_FINGERPRINT,
    RAMPS,
    REMAP,
    REVERSE_BITS,
    REVERSE_REMAP,
    ROW_OF,
    SHARED_WORDS,
    TRAINABLE_BITS,
    VOCABULARY,
    WORDS,
    path_of,
    write_all,
)
from tests.helpers.bits import same_bits
from tests.helpers.table_heads import head_of

FINGERPRINT = "sha256:57167530646e504454440e535d83c7fd0754493289a9adcb591af30521a148c9"


def bits(values, dtype):
    return np.array(values, f"u{np.dtype(dtype).itemsize}").view(dtype)


def test_no_golden_file_is_missing_or_forgotten():
    assert {path.name for path in FOLDER.glob("*.h5")} == {path_of(name).name for name in NAMES}
    assert {head_of(path).attributes["format_version"] for path in FOLDER.glob("*.h5")} == {FORMAT_VERSION}


def test_float32():
    table = open_frozen(path_of("frozen-float32"), verify=True)
    same_bits(table.vectors, bits(FLOAT32_BITS, np.float32))
    assert (table.words, table.source, table.zero_row, table.mapped) == (WORDS, "golden: é", 3, True)
    assert table.fingerprint == FINGERPRINT


@pytest.mark.parametrize(
    ("dtype", "stored", "widened"),
    [
        ("float16", bits(FLOAT16_BITS, np.float16), [[1.0, -0.0, 65504.0]]),
        ("bfloat16", np.array(BFLOAT16_BITS, np.uint16), [[1.5, -2.0]]),
        ("int8", np.array(INT8_ROWS, np.int8), [[63.5, -63.5, 0.0], [2.0, 4.0, 6.0]]),
    ],
)
def test_low_precision(dtype, stored, widened):
    table = open_frozen(path_of(f"frozen-{dtype}"), verify=True)
    same_bits(table.vectors, stored)
    assert table.dtype == dtype
    same_bits(table.take(range(len(stored))), np.array(widened, np.float32))
    assert (table.words, table.zero_row, table.source) == (None, None, "")
    assert (None if table.scale is None else table.scale.tolist()) == (INT8_SCALES if dtype == "int8" else None)


def test_words_that_share_rows():
    table = open_frozen(path_of("frozen-shared-rows"), verify=True)
    assert (table.words, table.row_of.tolist(), table.zero_row) == (SHARED_WORDS, ROW_OF, 2)
    assert table.vectors.tolist() == [[1, 2], [3, 4], [0, 0]]


def test_trainable():
    table = open_trainable(path_of("trainable"), verify=True)
    same_bits(table.vectors, bits(TRAINABLE_BITS, np.float32))
    assert (table.remap.tolist(), table.vocabulary, table.padding) == (REMAP, VOCABULARY, 0)
    assert (table.frozen_fingerprint, table.frozen_path) == (FINGERPRINT, "")
    check_pair(open_frozen(path_of("frozen-float32")), table)


def test_trainable_without_strings_or_rows():
    table = open_trainable(path_of("trainable-ids"), verify=True)
    assert (table.vectors.shape, table.remap.shape) == ((0, 2), (0,))
    assert (table.vocabulary, table.vocabulary_fingerprint, table.padding) == (None, "", None)
    assert table.frozen_path == "../shared/glove.h5"


def test_a_remap_of_ramps():
    table = open_trainable(path_of("trainable-ramps"), verify=True)
    assert (table.remap.tolist(), table.owned_frozen) == (RAMPS, (FINGERPRINT,))
    with h5py.File(path_of("trainable-ramps")) as file:
        assert file["remap/starts"][:].tolist() == [0, 7, 8] and file["remap/rows"][:].tolist() == [0, ~0, 8]


def test_trainable_of_an_untied_embedding():
    table = open_trainable(path_of("trainable-untied"), verify=True)
    same_bits(table.vectors, bits(TRAINABLE_BITS, np.float32))
    assert (table.remap.tolist(), table.vocabulary, table.padding) == (REMAP, VOCABULARY, 0)
    reverse = table.reverse
    same_bits(reverse.vectors, bits(REVERSE_BITS, np.float32))
    assert (reverse.remap.tolist(), reverse.padding) == (REVERSE_REMAP, 4)
    assert (table.frozen_fingerprint, reverse.frozen_fingerprint) == (FINGERPRINT, OTHER_FINGERPRINT)


def contents_of(path):
    """Every attribute and dataset of a file, with its stored dtype and bytes."""
    found = {}
    with h5py.File(path) as file:
        found |= {f"@{name}": (file.attrs.get_id(name).dtype, np.array(value)) for name, value in file.attrs.items()}
        file.visititems(
            lambda name, item: found.update({name: (item.dtype, item[:])} if hasattr(item, "dtype") else {})
        )
    return {name: (dtype.str, value.shape, value.tobytes()) for name, (dtype, value) in found.items()}


@pytest.mark.parametrize("name", NAMES)
def test_files_are_written_as_the_golden_files(tmp_path, name):
    write_all(tmp_path)
    written = contents_of(path_of(name, tmp_path))
    assert written == contents_of(path_of(name))
    assert "vectors" in written
    assert "@fingerprint" in written
