"""GradientGate in models on every backend: which parameters learn from which output, by hand."""

import json

import keras
import numpy as np
import pytest

from splitembed.errors import SplitError
from splitembed.gradients.gate import GradientGate, check_leading
from tests.helpers.differentiate import BACKEND, gradients, numpy

pytestmark = pytest.mark.every_backend

X = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
MASKS = {
    "samples": (np.array([[1.0], [0.0]], np.float32), (2, 1, 1)),
    "samples, flat": (np.array([True, False]), (2, 1, 1)),
    "positions": (np.array([[1, 1, 0, 0], [1, 0, 0, 1]], np.float32), (2, 4, 1)),
    "elements": (np.random.default_rng(1).integers(0, 2, (2, 4, 3)), (2, 4, 3)),
    "fractions": (np.array([[0.5], [0.25]], np.float32), (2, 1, 1)),
    "features": (np.array([[[1.0, 0.0, 0.5]]], np.float32), (1, 1, 3)),
}


# compilation does not depend on the mask
@pytest.mark.parametrize(("name", "compiled"), [*((name, False) for name in MASKS), ("positions", True)])
def test_mask_is_aligned_from_the_batch_axis(name, compiled):
    mask, aligned = MASKS[name]
    (found,) = gradients(lambda x: keras.ops.sum(GradientGate()([x, mask]) ** 2), X, compiled=compiled)
    np.testing.assert_allclose(found, 2 * X * mask.reshape(aligned), rtol=1e-6)


@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_output_has_the_bits_and_dtype_of_the_target(policy):
    gate = GradientGate(dtype=policy)
    gated = gate((X, np.array([[1], [0]])))
    assert keras.backend.standardize_dtype(gated.dtype) == "float32" and numpy(gated).tobytes() == X.tobytes()
    half = keras.KerasTensor((2, 3), "float16")
    assert gate([half, keras.KerasTensor((2, 1))]).dtype == "float16"


@pytest.mark.parametrize(
    ("target", "mask"),
    [((2, 4, 3), (2, 3)), ((2, 4, 3), (3, 1)), ((2, 4), (2, 4, 1)), ((2, 3), ()), ((None, 4, 3), (None, 3))],
)
def test_invalid_shapes_are_named_in_the_error(target, mask):
    with pytest.raises(SplitError, match="does not fit a target of shape") as error:
        check_leading(mask, target)
    assert str(mask) in str(error.value) and str(target) in str(error.value)
    with pytest.raises(SplitError, match="does not fit a target of shape"):
        GradientGate().compute_output_shape((target, mask))


def test_wrong_shapes_are_refused_in_a_call_and_in_a_model():
    with pytest.raises(SplitError, match=r"\(2, 3\) does not fit a target of shape \(2, 4, 3\)"):
        GradientGate()([X, np.ones((2, 3))])
    with pytest.raises(SplitError, match=r"\(None, 3\) does not fit a target of shape \(None, 4, 3\)"):
        GradientGate()([keras.Input((4, 3)), keras.Input((3,))])


@pytest.mark.parametrize("inputs", [X, [X], [X, X, X]])
def test_inputs_other_than_a_pair_are_refused(inputs):
    with pytest.raises(SplitError, match=r"must be a pair \[target, mask\]"):
        GradientGate()(inputs)


def test_integer_target_is_refused():
    with pytest.raises(SplitError, match="must be floats. Received: dtype int32"):
        GradientGate()([np.ones((2, 3), np.int32), np.ones((2, 1))])


# Two heads on one tensor

IDS = np.array([[1, 2, 2], [3, 1, 0]])
MASK = np.array([[0.0], [1.0]], np.float32)
TABLE = np.random.default_rng(2).normal(size=(4, 2)).astype(np.float32)


