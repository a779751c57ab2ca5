"""Lookups and logits of a table whose frozen rows are stored as columns, against NumPy."""

import numpy as np
import pytest

from splitembed.layers.reversible import SplitReversibleEmbedding
from splitembed.layers.transposed import TransposedEmbedding
from tests.helpers.differentiate import numpy
from tests.helpers.languages import TOLERANCE, make_split_in_order, rows, split_of_nine


def test_frozen_rows_are_stored_as_columns():
    split = split_of_nine()
    layer = TransposedEmbedding(split)
    layer.build()
    np.testing.assert_array_equal(numpy(layer._constants.read_stored()), split.frozen.T)


@pytest.mark.parametrize("frozen_dtype", ["float32", "float16", "bfloat16", "int8"])
def test_rows_and_logits_of_a_transposed_table_are_those_of_its_split(frozen_dtype):
    split, reverse = make_split_in_order(), make_split_in_order(seed=5).with_frozen_dtype(frozen_dtype)
    layer = SplitReversibleEmbedding(split, tie_weights=False, reverse_split=reverse)
    ids = np.arange(split.num_tokens).reshape(3, 3)
    np.testing.assert_array_equal(numpy(layer.reverse_embedding(ids)), reverse.lookup(ids))
    logits = numpy(layer(rows(2, split.dim), reverse=True))
    np.testing.assert_allclose(logits, rows(2, split.dim) @ reverse.combine().T, rtol=0, atol=TOLERANCE)
