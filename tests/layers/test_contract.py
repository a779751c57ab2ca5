"""The contract of a Keras layer: each check runs on every kind of SplitEmbedding that can make a difference to it."""

import json
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from splitembed import LazyAdam, SplitEmbedding
from splitembed.errors import SplitError
from tests.helpers.models import DIM, IDS, TARGETS, head, make_split

# name: the options of the layer, the dtype of the frozen rows
KINDS = {
    "default": ({}, "float32"),
    "masking": ({"mask_zero": True}, "float32"),
    "static": ({"lookup": "static"}, "float32"),
    "dynamic": ({"lookup": "dynamic"}, "float32"),
    "dense gradient": ({"gradient": "dense"}, "float32"),
    "bags": ({"combiner": "mean", "mask_zero": True}, "float32"),
    "static bags": ({"combiner": "sqrtn", "lookup": "static"}, "float32"),
    "regularized": ({"embeddings_regularizer": "l2"}, "float32"),
    "constrained": ({"embeddings_constraint": "non_neg"}, "float32"),
    "dropout": ({"trainable_dropout": 0.5, "seed": 0}, "float32"),
    "float16 rows": ({}, "float16"),
    "bfloat16 rows": ({}, "bfloat16"),
    "int8 rows": ({}, "int8"),
    "untrained": ({"trainable": False}, "float32"),
    "mixed_float16": ({"dtype": "mixed_float16"}, "float32"),
    "mixed_bfloat16": ({"dtype": "mixed_bfloat16"}, "float32"),
    "float64": ({"dtype": "float64"}, "float32"),
}
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def kinds(*names: str):
    """Run a test on these kinds of layer instead of all, where the others share their code."""
    return pytest.mark.parametrize("make", names, indirect=True)


@pytest.fixture(params=KINDS)
def make(request):
    """A function that makes a layer of one kind, always on the same split."""
    options, frozen_dtype = KINDS[request.param]
    split = make_split().with_frozen_dtype(frozen_dtype)
    return lambda **more: SplitEmbedding(split, **{**options, **more})


def expected_of(layer: SplitEmbedding, ids: np.ndarray) -> np.ndarray:
    """Return the expected rows or bags, computed by NumPy in float64."""
    rows = layer.to_split().lookup(ids).astype(np.float64)
    if layer.combiner is None:
        return rows
    counts = ids != 0 if layer.mask_zero else np.ones_like(ids)
    # the sum of an empty bag is zero
    number = np.maximum(counts.sum(-1)[..., None], 1)
    return (rows * counts[..., None]).sum(-2) / (number if layer.combiner == "mean" else np.sqrt(number))


def assert_close(found, layer: SplitEmbedding, ids: np.ndarray) -> None:
    """Assert equality up to the rounding of the compute dtype."""
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2}.get(layer.compute_dtype, 1e-6)
    found = ops.convert_to_numpy(ops.cast(found, "float64"))
    np.testing.assert_allclose(found, expected_of(layer, ids), rtol=tolerance, atol=tolerance)


def model_of(layer: SplitEmbedding, length: int | None = None) -> keras.Model:
    ids = keras.Input((length,), dtype="int32")
    rows = layer(ids)
    tail = head() if layer.combiner is None else head()[1:]
    for each in tail:
        rows = each(rows)
    return keras.Model(ids, rows)


def test_the_config_survives_json(make):
    layer = make(name="tokens")
    again = SplitEmbedding.from_config(json.loads(json.dumps(layer.get_config())))
    assert again.get_config() == layer.get_config() and again.name == "tokens"
    np.testing.assert_array_equal(again(IDS), layer(IDS))
    serialized = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    np.testing.assert_array_equal(keras.saving.deserialize_keras_object(serialized)(IDS), layer(IDS))


def test_weights_after_build(make):
    layer = make()
    assert not layer.built
    layer.build((None, None))
    trainable = [(2, DIM)] if layer.trainable else []
    assert [tuple(weight.shape) for weight in layer.trainable_weights] == trainable
    assert layer.count_params() == 2 * DIM and len(layer.weights) == 1
    assert all(weight.dtype == "float32" for weight in layer.weights)
    layer.set_weights(layer.get_weights())


