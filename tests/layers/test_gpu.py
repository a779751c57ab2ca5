"""The layer on a CUDA device: rows, training and errors as on the CPU, and tables in device memory."""

import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from splitembed import LazyAdam, SplitEmbedding, SplitTable
from splitembed.lookup.constant import Constants
from tests.helpers.bits import same_bits
from tests.helpers.models import IDS, TARGETS, functional, make_split

GPUS = tf.config.list_physical_devices("GPU")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not GPUS, reason="there is no CUDA device")]


def test_the_tables_are_on_the_device():
    constants = Constants(make_split())
    for handle in (constants.remap, constants.frozen):
        assert "GPU" in handle.read_value().device


@pytest.mark.parametrize("frozen_dtype", ["float32", "float16", "bfloat16", "int8"])
@pytest.mark.parametrize("jit", [False, True])
def test_rows_equal_numpy_to_the_bit(frozen_dtype, jit):
    split = make_split().with_frozen_dtype(frozen_dtype)
    same_bits(tf.function(SplitEmbedding(split), jit_compile=jit)(IDS), split.lookup(IDS))


@pytest.mark.parametrize("make_optimizer", [LazyAdam, keras.optimizers.Adam])
@pytest.mark.parametrize("jit", [False, True])
def test_training_equals_the_cpu_s(make_optimizer, jit):
    rows = []
    for device in ("CPU:0", "GPU:0"):
        with tf.device(device):
            layer = SplitEmbedding(make_split())
            model = functional(layer)
            model.compile(make_optimizer(0.1), "mse", jit_compile=jit)
            model.fit(IDS, TARGETS, epochs=3, batch_size=2, shuffle=False, verbose=0)
            rows.append(layer.to_split().trainable)
    np.testing.assert_allclose(rows[1], rows[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("wrong", [-1, 6, 2**32 + 5])
def test_an_id_out_of_range_never_gives_the_row_of_another_token(wrong):
    layer, ids = SplitEmbedding(make_split()), tf.constant([[wrong, 1]], tf.int64)
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of range: there are 6 tokens"):
        tf.function(layer)(ids)
    rows = tf.function(layer, jit_compile=True)(ids).numpy()
    assert np.isnan(rows[0, 0]).all()
    same_bits(rows[0, 1], make_split().lookup([1])[0])


def test_rows_are_computed_on_the_device(capsys):
    """Print the mean time of a forward pass on a table of 400,000 x 100, for `make test-gpu`."""
    rng = np.random.default_rng(0)
    split = SplitTable.from_matrix(rng.standard_normal((400_000, 100), dtype=np.float32), range(0, 400_000, 20))
    function = tf.function(SplitEmbedding(split))
    ids = tf.constant(rng.integers(0, 400_000, (64, 200)), tf.int32)
    function(ids)
    began = time.perf_counter()
    for _ in range(20):
        rows = function(ids)
    rows.numpy()
    with capsys.disabled():
        print(f"\nforward on {GPUS[0].name}: {(time.perf_counter() - began) / 20 * 1e3:.2f} ms")
    assert "GPU" in rows.device
