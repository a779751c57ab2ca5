"""Four virtual devices on Keras's JAX backend, under plain `fit`: the frozen table in quarters, and the same result."""

import importlib.util
import json

import numpy as np
import pytest
from fresh import run_fresh

TOLERANCE = 1e-5  # float32: devices sum in another order
NUM_FROZEN, DIM, NUM_DEVICES = 20, 4, 4
TRAIN = """
import json, os, sys
os.environ["KERAS_BACKEND"], os.environ["XLA_FLAGS"] = "jax", "--xla_force_host_platform_device_count=4"
import keras, numpy as np
from keras.distribution import DataParallel, DeviceMesh, LayoutMap, ModelParallel
from splitembed import SplitEmbedding, SplitTable

how, num_frozen, dim, frozen_dtype = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
devices = keras.distribution.list_devices("cpu")
if how == "data":
    keras.distribution.set_distribution(DataParallel(devices=devices))
elif how != "one":  # "1x4": no axis for the batch; "2x2": half of it on each pair of devices
    mesh = DeviceMesh(tuple(map(int, how.split("x"))), ("batch", "rows"), devices)
    layouts = LayoutMap(mesh)
    layouts["embedding/frozen"] = ("rows", None)
    keras.distribution.set_distribution(ModelParallel(layout_map=layouts, batch_dim_name="batch"))

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
model.fit(generator.integers(0, len(remap), (32, 6)), generator.normal(size=(32, 1)), 8, 3, verbose=0, shuffle=False)

(table,) = (weight.value for weight in embedding.non_trainable_weights if weight.name == "frozen")
print(json.dumps({
    "devices": len(devices),
    "shards": sorted([shard.device.id, *shard.data.shape] for shard in table.addressable_shards),
    "frozen_as_before": embedding.to_split().frozen.tobytes() == before and np.asarray(table).tobytes() == before,
    "moved": float(np.abs(embedding.to_split().trainable - split.trainable).max(axis=1).min()),
    "trained": [np.asarray(each.value).tolist() for each in (*model.trainable_variables, *model.optimizer.variables)],
}))
"""

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")


def train(how: str, frozen_dtype: str = "float32") -> dict:
    """What three epochs ended with: on one device, or distributed over four."""
    return json.loads(run_fresh(TRAIN, how, str(NUM_FROZEN), str(DIM), frozen_dtype).splitlines()[-1])


@pytest.fixture(scope="module")
def on_one_device() -> dict:
    return train("one")


@pytest.mark.parametrize(
    ("how", "rows_of_each"),
    [("data", NUM_FROZEN), ("1x4", NUM_FROZEN // 4), ("2x2", NUM_FROZEN // 2)],
    ids=["DataParallel", "ModelParallel", "both"],
)
def test_fit_on_four_devices_equals_one(how, rows_of_each, on_one_device):
    found = train(how)
    assert found["devices"] == NUM_DEVICES
    assert found["shards"] == [[device, rows_of_each, DIM] for device in range(NUM_DEVICES)]
    assert found["frozen_as_before"]
    assert found["moved"] > 100 * TOLERANCE  # every trainable row did train
    for ours, expected in zip(found["trained"], on_one_device["trained"], strict=True):
        np.testing.assert_allclose(ours, expected, rtol=0, atol=TOLERANCE)


def test_int8_rows_in_quarters_equal_one_device():
    found, expected = train("1x4", "int8"), train("one", "int8")
    assert found["shards"] == [[device, NUM_FROZEN // 4, DIM] for device in range(NUM_DEVICES)]
    assert found["frozen_as_before"]
    for ours, theirs in zip(found["trained"], expected["trained"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE)
