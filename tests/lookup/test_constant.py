"""Constants on the memory of an array: without copies, and for arrays of any alignment and layout."""

import gc
import sys

import numpy as np
import pytest
import tensorflow as tf

from splitembed.arrays import aligned_empty, as_read_only
from splitembed.lookup.constant import as_tensor, make_constant
from tests.helpers.devices import two_replicas
from tests.helpers.fresh import run_fresh
from tests.helpers.models import ONLY_READS, kinds_of_large_values
from tests.test_arrays import ODD, VALUES, at_offset


def memory_of(tensor: tf.Tensor) -> np.ndarray:
    """Return the memory of a tensor: `tensor.numpy()` would be a copy."""
    return np.asarray(memoryview(tensor))


def mapped(path, mode):
    VALUES.tofile(path)
    return np.memmap(path, np.float32, mode, shape=VALUES.shape)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: at_offset(VALUES, 0), id="memory"),
        pytest.param(lambda path: as_read_only(at_offset(VALUES, 0)), id="read-only memory"),
        pytest.param(lambda path: mapped(path, "r"), id="map opened with r"),
        pytest.param(lambda path: mapped(path, "c"), id="map opened with c"),
        pytest.param(lambda path: mapped(path, "r+"), id="map opened with r+"),
    ],
)
def test_shares_the_memory_and_keeps_it_alive(tmp_path, make):
    array = make(tmp_path / "rows")
    was_writable = array.flags.writeable
    handle = make_constant(array, "rows")
    assert np.shares_memory(memory_of(handle.read_value()), array)
    assert array.flags.writeable == was_writable
    del array
    gc.collect()
    (tmp_path / "rows").unlink(missing_ok=True)
    np.testing.assert_array_equal(tf.gather(handle.read_value(), [5, 0]), VALUES[[5, 0]])


def test_an_array_at_any_offset_is_read():
    """TensorFlow aborts the process on misaligned memory."""
    for offset in range(0, 64, 4):
        np.testing.assert_array_equal(make_constant(at_offset(VALUES, offset), "rows"), VALUES)


@pytest.mark.parametrize("kind", ODD)
def test_an_array_of_any_layout_is_read(kind):
    handle = make_constant(ODD[kind](), "rows")
    assert handle.dtype == tf.float32
    np.testing.assert_array_equal(handle, VALUES)


@pytest.mark.parametrize("shape", [(0,), (0, 4)])
def test_an_empty_array_keeps_its_shape(shape):
    assert make_constant(np.zeros(shape, np.float32), "rows").shape == shape


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "int64", "uint16"])
def test_every_stored_dtype(dtype):
    array = aligned_empty((6, 4), dtype)
    array[...] = VALUES
    handle = make_constant(array, "rows")
    assert handle.dtype == dtype and np.shares_memory(memory_of(handle.read_value()), array)
    np.testing.assert_array_equal(handle, VALUES.astype(dtype))


def test_handle_is_named_and_not_trainable():
    handle = make_constant(at_offset(VALUES, 0), "frozen")
    assert handle.name == "frozen:0" and not handle.trainable


def test_a_constant_made_inside_a_function_is_not_stored_in_the_graph():
    made = []

    @tf.function
    def read(row):
        if not made:
            made.append(make_constant(at_offset(VALUES, 0), "rows"))
        return tf.gather(made[0].read_value(), row)

    np.testing.assert_array_equal(read(tf.constant(2)), VALUES[2])
    graph = read.get_concrete_function(tf.constant(0)).graph
    assert kinds_of_large_values(graph, VALUES.size) <= ONLY_READS


def test_replicas_share_the_memory():
    array = at_offset(VALUES, 0)
    with two_replicas().scope():
        handle = make_constant(array, "rows")
    values = two_replicas().experimental_local_results(handle)
    assert len(values) == 2
    assert all(np.shares_memory(memory_of(value.read_value()), array) for value in values)


@pytest.mark.skipif(sys.platform != "linux", reason="RssAnon is read from Linux's /proc")
def test_a_mapped_table_takes_no_anonymous_memory(tmp_path):
    """Of 64 MB of frozen rows, opened and trained with, less than a quarter may be copied."""
    grown = run_fresh(
        """
import sys
import keras, numpy as np
from splitembed import SplitEmbedding, SplitTable, tables

def anonymous():
    line = next(line for line in open("/proc/self/status") if line.startswith("RssAnon"))
    megabytes = int(line.split()[1]) // 1024
    return megabytes

def train(split):
    model = keras.Sequential([keras.Input((8,), dtype="int32"), SplitEmbedding(split), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    ids = np.random.default_rng(0).integers(0, split.num_tokens, (32, 8))
    model.train_on_batch(ids, np.zeros((32, 8, 1)))
    return model

folder, num_rows, dim = sys.argv[1], 160_000, 100
# the first training also allocates memory for TensorFlow
train(SplitTable.from_matrix(np.ones((9, dim)), [1]))
tables.write_frozen(folder + "/frozen.h5", np.broadcast_to(np.float32(1), (num_rows, dim)))
remap = np.arange(num_rows + 1) - 1
split = SplitTable.from_arrays(tables.open_frozen(folder + "/frozen.h5").vectors, remap, np.ones((1, dim)))
before = anonymous()
model = train(split)
print(anonymous() - before)
""",
        tmp_path,
    )
    assert int(grown) < 16


@pytest.mark.parametrize(
    "update",
    [
        lambda variable: variable.assign_add(tf.ones([16, 4])),
        lambda variable: variable.assign(tf.ones([16, 4])),
        lambda variable: variable.scatter_sub(tf.IndexedSlices(tf.ones([1, 4]), [3])),
        lambda variable: variable[2].assign(tf.ones([4])),
        lambda variable: variable.scatter_mul(tf.IndexedSlices(2.0, [1])),
    ],
)
def test_an_update_of_a_variable_never_changes_the_array_that_it_starts_from(update):
    for gather_first in (False, True):
        array = aligned_empty((16, 4), np.float32)
        array[:] = 5
        variable = tf.Variable(as_tensor(array))
        if gather_first:
            tf.gather(variable, [1, 2])
        for _ in range(2):
            update(variable)
            tf.function(update)(variable)
        assert (array == 5).all() and (variable.numpy() != 5).any()
