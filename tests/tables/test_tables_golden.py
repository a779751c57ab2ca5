"""Files of every format version stay readable, and what is written today is what the golden files hold."""

import h5py
import numpy as np
import pytest
from golden import (
    BFLOAT16_BITS,
    FLOAT16_BITS,
    FLOAT32_BITS,
    FOLDER,
    INT8_ROWS,
    INT8_SCALES,
    NAMES,
    REMAP,
    TRAINABLE_BITS,
    VOCABULARY,
    WORDS,
    path_of,
    write_all,
)
from odd_words import same_bits

from splitembed.tables import FORMAT_VERSION, check_pair, open_frozen, open_trainable

VERSIONS = range(1, FORMAT_VERSION + 1)
every_version = pytest.mark.parametrize("version", VERSIONS)
FINGERPRINT = "sha256:57167530646e504454440e535d83c7fd0754493289a9adcb591af30521a148c9"


def bits(values, dtype):
    return np.array(values, f"u{np.dtype(dtype).itemsize}").view(dtype)


def test_no_golden_file_is_missing_or_forgotten():
    expected = {path_of(name, version).name for name in NAMES for version in VERSIONS}
    assert {path.name for path in FOLDER.glob("*.h5")} == expected


@every_version
def test_float32(version):
    table = open_frozen(path_of("frozen-float32", version), verify=True)
    assert same_bits(table.vectors, bits(FLOAT32_BITS, np.float32))
    assert (table.words, table.source, table.zero_row, table.mapped) == (WORDS, "golden: é", 3, True)
    assert table.fingerprint == FINGERPRINT


@every_version
@pytest.mark.parametrize(
    ("dtype", "stored", "widened"),
    [
        ("float16", bits(FLOAT16_BITS, np.float16), [[1.0, -0.0, 65504.0]]),
        ("bfloat16", np.array(BFLOAT16_BITS, np.uint16), [[1.5, -2.0]]),
        ("int8", np.array(INT8_ROWS, np.int8), [[63.5, -63.5, 0.0], [2.0, 4.0, 6.0]]),
    ],
)
def test_fewer_bits(version, dtype, stored, widened):
    table = open_frozen(path_of(f"frozen-{dtype}", version), verify=True)
    assert same_bits(table.vectors, stored)
    assert table.dtype == dtype
    assert same_bits(table.take(range(len(stored))), np.array(widened, np.float32))
    assert (table.words, table.zero_row, table.source) == (None, None, "")
    assert (None if table.scale is None else table.scale.tolist()) == (INT8_SCALES if dtype == "int8" else None)


@every_version
def test_trainable(version):
    table = open_trainable(path_of("trainable", version), verify=True)
    assert same_bits(table.vectors, bits(TRAINABLE_BITS, np.float32))
    assert (table.remap.tolist(), table.vocabulary, table.padding) == (REMAP, VOCABULARY, 0)
    assert (table.frozen_fingerprint, table.frozen_path) == (FINGERPRINT, "")
    check_pair(open_frozen(path_of("frozen-float32", version)), table)


@every_version
def test_trainable_without_strings_or_rows(version):
    table = open_trainable(path_of("trainable-ids", version), verify=True)
    assert (table.vectors.shape, table.remap.shape) == ((0, 2), (0,))
    assert (table.vocabulary, table.vocabulary_fingerprint, table.padding) == (None, "", None)
    assert table.frozen_path == "../shared/glove.h5"


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
def test_what_is_written_today_is_what_the_golden_file_holds(tmp_path, name):
    write_all(tmp_path)
    written = contents_of(path_of(name, FORMAT_VERSION, tmp_path))
    assert written == contents_of(path_of(name, FORMAT_VERSION))
    assert "vectors" in written
    assert "@fingerprint" in written