def two_heads(dtype=None):
    ids, mask = keras.Input((None,), dtype="int32"), keras.Input((1,))
    embedding = keras.layers.Embedding(4, 2, name="tokens", dtype=dtype)
    rows = embedding(ids)
    gated = GradientGate(dtype=dtype)([rows, mask])
    heads = [
        keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", name=name, dtype=dtype)(
            keras.layers.GlobalAveragePooling1D(dtype=dtype)(each)
        )
        for name, each in (("a", rows), ("b", gated))
    ]
    embedding.embeddings.assign(TABLE)
    return keras.Model([ids, mask], heads)


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.skipif(BACKEND == "torch", reason="no"))])
def test_one_gated_output_and_one_without_gate(jit):
    model = two_heads()
    model.compile(keras.optimizers.SGD(1.0), {"a": "mse", "b": "mse"}, jit_compile=jit)
    targets = np.array([[1.0], [-1.0]], np.float32)
    model.fit([IDS, MASK], [targets, 2 * targets], verbose=0)
    means = TABLE[IDS].mean(1)
    by_output = [2 * (means.sum(1, keepdims=True) - each) / len(IDS) for each in (targets, 2 * targets)]
    expected, head_b = np.array(TABLE), np.ones((2, 1)) - means.T @ by_output[1]
    # the mask selects the rows that output B reaches
    by_mean = by_output[0] + by_output[1] * MASK
    np.subtract.at(expected, IDS, np.broadcast_to(by_mean[:, None] / IDS.shape[1], (*IDS.shape, 2)))
    np.testing.assert_allclose(numpy(model.get_layer("tokens").embeddings), expected, rtol=1e-5, atol=1e-6)
    # the head behind the gate learns from every sample
    np.testing.assert_allclose(numpy(model.get_layer("b").kernel), head_b, rtol=1e-5)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision_trains(policy):
    model = two_heads(policy)
    model.compile(keras.optimizers.SGD(1.0), {"a": "mse", "b": "mse"}, loss_weights={"a": 0.0, "b": 1.0})
    model.fit([IDS, MASK], [np.ones((2, 1)), np.ones((2, 1))], verbose=0)
    moved = (numpy(model.get_layer("tokens").embeddings) != TABLE).any(1)
    # token 2 is only in the gated sample
    assert moved.tolist() == [True, True, False, True]


def test_a_model_with_gates_is_saved(tmp_path):
    model = two_heads()
    expected = model.predict([IDS, MASK], verbose=0)[1]
    model.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(again.predict([IDS, MASK], verbose=0)[1], expected)
    assert any(isinstance(layer, GradientGate) for layer in again.layers)


def test_config_round_trip():
    gate = GradientGate(name="gate")
    config = json.loads(json.dumps(gate.get_config()))
    assert GradientGate.from_config(config).get_config() == config
    assert keras.saving.get_registered_name(GradientGate) == "splitembed>GradientGate"


def test_keras_mask_of_the_target_is_passed_on():
    ids, mask = keras.Input((None,), dtype="int32"), keras.Input((1,))
    rows = keras.layers.Embedding(4, 2, mask_zero=True, embeddings_initializer="ones")(ids)
    pooled = keras.layers.GlobalAveragePooling1D()
    model = keras.Model([ids, mask], pooled(GradientGate()([rows, mask])))
    embedding = model.layers[1]
    embedding.embeddings.assign(TABLE)
    found = model.predict([np.array([[1, 3, 0, 0]]), MASK[:1]], verbose=0)
    np.testing.assert_allclose(found, TABLE[[1, 3]].mean(0)[None], rtol=1e-6)


def test_output_without_a_keras_mask():
    assert GradientGate().compute_mask([X, MASK]) is None


@pytest.mark.skipif(BACKEND != "tensorflow", reason="exports are TensorFlow's here")
def test_an_export_has_the_same_outputs(tmp_path):
    import tensorflow as tf

    model = two_heads()
    model.export(tmp_path / "m", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "m")
    outputs = loaded.serve([IDS.astype(np.int32), MASK])
    outputs = list(outputs.values()) if isinstance(outputs, dict) else outputs
    np.testing.assert_allclose(outputs[1], model.predict([IDS, MASK], verbose=0)[1], rtol=1e-6)
