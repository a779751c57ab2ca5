"""The layer on TensorFlow, JAX or PyTorch, as `KERAS_BACKEND` says, compared with NumPy."""

import json

import h5py
import keras
import numpy as np
import pytest
from keras import ops

import splitembed as se
from splitembed import SplitEmbedding, SplitTable
from splitembed.errors import FingerprintError, MissingTableError, SplitError, TokenIdError
from splitembed.layers.spec import LIVE
from tests.helpers.fresh import run_fresh

pytestmark = pytest.mark.every_backend

BACKEND = keras.backend.backend()
NUM_TOKENS, DIM = 9, 4
TRAINABLE = [1, 4, 7]
IDS = np.array([[2, 1, 4, 0], [5, 5, 1, 0], [4, 3, 4, 8], [0, 0, 2, 1], [7, 7, 7, 6], [3, 2, 5, 6]], np.int32)
TARGETS = np.random.default_rng(5).normal(size=(len(IDS), 1)).astype(np.float32)


def split_of_nine(seed: int = 0) -> SplitTable:
    matrix = np.random.default_rng(seed).normal(size=(NUM_TOKENS, DIM)).astype(np.float32)
    matrix[0] = 0
    words = ["", *(f"w{number}" for number in range(1, NUM_TOKENS))]
    return SplitTable.from_matrix(matrix, TRAINABLE, vocabulary=words, padding=0)


def numpy(tensor) -> np.ndarray:
    return ops.convert_to_numpy(tensor)


def functional(layer: keras.layers.Layer) -> keras.Model:
    ids = keras.Input((None,), dtype="int32")
    pooled = keras.layers.GlobalAveragePooling1D()(layer(ids))
    return keras.Model(ids, keras.layers.Dense(1, kernel_initializer="ones")(pooled))


class Reference(keras.layers.Layer):
    """The same function with one-hot rows: their product with the trainable table, or a frozen row."""

    def __init__(self, split: SplitTable) -> None:
        super().__init__()
        self.split = split
        self.rows = self.add_weight(shape=split.trainable.shape, dtype="float32", initializer="zeros")
        self.rows.assign(split.trainable)

    def call(self, ids):
        positions = ops.take(ops.convert_to_tensor(np.maximum(~self.split.remap, 0)), ids, axis=0)
        trains = ops.take(ops.convert_to_tensor(self.split.remap < 0), ids, axis=0)[..., None]
        learned = ops.one_hot(positions, self.split.num_trainable, dtype="float32") @ self.rows.value
        fixed = ops.take(ops.convert_to_tensor(self.split.combine()), ids, axis=0)
        return ops.where(trains, learned, ops.stop_gradient(fixed))

    def compute_output_shape(self, shape):
        return (*shape, self.split.dim)


# Rows


@pytest.mark.parametrize("frozen_dtype", ["float32", "float16", "bfloat16", "int8"])
def test_rows_equal_numpy_to_the_bit(frozen_dtype):
    split = split_of_nine().with_frozen_dtype(frozen_dtype)
    layer = SplitEmbedding(split)
    np.testing.assert_array_equal(numpy(layer(IDS)), split.lookup(IDS))
    model = keras.Sequential([keras.Input((4,), dtype="int32"), layer])
    np.testing.assert_array_equal(model.predict(IDS, verbose=0), split.lookup(IDS))


@pytest.mark.parametrize("trainable_ids", [[], range(NUM_TOKENS)])
def test_all_frozen_and_all_trainable(trainable_ids):
    split = SplitTable.from_matrix(np.random.default_rng(1).normal(size=(NUM_TOKENS, DIM)), trainable_ids)
    layer = SplitEmbedding(split)
    np.testing.assert_array_equal(numpy(layer(IDS)), split.lookup(IDS))
    model = functional(layer)
    model.compile("adam", "mse")
    model.fit(IDS, TARGETS, verbose=0)
    moved = layer.to_split().trainable != split.trainable
    assert moved.any() if split.num_trainable else not moved.size


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float32"])
def test_ids_of_every_dtype(dtype):
    split = split_of_nine()
    np.testing.assert_array_equal(numpy(SplitEmbedding(split)(IDS.astype(dtype))), split.lookup(IDS))


@pytest.mark.parametrize(
    "ids",
    [[[0, -1]], [[NUM_TOKENS, 0]], np.array([[2**32 + 5, 0]]), np.array([[2**64 - 1]], np.uint64), [[2**31 - 1]]],
)
def test_an_id_out_of_range_is_named(ids):
    with pytest.raises(TokenIdError, match="there are 9 tokens, so ids run from 0 to 8"):
        SplitEmbedding(split_of_nine())(np.asarray(ids))


