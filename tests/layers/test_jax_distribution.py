"""Four virtual devices on Keras's JAX backend under `fit`: a sharded frozen table, and the result of one device."""

import importlib.util
import json

import numpy as np
import pytest

from tests.helpers.fresh import run_fresh

# float32: devices sum in another order
TOLERANCE = 1e-5
NUM_FROZEN, DIM, NUM_DEVICES = 20, 4, 4
# the distribution over the four devices, and the dtype of the frozen rows
RUNS = [
    ("one", "float32"),
    ("data", "float32"),
    ("1x4", "float32"),
    ("2x2", "float32"),
    ("1x4", "int8"),
    ("one", "int8"),
]
TRAIN = """
import json, os, sys
os.environ["KERAS_BACKEND"], os.environ["XLA_FLAGS"] = "jax", "--xla_force_host_platform_device_count=4"
import keras, numpy as np
from keras.distribution import DataParallel, DeviceMesh, LayoutMap, ModelParallel
from splitembed import SplitEmbedding, SplitTable

num_frozen, dim, runs = map(json.loads, sys.argv[1:])
devices = keras.distribution.list_devices("cpu")

def distribution(how):
    if how == "one":
        return None
    if how == "data":
        return DataParallel(devices=devices)
    # "1x4" does not split the batch; "2x2" gives each pair of devices half of it
    mesh = DeviceMesh(tuple(map(int, how.split("x"))), ("batch", "rows"), devices)
    layouts = LayoutMap(mesh)
    layouts["embedding/frozen"] = ("rows", None)
    return ModelParallel(layout_map=layouts, batch_dim_name="batch")

def train(how, frozen_dtype):
    keras.distribution.set_distribution(distribution(how))
    generator = np.random.default_rng(0)
    frozen = generator.normal(size=(num_frozen, dim)).astype(np.float32)
    remap = np.r_[~np.arange(4), np.arange(num_frozen)].astype(np.int32)
    split = SplitTable.from_arrays(frozen, remap, generator.normal(size=(4, dim)).astype(np.float32))
    split = split.with_frozen_dtype(frozen_dtype)
    before = split.frozen.tobytes()
    embedding = SplitEmbedding(split, name="embedding")
    ids = keras.Input((6,), dtype="int32")
    pooled = keras.layers.GlobalAveragePooling1D()(embedding(ids))
    model = keras.Model(ids, keras.layers.Dense(1, kernel_initializer="ones")(pooled))
    model.compile(keras.optimizers.Adam(0.05), loss="mse")
    data = generator.integers(0, len(remap), (32, 6)), generator.normal(size=(32, 1))
    model.fit(*data, batch_size=8, epochs=3, verbose=0, shuffle=False)

    (table,) = (weight.value for weight in embedding.non_trainable_weights if weight.name == "frozen")
    variables = *model.trainable_variables, *model.optimizer.variables
    return {
        "devices": len(devices),
        "shards": sorted([shard.device.id, *shard.data.shape] for shard in table.addressable_shards),
        "frozen_as_before": embedding.to_split().frozen.tobytes() == before and np.asarray(table).tobytes() == before,
        "moved": float(np.abs(embedding.to_split().trainable - split.trainable).max(axis=1).min()),
        "trained": [np.asarray(each.value).tolist() for each in variables],
    }

print(json.dumps([train(*run) for run in runs]))
"""

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")


@pytest.fixture(scope="module")
def trained() -> dict[tuple[str, str], dict]:
    """The result of three epochs for each run, on one device or on four."""
    found = run_fresh(TRAIN, *map(json.dumps, (NUM_FROZEN, DIM, RUNS))).splitlines()[-1]
    return dict(zip(RUNS, json.loads(found), strict=True))


@pytest.mark.parametrize(
    ("how", "rows_of_each"),
    [("data", NUM_FROZEN), ("1x4", NUM_FROZEN // 4), ("2x2", NUM_FROZEN // 2)],
    ids=["DataParallel", "ModelParallel", "both"],
)
def test_fit_on_four_devices_equals_one(how, rows_of_each, trained):
    found, expected = trained[how, "float32"], trained["one", "float32"]
    assert found["devices"] == NUM_DEVICES
    assert found["shards"] == [[device, rows_of_each, DIM] for device in range(NUM_DEVICES)]
    assert found["frozen_as_before"]
    # every trainable row trained
    assert found["moved"] > 100 * TOLERANCE
    for ours, theirs in zip(found["trained"], expected["trained"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE)


def test_sharded_int8_rows_equal_one_device(trained):
    found, expected = trained["1x4", "int8"], trained["one", "int8"]
    assert found["shards"] == [[device, NUM_FROZEN // 4, DIM] for device in range(NUM_DEVICES)]
    assert found["frozen_as_before"]
    for ours, theirs in zip(found["trained"], expected["trained"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE)
