"""The tables of every backend follow one interface: the same rows by each way of reading."""

import keras
import numpy as np
import pytest
from keras import ops

from splitembed import SplitEmbedding
from splitembed.lookup.backend import Tables
from tests.helpers.models import make_split


class Transposed(SplitEmbedding):
    is_transposed = True


@pytest.mark.parametrize("frozen_dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("kind", [SplitEmbedding, Transposed])
def test_tables_read_the_same_rows_by_rows_and_by_columns(kind, frozen_dtype):
    split = make_split().with_frozen_dtype(frozen_dtype)
    layer = kind(split)
    layer.build()
    tables: Tables = layer._constants
    assert (tables.num_tokens, tables.num_frozen, tables.dim) == (6, 4, 3)
    assert tables.transposed == layer.is_transposed
    np.testing.assert_array_equal(ops.convert_to_numpy(tables.read_remap()), split.remap)
    rows = np.array([3, 0, 3], np.int32)
    expected = split.lookup(np.array([np.flatnonzero(split.remap == row)[0] for row in rows]))
    np.testing.assert_array_equal(ops.convert_to_numpy(tables.read(ops.convert_to_tensor(rows))), expected)
    gathered = ops.convert_to_numpy(tables.gather(ops.convert_to_tensor(rows)))
    np.testing.assert_array_equal(gathered, expected.T if tables.transposed else expected)
    stored = tables.read_stored()
    assert tuple(stored.shape) == ((3, 4) if tables.transposed else (4, 3))
    assert keras.backend.standardize_dtype(stored.dtype) == frozen_dtype