def test_eager_calls_and_symbolic_shapes_agree(make):
    layer = make()
    for ids in (IDS, IDS[0], IDS[:, :, None], IDS[:1], IDS[:, :1], IDS[:0]):
        symbolic = layer(keras.KerasTensor(ids.shape, "int32"))
        eager = layer(ids)
        assert tuple(eager.shape) == symbolic.shape == layer.compute_output_shape(ids.shape)
        assert keras.backend.standardize_dtype(eager.dtype) == symbolic.dtype == layer.compute_dtype
        if ids.size:
            assert_close(eager, layer, ids)


@kinds("default", "static", "bags", "static bags", "int8 rows")
def test_a_model_takes_batches_of_any_size_and_length(make):
    layer = make()
    model = model_of(layer)
    assert model.output_shape == (None, 1)
    for ids in (IDS, IDS[:1], IDS[:, :2], np.tile(IDS, (3, 2))):
        found = keras.Model(model.input, layer.output)(ids)
        assert_close(found, layer, ids)


@kinds("static", "dynamic", "bags", "static bags")
def test_ids_of_any_integer_dtype(make):
    layer = make()
    for dtype in INTEGERS:
        assert_close(layer(tf.constant(IDS.astype(dtype))), layer, IDS)


@kinds("static", "dynamic", "bags", "static bags", "mixed_float16")
def test_whole_float_ids_are_taken_and_fractions_refused(make):
    layer = make()
    assert_close(layer(tf.constant(IDS.astype("float32"))), layer, IDS)
    with pytest.raises(SplitError, match="whole numbers"):
        layer(tf.constant([[0.5, 1]]))


@kinds("default", "masking", "static", "bags")
def test_masks(make):
    layer = make()
    assert layer.supports_masking == layer.mask_zero
    mask = layer.compute_mask(ops.convert_to_tensor(IDS))
    if layer.mask_zero and layer.combiner is None:
        np.testing.assert_array_equal(mask, IDS != 0)
        np.testing.assert_array_equal(keras.src.backend.get_keras_mask(layer(IDS)), IDS != 0)
    else:
        assert mask is None


@kinds("static", "dynamic", "bags", "static bags", "int8 rows", "mixed_float16")
def test_ragged_ids(make):
    layer = make()
    ragged = tf.ragged.constant([[1], [2, 3, 4], []], dtype=tf.int32)
    if layer.combiner is not None and layer.lookup == "static":
        with pytest.raises(SplitError, match="Ragged bags"):
            layer(ragged)
        return
    found = layer(ragged)
    for number, row in enumerate(ragged.to_list()[:2]):
        assert_close(found[number][None], layer, np.array([row]))


# Only the form of the lookup meets XLA, and only the combiner meets an eager step.
TRAININGS = [
    *((kind, LazyAdam, {"jit_compile": False}) for kind in KINDS),
    *((kind, LazyAdam, {"jit_compile": True}) for kind in ("default", "static", "bags", "static bags", "dropout")),
    *((kind, LazyAdam, {"run_eagerly": True}) for kind in ("default", "bags")),
    *((kind, keras.optimizers.Adam, {"jit_compile": False}) for kind in ("default", "bags")),
]


@pytest.mark.parametrize(("make", "make_optimizer", "options"), TRAININGS, indirect=["make"])
def test_training_changes_only_the_trainable_rows(make, make_optimizer, options):
    layer = make()
    model = model_of(layer)
    model.compile(make_optimizer(0.1), "mse", **options)
    before, frozen = layer.to_split(), layer.to_split().frozen.tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses = model.fit(IDS, TARGETS, epochs=2, batch_size=2, shuffle=False, verbose=0).history["loss"]
    after = layer.to_split()
    assert np.isfinite(losses).all()
    assert (after.trainable != before.trainable).any() == layer.trainable
    assert after.frozen.tobytes() == frozen
    assert model.predict(IDS, verbose=0).shape == (4, 1)


