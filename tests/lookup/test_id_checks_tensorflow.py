"""Checks of ids by TensorFlow: the same errors eagerly, in graphs and from NumPy, before a cast narrows an id."""

import numpy as np
import pytest
import tensorflow as tf

from splitembed.errors import SplitEmbedError, SplitError, TokenIdError
from tests.helpers.bits import same_bits
from tests.helpers.strategies import ID_DTYPES
from tests.lookup.test_dynamic import FOUR_TOKENS, Tables, of_size

OUT_OF_RANGE = [
    (4, "int32", "4"),
    (-1, "int8", "-1"),
    (-1, "int32", "-1"),
    (-1, "int64", "-1"),
    (2**32 + 1, "int64", "4294967297"),
    (-(2**63), "int64", "-9223372036854775808"),
    (255, "uint8", "255"),
    (2**16 - 1, "uint16", "65535"),
    (2**32 - 1, "uint32", "4294967295"),
    (2**63 + 1, "uint64", "9223372036854775809"),
    (2**64 - 1, "uint64", "18446744073709551615"),
    (-2.0, "float32", "-2"),
    (4.0, "float16", "4"),
    (2.0**40, "float64", "1099511627776"),
]


@pytest.mark.parametrize(("token_id", "dtype", "shown"), OUT_OF_RANGE)
def test_ids_out_of_range_are_named(token_id, dtype, shown):
    """The same text eagerly, in a graph and from NumPy."""
    ids = np.array([[0, token_id]], dtype)
    text = f"Token id {shown} is out of range: there are 4 tokens, so ids run from 0 to 3"
    tables = Tables(FOUR_TOKENS)
    with pytest.raises(TokenIdError, match=text):
        tables(ids)
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        tf.function(tables)(ids)
    if ids.dtype.kind != "f":
        with pytest.raises(TokenIdError, match=text):
            FOUR_TOKENS.lookup(ids)


@pytest.mark.parametrize("dtype", [*ID_DTYPES, "float16", "bfloat16", "float32", "float64"])
def test_every_dtype_that_holds_the_ids(dtype):
    ids = tf.cast([[3, 0], [1, 2]], dtype)
    expected = FOUR_TOKENS.lookup([[3, 0], [1, 2]])
    same_bits(Tables(FOUR_TOKENS)(ids), expected)
    same_bits(tf.function(Tables(FOUR_TOKENS))(ids), expected)


@pytest.mark.parametrize("ids", [[True], ["the"], [1 + 0j]])
def test_other_dtypes_are_refused(ids):
    with pytest.raises(
        SplitError, match="`ids` must be integers. Received: a tensor of dtype (bool|string|complex128)"
    ):
        Tables(FOUR_TOKENS)(ids)


@pytest.mark.parametrize(
    ("token_id", "dtype"),
    [(value, "float32") for value in (0.5, -0.25, float("nan"), float("inf"), float("-inf"))]
    + [(0.5, dtype) for dtype in ("float16", "bfloat16", "float64")],
)
def test_floats_must_be_whole(token_id, dtype):
    ids = tf.constant([1.0, token_id], dtype)
    text = f"must be whole numbers from 0 to 3. Received: {token_id:g}, of dtype {dtype}|Token id -9223372036854775808"
    with pytest.raises(SplitEmbedError, match=text):
        Tables(FOUR_TOKENS)(ids)
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        tf.function(Tables(FOUR_TOKENS))(ids)


@pytest.mark.parametrize(("dtype", "largest"), [("bfloat16", 2**8), ("float16", 2**11), ("float32", 2**24)])
def test_floats_must_hold_every_id_exactly(dtype, largest):
    exact, beyond = of_size(largest), of_size(largest + 1)
    same_bits(Tables(exact)(tf.constant([largest - 1], dtype)), exact.lookup([largest - 1]))
    with pytest.raises(
        SplitError, match=rf'of dtype {dtype} cannot hold every id below {largest + 1} .* dtype="int32"'
    ):
        Tables(beyond)(tf.constant([0], dtype))
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"of dtype {dtype} cannot hold every id"):
        tf.function(Tables(beyond))(tf.constant([0], dtype))
    same_bits(Tables(beyond)(tf.constant([largest])), beyond.lookup([largest]))