@pytest.mark.parametrize("value", [0.5, np.nan, np.inf])
def test_a_float_that_is_not_an_id_is_named(value):
    with pytest.raises((SplitError, TokenIdError), match="whole numbers from 0 to 8"):
        SplitEmbedding(split_of_nine())(np.array([[1.0, value]], np.float32))


def test_floats_that_round_ids_are_refused():
    split = SplitTable.from_matrix(np.ones((2**11 + 2, 2), np.float32), [3])
    with pytest.raises(SplitError, match="of dtype float16 cannot hold every id below 2050 exactly"):
        SplitEmbedding(split)(np.array([[1.0]], np.float16))


@pytest.mark.skipif(BACKEND == "torch", reason="PyTorch runs eagerly, where an id out of range raises")
def test_an_id_out_of_range_in_a_compiled_program_gives_nan():
    model = keras.Sequential([keras.Input((2,), dtype="int32"), SplitEmbedding(split_of_nine())])
    model.compile(jit_compile=True)
    rows = model.predict(np.array([[1, -1], [9, 2]]), verbose=0)
    np.testing.assert_array_equal(np.isnan(rows).all(-1), [[False, True], [True, False]])
    np.testing.assert_array_equal(rows[[0, 1], [0, 1]], split_of_nine().lookup([1, 2]))


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_bags_equal_numpy(combiner):
    split, weights = split_of_nine(), np.random.default_rng(2).uniform(0.1, 2, IDS.shape).astype(np.float32)
    counted = weights * (IDS != 0)
    divisor = {"sum": 1, "mean": counted.sum(1)[:, None], "sqrtn": np.sqrt((counted**2).sum(1))[:, None]}[combiner]
    expected = (split.lookup(IDS) * counted[..., None]).sum(1) / divisor
    found = SplitEmbedding(split, mask_zero=True, combiner=combiner)(IDS, weights)
    np.testing.assert_allclose(numpy(found), expected, rtol=1e-5, atol=1e-6)


# Keras


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float64"])
def test_policies_cast_the_output_and_keep_the_rows_float32(policy):
    if BACKEND == "jax" and policy == "float64":
        pytest.skip("JAX has no float64 by default")
    split = split_of_nine()
    layer = SplitEmbedding(split, dtype=policy)
    rows = layer(IDS)
    assert keras.backend.standardize_dtype(rows.dtype) == layer.compute_dtype
    expected = ops.cast(ops.convert_to_tensor(split.lookup(IDS)), layer.compute_dtype)
    np.testing.assert_array_equal(numpy(ops.cast(rows, "float32")), numpy(ops.cast(expected, "float32")))
    assert {weight.dtype for weight in layer.trainable_weights} == {"float32"}


def test_masks():
    layer = SplitEmbedding(split_of_nine(), mask_zero=True)
    np.testing.assert_array_equal(numpy(layer.compute_mask(IDS)), IDS != 0)
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, keras.layers.LSTM(3)(layer(ids)))
    padded = np.concatenate([IDS[:2, :3], np.zeros((2, 3), np.int32)], 1)
    np.testing.assert_allclose(model.predict(padded, verbose=0), model.predict(IDS[:2, :3], verbose=0), atol=1e-6)


def test_only_the_trainable_rows_are_trainable_weights():
    layer = SplitEmbedding(split_of_nine())
    layer.build()
    assert [weight.shape for weight in layer.trainable_weights] == [(len(TRAINABLE), DIM)]
    names = {weight.name for weight in layer.non_trainable_weights}
    assert names == (set() if BACKEND == "tensorflow" else {"frozen", "remap"})


@pytest.mark.skipif(BACKEND == "tensorflow", reason="TensorFlow has both forms")
def test_the_dynamic_form_needs_tensorflow():
    with pytest.raises(SplitError, match="The dynamic lookup needs TensorFlow"):
        SplitEmbedding(split_of_nine(), lookup="dynamic")


def test_configs_and_clones():
    layer = SplitEmbedding(split_of_nine(), mask_zero=True, name="tokens")
    config = json.loads(json.dumps(layer.get_config()))
    assert len(json.dumps(config)) < 2048
    again = SplitEmbedding.from_config(config)
    np.testing.assert_array_equal(numpy(again(IDS)), numpy(layer(IDS)))
    model = functional(layer)
    np.testing.assert_array_equal(keras.models.clone_model(model).predict(IDS, verbose=0).shape, (len(IDS), 1))