@kinds("default", "dynamic", "untrained")
def test_the_trainable_flag_can_be_changed_before_compile(make):
    layer = make()
    model = model_of(layer)
    for trains in (False, True):
        layer.trainable = trains
        model.compile(keras.optimizers.SGD(0.1), "mse")
        # Keras must not choose XLA for a layer that refuses it
        assert layer.supports_jit or not model.jit_compile
        before = layer.to_split().trainable
        model.fit(IDS, TARGETS, verbose=0)
        assert (layer.to_split().trainable != before).any() == trains


@kinds("default", "static", "bags", "int8 rows")
def test_clones_nested_models_and_shared_layers(make):
    layer = make()
    inner = model_of(layer)
    clone = keras.models.clone_model(inner)
    np.testing.assert_array_equal(
        next(each for each in clone.layers if isinstance(each, SplitEmbedding))(IDS), make()(IDS)
    )
    one, two = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    # one instance, two inputs
    both = keras.Model([one, two], keras.layers.Add()([inner(one), inner(two)]))
    np.testing.assert_allclose(both([IDS, IDS[::-1]]), inner(IDS) + inner(IDS[::-1]), rtol=1e-2, atol=1e-2)
    # two instances, one table
    other = make()
    keras.Model(one, [each(one) for each in (layer, other)])(IDS)
    assert np.shares_memory(layer.to_split().frozen, other.to_split().frozen)


@kinds("masking", "static bags", "dropout", "int8 rows", "untrained", "mixed_float16")
def test_models_and_weights_are_saved_and_loaded(make, tmp_path):
    model = model_of(make())
    model.compile(LazyAdam(0.1), "mse")
    model.fit(IDS, TARGETS, verbose=0)
    model.save(tmp_path / "model.keras")
    expected = model.predict(IDS, verbose=0)
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras").predict(IDS, verbose=0), expected)
    model.save_weights(tmp_path / "m.weights.h5")
    fresh = model_of(make())
    fresh.load_weights(tmp_path / "m.weights.h5")
    np.testing.assert_array_equal(fresh.predict(IDS, verbose=0), expected)


@kinds("default", "float16 rows", "int8 rows")
def test_the_summary_counts_frozen_and_trainable_rows(make):
    layer = make()
    frozen, trainable = (line.split() for line in layer.summary().split("\n")[1:3])
    assert frozen[:2] == ["frozen", "4"] and frozen[-1] == layer.to_split().frozen_dtype
    assert trainable[:2] == ["trainable", "2"]


@pytest.mark.parametrize(
    "after",
    [
        lambda: keras.layers.LSTM(2),
        lambda: keras.layers.GlobalAveragePooling1D(),
        lambda: keras.layers.Conv1D(2, 2),
        lambda: keras.layers.TimeDistributed(keras.layers.Dense(2)),
    ],
)
@pytest.mark.parametrize("make", ["masking", "mixed_float16"], indirect=True)
def test_later_layers_take_the_rows(make, after):
    layer = make()
    ids = keras.Input((None,), dtype="int32")
    found = keras.Model(ids, after()(layer(ids))).predict(np.tile(IDS, (1, 2)), verbose=0)
    assert np.isfinite(found).all() and found.shape[0] == len(IDS)


def test_attention_ignores_masked_positions():
    layer = SplitEmbedding(make_split(), mask_zero=True)
    ids = keras.Input((None,), dtype="int32")
    rows = layer(ids)
    model = keras.Model(ids, keras.layers.MultiHeadAttention(1, 2)(rows, rows))
    padded = np.concatenate([IDS[1:2, :3], np.zeros((1, 2), np.int32)], 1)
    short, long = model.predict(IDS[1:2, :3], verbose=0), model.predict(padded, verbose=0)
    np.testing.assert_allclose(long[:, :3], short, atol=1e-5)
