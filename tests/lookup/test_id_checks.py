"""Checks of ids without TensorFlow: dtypes that hold every id, and the first invalid id of an array by name."""

import numpy as np
import pytest

from splitembed.errors import SplitError, TokenIdError
from splitembed.lookup.id_checks import check_array, check_known_ids, refusal_of_dtype
from tests.helpers.fresh import run_fresh


def test_every_integer_dtype_holds_ids_and_floats_hold_some():
    assert not refusal_of_dtype("float64", 2**31) and not refusal_of_dtype("int8", 2**31)
    assert refusal_of_dtype("bool", 2) and refusal_of_dtype("string", 2)


@pytest.mark.parametrize(("dtype", "largest"), [("bfloat16", 2**8), ("float16", 2**11), ("float32", 2**24)])
def test_a_float_dtype_is_refused_from_the_first_id_that_it_rounds(dtype, largest):
    assert not refusal_of_dtype(dtype, largest)
    assert f"of dtype {dtype} cannot hold every id below {largest + 1}" in refusal_of_dtype(dtype, largest + 1)


@pytest.mark.parametrize(
    "ids", [[0, 4], [-1, 0], np.array([2**32 + 1]), np.array([2**64 - 1], np.uint64), np.array([4.0])]
)
def test_an_array_with_an_id_out_of_range_is_refused(ids):
    ids = np.asarray(ids)
    with pytest.raises(TokenIdError, match=f"Token id {int(ids[-1] if ids[0] == 0 else ids[0])} is out of range"):
        check_array(ids, ids.dtype.name, 4)
    check_array(ids[:0], ids.dtype.name, 4)


@pytest.mark.parametrize("value", [0.5, np.nan, np.inf])
def test_an_array_with_a_fraction_is_refused(value):
    with pytest.raises(SplitError, match=f"whole numbers from 0 to 3. Received: {value:g}, of dtype float32"):
        check_array(np.array([1, value], np.float32), "float32", 4)


CHECKS = """
import os, sys
sys.modules["tensorflow"] = None  # importing it would fail
os.environ["KERAS_BACKEND"] = sys.argv[1]
import numpy as np
import splitembed as se
from splitembed.errors import SplitError, TokenIdError
from splitembed.lookup.id_checks import check_known_ids
for ids, kind in ((np.array([4]), TokenIdError), (np.array([True]), SplitError)):
    try:
        check_known_ids(ids, 4)
    except kind as error:
        print(error)
try:
    se.optimizers.LazyAdagrad()
except SplitError as error:
    print(error)
"""


def test_other_backends_need_no_tensorflow():
    backend = "jax"
    pytest.importorskip(backend)
    lines = run_fresh(CHECKS, backend).splitlines()[-3:]
    assert lines[0].startswith("Token id 4 is out of range") and lines[1].startswith("`ids` must be integers")
    assert lines[2].startswith(f"LazyAdagrad needs Keras's TensorFlow backend. Found: {backend}")


def test_ids_of_a_traced_program_are_not_checked():
    import tensorflow as tf

    tf.function(lambda ids: check_known_ids(ids, 4)).get_concrete_function(tf.constant([7]))
    with pytest.raises(TokenIdError, match="Token id 7"):
        check_known_ids(tf.constant([7]), 4)