@pytest.mark.parametrize("call", [lambda layer: layer.quantize("int8"), lambda layer: layer.enable_lora(4)])
def test_quantization_and_lora_are_refused_by_name(call):
    layer = SplitEmbedding(split_of_nine(), name="tokens")
    layer.build()
    with pytest.raises(NotImplementedError, match="'tokens', a SplitEmbedding"):
        call(layer)


def test_quantizing_a_model_keeps_the_layer():
    layer = SplitEmbedding(split_of_nine())
    model = functional(layer)
    with pytest.warns(UserWarning, match="a SplitEmbedding, is not quantized in place"):
        model.quantize("int8")
    np.testing.assert_array_equal(numpy(layer(IDS)), split_of_nine().lookup(IDS))


def test_the_summary_counts_frozen_and_trainable_rows():
    text = SplitEmbedding(split_of_nine()).summary().split("\n")
    assert text[1].split() == ["frozen", "6", "24", "96", "float32"]
    assert text[2].split() == ["trainable", "3", "12", "48", "float32"]


# Training


OPTIMIZERS = {
    "SGD": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "Adam": lambda: keras.optimizers.Adam(0.1),
    "AdamW": lambda: keras.optimizers.AdamW(0.1, weight_decay=0.1),
    "RMSprop": lambda: keras.optimizers.RMSprop(0.1),
    "Adagrad": lambda: keras.optimizers.Adagrad(0.1),
    "clipped": lambda: keras.optimizers.Adam(0.1, clipnorm=0.01),
}


# eager steps differ from compiled ones by the backend, not by the optimizer
@pytest.mark.parametrize(("name", "run_eagerly"), [*((name, False) for name in OPTIMIZERS), ("Adam", True)])
def test_training_equals_a_dense_reference(name, run_eagerly):
    split = split_of_nine()
    before = split.frozen.tobytes()
    layer, reference = SplitEmbedding(split), Reference(split)
    for each in (layer, reference):
        model = functional(each)
        model.compile(OPTIMIZERS[name](), "mse", run_eagerly=run_eagerly)
        model.fit(IDS, TARGETS, batch_size=2, epochs=3, shuffle=False, verbose=0)
    trained = layer.to_split()
    np.testing.assert_allclose(trained.trainable, numpy(reference.rows.value), rtol=1e-4, atol=1e-5)
    assert (trained.trainable != split.trainable).all()
    frozen = [numpy(weight.value) for weight in layer.non_trainable_weights if weight.name == "frozen"]
    assert split.frozen.tobytes() == before and all(table.tobytes() == before for table in frozen)


def test_an_untrainable_layer_does_not_change():
    split = split_of_nine()
    layer = SplitEmbedding(split, trainable=False)
    model = functional(layer)
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.fit(IDS, TARGETS, verbose=0)
    np.testing.assert_array_equal(layer.to_split().trainable, split.trainable)


@pytest.mark.skipif(BACKEND == "tensorflow", reason="LazyAdam needs TensorFlow")
def test_lazy_optimizers_are_refused_by_name():
    for kind in (se.LazyAdam, se.optimizers.LazyAdagrad, se.optimizers.LazySGD):
        with pytest.raises(SplitError, match=f"{kind.__name__} needs Keras's TensorFlow backend. Found: {BACKEND}"):
            kind(0.1)


# Dropout


def dropped(rows, ids: np.ndarray) -> np.ndarray:
    """Return where a trainable row, none of which is zero, is zero in the output: bool `ids.shape`."""
    return (numpy(rows) == 0).all(-1) & np.isin(ids, TRAINABLE)


def test_dropout_replaces_occurrences_of_trainable_rows_by_zeros():
    ids = np.random.default_rng(0).integers(0, NUM_TOKENS, (50, 60)).astype(np.int32)
    trains = np.isin(ids, TRAINABLE)
    layers = [SplitEmbedding(split_of_nine(), trainable_dropout=0.3, seed=seed) for seed in (1, 1, 99)]
    draws = [[dropped(layer(ids, training=True), ids) for _ in range(2)] for layer in layers]
    assert all(abs(gone[trains].mean() - 0.3) < 4 * (0.21 / trains.sum()) ** 0.5 for each in draws for gone in each)
    # the first two layers share a seed
    assert len({gone.tobytes() for each in draws for gone in each}) == 4
    rows = numpy(layers[0](ids, training=True))
    kept = ~dropped(rows, ids)
    np.testing.assert_array_equal(rows[kept], split_of_nine().lookup(ids)[kept])
    np.testing.assert_array_equal(numpy(layers[0](ids)), split_of_nine().lookup(ids))


