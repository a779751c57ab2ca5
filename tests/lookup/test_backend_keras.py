"""The operations for JAX and PyTorch, which run on any backend; layers on them are in test_every_backend.py."""

import keras
import numpy as np
import pytest
from keras import ops

from splitembed.errors import MissingTableError
from splitembed.lookup.backend_keras import KerasBackend
from tests.helpers.models import make_split

BACKEND = KerasBackend()


class Layer(keras.layers.Layer):
    """The sizes of an embedding, on which the tables are made."""

    is_transposed = False

    def __init__(self, split) -> None:
        super().__init__()
        self.input_dim, self.output_dim = split.num_tokens, split.dim
        self.num_frozen, self.frozen_dtype = split.num_frozen, split.frozen_dtype


@pytest.mark.parametrize("frozen_dtype", ["float32", "bfloat16", "int8"])
def test_tables_are_weights_that_a_split_fills(frozen_dtype):
    split = make_split().with_frozen_dtype(frozen_dtype)
    layer = Layer(split)
    tables = BACKEND.hold_tables(layer, None, None)
    assert BACKEND.hold_tables(layer, split, tables) is tables
    names = {weight.name for weight in layer.non_trainable_weights}
    assert names == {"remap", "frozen"} | ({"scale"} if frozen_dtype == "int8" else set())
    rows = np.arange(split.num_frozen, dtype=np.int32)
    ids = np.array([np.flatnonzero(split.remap == row)[0] for row in rows])
    np.testing.assert_array_equal(ops.convert_to_numpy(tables.read(ops.convert_to_tensor(rows))), split.lookup(ids))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_stored_rows_are_the_bits_of_the_variable(dtype):
    values = np.array([[1.5, -2.0]], np.float32)
    rows = BACKEND.stored_rows(keras.Variable(values, dtype=dtype))
    expected = values.view(np.uint32).__rshift__(16).astype(np.uint16) if dtype == "bfloat16" else values.astype(dtype)
    assert rows.dtype == expected.dtype
    np.testing.assert_array_equal(rows, expected)


def test_without_tables_a_call_with_values_is_refused():
    with pytest.raises(MissingTableError, match="no tables here"):
        BACKEND.without_tables((2, 3), "float32", "no tables here")
