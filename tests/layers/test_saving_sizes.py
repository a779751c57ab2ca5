"""Sizes of saved files: configs and weights grow with the trainable rows, not with the vocabulary."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from splitembed import LazyAdam, SplitEmbedding, SplitTable
from splitembed.tables import FrozenWriter, write_trainable
from splitembed.words import Words
from tests.helpers.fresh import run_fresh
from tests.helpers.models import embeddings_in

IDS = np.array([[0, 1, 2_000_000 - 1], [5, 1_999, 2_000]])


def words(num_words: int) -> Words:
    """Return the words `00000000`, `00000001` and so on, made without Python strings."""
    digits = np.arange(num_words)[:, None] // 10 ** np.arange(7, -1, -1) % 10
    ends = np.arange(num_words + 1, dtype=np.uint64) * 8
    return Words.from_arrays((digits + ord("0")).astype(np.uint8).ravel(), ends)


def split_on_disk(folder, num_tokens: int, dim: int, num_trainable: int) -> SplitTable:
    """Return a split whose first ids train, and whose frozen rows are a sparse file that takes no memory."""
    frozen = np.memmap(folder / "rows", np.float32, "w+", shape=(num_tokens - num_trainable, dim))
    remap = np.arange(num_tokens, dtype=np.int32) - num_trainable
    remap[:num_trainable] = ~np.arange(num_trainable, dtype=np.int32)
    trainable = np.ones((num_trainable, dim), np.float32)
    return SplitTable.from_arrays(frozen, remap, trainable, vocabulary=words(num_tokens))


def size_of(folder) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_config_is_under_2_kB_at_two_million_tokens(tmp_path):
    split = split_on_disk(tmp_path, 2_000_000, 2, 1_000)
    layer = SplitEmbedding(
        split,
        embeddings_regularizer=keras.regularizers.L1L2(0.1, 0.1),
        embeddings_constraint=keras.constraints.MaxNorm(2.0),
        combiner="mean",
        gradient="sparse",
        dtype="mixed_float16",
        name="a_name_that_is_rather_long_for_the_name_of_a_layer",
    )
    config = json.dumps(keras.saving.serialize_keras_object(layer))
    assert len(config.encode()) < 2_000, config


def test_weights_are_under_10_MB_for_2_000_rows_of_400_000(tmp_path):
    """The table has 480 MB; the files also contain the two optimizer slots of each trainable row."""
    (tmp_path / "weights").mkdir()
    ids = keras.Input((None,), dtype="int32")
    layer = SplitEmbedding(split_on_disk(tmp_path, 400_000, 300, 2_000))
    model = keras.Model(ids, keras.layers.Dense(1)(keras.layers.GlobalAveragePooling1D()(layer(ids))))
    model.compile(LazyAdam(0.01), "mse")
    model.fit(IDS % 400_000, np.ones((2, 1)), verbose=0)
    model.save_weights(tmp_path / "weights" / "model.weights.h5")
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    checkpoint.write(tmp_path / "checkpoint" / "all")
    rows = 2_000 * 300 * 4
    for folder in ("weights", "checkpoint"):
        assert 3 * rows < size_of(tmp_path / folder) < 10_000_000, folder


LOADED = """
import json, os, sys, time
import splitembed, keras
import numpy as np
from benchmarks.accuracy.memory import PeakMemory
# the first model also allocates memory for Keras
keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)]).predict(np.zeros((1, 2)), verbose=0)
with PeakMemory() as loading:
    model = keras.models.load_model(sys.argv[1])
    found = model.predict(np.array(json.loads(sys.argv[2])), verbose=0)
assert model.layers[1].to_split().table.mapped
print(json.dumps([found.tolist(), loading.growth]))
"""


@pytest.mark.slow
def test_a_table_of_2_4_GB(tmp_path):
    """The table of 2,000,000 x 300 float32 is larger than a graph or a protocol buffer can be."""
    num_frozen, dim = 2_000_000, 300
    with FrozenWriter(tmp_path / "frozen.h5", dim) as writer:
        for start in range(0, num_frozen, 100_000):
            rows = np.arange(start, start + 100_000, dtype=np.float32)[:, None] / 1024 + np.zeros(dim, np.float32)
            writer.append([""] * len(rows), rows)
    assert (tmp_path / "frozen.h5").stat().st_size > 2_400_000_000
    # id 0 trains
    remap = np.arange(num_frozen + 1) - 1
    write_trainable(tmp_path / "trainable.h5", np.full((1, dim), 7.0), remap, frozen_fingerprint=writer.fingerprint)
    split = SplitTable.open(tmp_path)
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, SplitEmbedding(split, name="tokens")(ids)[:, :, :2])
    ids_read = [[0, 1, num_frozen, num_frozen - 1, 1_000_000]]
    expected = split.lookup(ids_read)[:, :, :2].tolist()
    for by_reference in (True, False):
        embeddings_in(model)[0].save_by_reference = by_reference
        model.save(tmp_path / "model.keras")
        size = (tmp_path / "model.keras").stat().st_size
        assert size < 9_000_000 if by_reference else 2_400_000_000 < size < 2_450_000_000
        found, growth = json.loads(run_fresh(LOADED, tmp_path / "model.keras", json.dumps(ids_read)))
        assert found == expected
        assert growth is None or growth < 100_000_000