def test_a_dropped_row_adds_nothing_to_a_bag_and_counts_in_its_mean():
    ids = np.full((200, 4), TRAINABLE[0], np.int32)
    layer = SplitEmbedding(split_of_nine(), trainable_dropout=0.5, seed=1, combiner="mean")
    shares = numpy(layer(ids, training=True))[:, 0] / split_of_nine().lookup(TRAINABLE[:1])[0, 0]
    np.testing.assert_allclose(shares * 4, np.round(shares * 4), atol=1e-5)
    assert set(np.round(shares * 4).astype(int)) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_dropout_under_fit_is_repeatable_and_changes_only_kept_rows(run_eagerly):
    def trained(rate):
        layer = SplitEmbedding(split_of_nine(), trainable_dropout=rate, seed=3)
        model = functional(layer)
        model.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=run_eagerly)
        model.fit(IDS, TARGETS, batch_size=2, epochs=3, shuffle=False, verbose=0)
        expected = numpy(keras.layers.GlobalAveragePooling1D()(layer.to_split().lookup(IDS))) @ model.get_weights()[-2]
        np.testing.assert_allclose(model.predict(IDS, verbose=0), expected + model.get_weights()[-1], rtol=0, atol=1e-5)
        return layer.to_split().trainable

    np.testing.assert_array_equal(trained(0.5), trained(0.5))
    assert (trained(0.5) != trained(0.0)).any()
    # at this rate mostly none of the 9 occurrences of a row is kept
    assert (trained(0.99) == split_of_nine().trainable).all(1).any()


# Saving


@pytest.fixture
def model():
    model = functional(SplitEmbedding(split_of_nine(), mask_zero=True))
    model.compile(keras.optimizers.Adam(0.1), "mse")
    model.fit(IDS, TARGETS, verbose=0)
    return model


def test_a_saved_model_predicts_the_same_here_and_in_a_fresh_process(model, tmp_path):
    expected = model.predict(IDS, verbose=0)
    model.save(tmp_path / "m.keras")
    LIVE.clear()
    loaded = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(loaded.predict(IDS, verbose=0), expected)
    found = run_fresh(
        "import sys, splitembed, keras, numpy as np\n"
        "print(keras.models.load_model(sys.argv[1]).predict(np.load(sys.argv[2]), verbose=0).tobytes().hex())",
        tmp_path / "m.keras",
        _saved(tmp_path / "ids.npy", IDS),
    )
    assert found.strip().split("\n")[-1] == expected.tobytes().hex()


def _saved(path, array):
    np.save(path, array)
    return path


def test_a_weights_file_contains_only_the_trainable_rows_of_the_table(model, tmp_path):
    expected = model.predict(IDS, verbose=0)
    model.save_weights(tmp_path / "m.weights.h5")
    sizes = []
    with h5py.File(tmp_path / "m.weights.h5") as file:
        file.visititems(lambda name, item: sizes.append(item.size) if isinstance(item, h5py.Dataset) else None)
    assert NUM_TOKENS not in sizes and (NUM_TOKENS - len(TRAINABLE)) * DIM not in sizes
    other = functional(SplitEmbedding(split_of_nine(), mask_zero=True))
    other.load_weights(tmp_path / "m.weights.h5")
    np.testing.assert_array_equal(other.predict(IDS, verbose=0), expected)
    with pytest.raises((FingerprintError, ValueError), match="belongs to another split"):
        functional(SplitEmbedding(split_of_nine(seed=1), mask_zero=True)).load_weights(tmp_path / "m.weights.h5")


def test_a_layer_without_tables_raises():
    config = SplitEmbedding(split_of_nine()).get_config()
    config["split"]["frozen_fingerprint"] = "sha256:" + "0" * 64
    with pytest.raises(MissingTableError, match="has no tables"):
        SplitEmbedding.from_config(config)(IDS)


def test_models_move_between_backends_by_their_tables(model, tmp_path):
    layer = next(layer for layer in model.layers if isinstance(layer, SplitEmbedding))
    layer.to_split().save(tmp_path / "tables")
    again = SplitEmbedding(SplitTable.open(tmp_path / "tables"))
    np.testing.assert_array_equal(numpy(again(IDS)), numpy(layer(IDS)))
