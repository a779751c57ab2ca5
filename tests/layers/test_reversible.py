"""SplitReversibleEmbedding on the backend that Keras runs on, against NumPy and against a dense layer in training."""

import json

import h5py
import keras
import numpy as np
import pytest
from keras import ops

import splitembed.layers.logits
from splitembed.errors import MissingTableError, SplitError, TokenIdError
from splitembed.layers.logits import Dtypes, logits_of
from splitembed.layers.reversible import SplitReversibleEmbedding
from splitembed.layers.spec import LIVE
from splitembed.split.table import SplitTable
from tests.helpers.differentiate import BACKEND, gradients, numpy
from tests.helpers.languages import (
    DIM,
    LAYER,
    NUM_TOKENS,
    TOLERANCE,
    TRAINABLE,
    Twin,
    assert_steps_are_equal,
    batches,
    language_model,
    loss,
    rows,
    split_of_nine,
)
from tests.helpers.slow import others_slow

pytestmark = pytest.mark.every_backend

SPLITS = {
    "mixed": split_of_nine,
    "new tokens last": lambda: split_of_nine(trainable_ids=[7, 8]),
    "all frozen": lambda: split_of_nine(trainable_ids=[]),
    "all trainable": lambda: SplitTable.from_matrix(rows(NUM_TOKENS, DIM), range(NUM_TOKENS)),
    "shared rows": lambda: SplitTable.from_arrays(rows(2, DIM), [1, ~0, 1, ~0, 0, ~1], rows(2, DIM, seed=1)),
    "rows of no token": lambda: SplitTable.from_arrays(rows(7, DIM), [6, ~2, 4, 1, 2, ~1], rows(4, DIM, seed=1)),
    "a large table": lambda: SplitTable.from_arrays(rows(50, DIM), [33, ~0, 12, ~0, 33, ~1], rows(3, DIM, seed=1)),
}
STATES = rows(2, 3, DIM, seed=2)


@pytest.fixture(params=["one block", "many blocks"])
def blocks(request, monkeypatch):
    """Blocks of all tokens, or of two tokens each."""
    if request.param == "many blocks":
        monkeypatch.setattr(splitembed.layers.logits, "_BLOCK_BYTES", 2 * 4 * DIM)
        monkeypatch.setattr(splitembed.layers.logits, "_BLOCK_MULTIPLE", 1)


# What it computes


# each kind of split, and each dtype on one of them
KINDS = [*((kind, "float32") for kind in SPLITS), *(("mixed", dtype) for dtype in ("float16", "bfloat16", "int8"))]


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_logits_are_numpy_s_in_id_order(kind, dtype, blocks):
    split = SPLITS[kind]().with_frozen_dtype(dtype)
    logits = numpy(SplitReversibleEmbedding(split)(STATES, reverse=True))
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits, STATES @ split.combine().T, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("kind", SPLITS)
def test_ids_are_looked_up_as_in_a_split_embedding(kind):
    split = SPLITS[kind]()
    layer = SplitReversibleEmbedding(split)
    ids = np.arange(split.num_tokens)
    np.testing.assert_array_equal(numpy(layer(ids)), split.lookup(ids))
    with pytest.raises(TokenIdError):
        layer(np.array([split.num_tokens]))


def test_states_of_any_rank_and_empty_states():
    split = split_of_nine()
    layer = SplitReversibleEmbedding(split)
    for shape in ((DIM,), (5, DIM), (2, 1, 3, DIM), (0, DIM), (2, 0, DIM)):
        states = rows(*shape)
        found = numpy(layer(states, reverse=True))
        assert found.shape == (*shape[:-1], NUM_TOKENS)
        np.testing.assert_allclose(found, states @ split.combine().T, rtol=0, atol=TOLERANCE)


def test_soft_cap_bounds_the_logits():
    split = split_of_nine()
    found = numpy(SplitReversibleEmbedding(split, logit_soft_cap=0.5)(STATES, reverse=True))
    np.testing.assert_allclose(found, 0.5 * np.tanh(STATES @ split.combine().T / 0.5), rtol=0, atol=TOLERANCE)
    assert np.abs(found).max() <= 0.5


# Gradients


@pytest.mark.parametrize(
    ("kind", "dtype", "compiled"), [*((*each, False) for each in KINDS), ("shared rows", "float32", True)]
)
def test_gradients_are_numpy_s(kind, dtype, compiled, blocks):
    split = SPLITS[kind]().with_frozen_dtype(dtype)
    layer = SplitReversibleEmbedding(split)
    layer.build()
    states, upstream = rows(6, DIM, seed=2), rows(6, split.num_tokens, seed=3)
    factors = ops.convert_to_tensor(upstream)

    def total(states, trainable):
        logits = logits_of(states, trainable, layer._constants, split, Dtypes("float32", "float32", "float32"))
        return ops.sum(logits * factors)

    to_states, to_rows = gradients(total, states, split.trainable, compiled=compiled)
    np.testing.assert_allclose(to_states, upstream @ split.combine(), rtol=0, atol=TOLERANCE)
    expected = np.zeros_like(split.trainable)
    # gradients of tokens with a shared row are summed
    for token_id in split.trainable_ids:
        expected[~split.remap[token_id]] += upstream[:, token_id] @ states
    assert to_rows.shape == split.trainable.shape
    np.testing.assert_allclose(to_rows, expected, rtol=0, atol=TOLERANCE)


# Training


OPTIMIZERS = {
    "SGD": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "Adam": lambda: keras.optimizers.Adam(0.01),
    "AdamW": lambda: keras.optimizers.AdamW(0.01, weight_decay=0.1),
}


@pytest.mark.parametrize("name", others_slow(OPTIMIZERS, ["AdamW"]))
def test_a_language_model_trains_as_its_dense_twin_step_for_step(name):
    split = split_of_nine()
    assert_steps_are_equal(SplitReversibleEmbedding(split), Twin(split), OPTIMIZERS[name])


@pytest.mark.parametrize("options", [{"mask_zero": True}, {"logit_soft_cap": 0.7}])
def test_options_train_as_the_dense_twin_s(options):
    split = split_of_nine()
    layer, twin = SplitReversibleEmbedding(split, **options), Twin(split, **options)
    assert_steps_are_equal(layer, twin, OPTIMIZERS["Adam"])


@pytest.mark.skipif(LAYER is None, reason="this Keras has no ReversibleEmbedding")
def test_untied_weights_train_as_the_dense_twin_s():
    split, reverse = split_of_nine(), split_of_nine(seed=1, trainable_ids=[2, 4, 5, 8])
    layer = SplitReversibleEmbedding(split, tie_weights=False, reverse_split=reverse)
    # not Adam: with the row slices of an untied Embedding, Keras squares each repeated gradient, not their sum
    assert_steps_are_equal(layer, Twin(split, reverse), OPTIMIZERS["SGD"])


@pytest.mark.skipif(BACKEND != "tensorflow", reason="on other backends the tables are non-trainable weights")
@pytest.mark.parametrize("tie_weights", [True, False])
def test_only_trainable_rows_are_weights_and_slots(tie_weights):
    options = {} if tie_weights else {"tie_weights": False, "reverse_split": split_of_nine(seed=1, trainable_ids=[5])}
    layer = SplitReversibleEmbedding(split_of_nine(), **options)
    model = language_model(layer)
    model.compile("adam", loss())
    model.train_on_batch(*batches()[0])
    shapes = [(len(TRAINABLE), DIM), *([] if tie_weights else [(1, DIM)])]
    assert [tuple(weight.shape) for weight in layer.weights] == shapes
    assert all(NUM_TOKENS not in variable.shape for variable in model.optimizer.variables)


def test_untrainable_layer_passes_the_gradient_on_and_keeps_its_rows():
    options = {"tie_weights": False, "reverse_split": split_of_nine(seed=1)}
    for each in ({}, options):
        layer = SplitReversibleEmbedding(split_of_nine(), trainable=False, **each)
        model = language_model(layer)
        model.compile(keras.optimizers.SGD(0.1), loss())
        kernels = model.layers[2].get_weights()
        model.train_on_batch(*batches()[0])
        assert not layer.trainable_weights
        np.testing.assert_array_equal(layer.to_split().trainable, split_of_nine().trainable)
        assert any((now != before).any() for now, before in zip(model.layers[2].get_weights(), kernels, strict=True))


# Keras


@pytest.mark.parametrize(
    ("policy", "frozen_dtype"),
    [("mixed_float16", "float32"), ("mixed_float16", "int8"), ("mixed_bfloat16", "bfloat16")],
)
def test_policies(policy, frozen_dtype):
    split = split_of_nine().with_frozen_dtype(frozen_dtype)
    layer = SplitReversibleEmbedding(split, dtype=policy)
    narrow = layer(ops.cast(STATES, policy[6:]), reverse=True)
    assert keras.backend.standardize_dtype(narrow.dtype) == layer.compute_dtype == policy[6:]
    expected = STATES @ split.combine().T
    # a few units in the last digit of logits up to 4
    error = 0.01 if policy == "mixed_float16" else 0.08
    np.testing.assert_allclose(numpy(ops.cast(narrow, "float32")), expected, rtol=0, atol=error)
    assert {weight.dtype for weight in layer.trainable_weights} == {"float32"}
    wide = SplitReversibleEmbedding(split, dtype=policy, reverse_dtype="float32")
    logits = wide(STATES, reverse=True)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    np.testing.assert_allclose(numpy(logits), expected, rtol=0, atol=TOLERANCE)
    symbolic = wide(keras.Input((None, DIM)), reverse=True)
    assert symbolic.dtype == "float32" and wide(keras.Input((3,), dtype="int32")).dtype == policy[6:]


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision_trains_the_rows_in_float32(policy):
    layer = SplitReversibleEmbedding(split_of_nine(), dtype=policy, reverse_dtype="float32")
    model = language_model(layer)
    model.compile(keras.optimizers.Adam(0.01), loss())
    first, *_, last = [model.train_on_batch(*batches()[0]) for _ in range(20)]
    assert last < first and (layer.to_split().trainable != split_of_nine().trainable).all()


def test_shapes():
    layer = SplitReversibleEmbedding(split_of_nine())
    assert layer.compute_output_shape((None, 7)) == (None, 7, DIM)
    assert layer.compute_output_shape((None, 7, DIM), reverse=True) == (None, 7, NUM_TOKENS)
    logits = layer(keras.Input((7, DIM)), reverse=True)
    assert (logits.shape, logits.dtype) == ((None, 7, NUM_TOKENS), "float32")


def test_rows_have_a_mask_but_logits_do_not():
    layer = SplitReversibleEmbedding(split_of_nine(), mask_zero=True)
    ids = batches()[0][0]
    states = layer(ids)
    np.testing.assert_array_equal(numpy(states._keras_mask), ids != 0)
    assert getattr(layer(states, reverse=True), "_keras_mask", None) is None
    assert getattr(SplitReversibleEmbedding(split_of_nine())(ids), "_keras_mask", None) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"combiner": "mean"}, "`combiner` must be None.*Received: 'mean'"),
        ({"logit_soft_cap": 0}, "must be a positive number or None. Received: 0"),
        ({"logit_soft_cap": float("nan")}, "must be a positive number or None. Received: nan"),
        ({"tie_weights": False}, "tie_weights=False, reverse_split=None"),
        ({"reverse_split": split_of_nine()}, "tie_weights=True, reverse_split=SplitTable"),
        (
            {"tie_weights": False, "reverse_split": SplitTable.from_matrix(rows(NUM_TOKENS, 3), [])},
            "must have the 9 tokens and the dim of 4 of `split`. Received: 9 tokens, a dim of 3",
        ),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(SplitError, match=message):
        SplitReversibleEmbedding(split_of_nine(), **options)


@pytest.mark.parametrize(
    ("states", "message"),
    [
        (
            np.zeros((2, DIM), np.int32),
            r"floats of shape \(..., 4\). Received: int32 of shape \(2, 4\)",
        ),
        (np.zeros((2, 5), np.float32), r"Received: float32 of shape \(2, 5\)"),
    ],
)
def test_invalid_hidden_states_are_refused(states, message):
    layer = SplitReversibleEmbedding(split_of_nine())
    with pytest.raises(SplitError, match=message):
        layer(states, reverse=True)
    with pytest.raises(SplitError, match=message.replace(r"\(2, ", r"\(None, ")):
        layer(keras.Input(states.shape[1:], dtype=states.dtype.name), reverse=True)
    with pytest.raises(SplitError, match="and weights"):
        layer(STATES, STATES, reverse=True)


def test_summary_describes_both_tables():
    layer = SplitReversibleEmbedding(split_of_nine(), tie_weights=False, reverse_split=split_of_nine(1, [5]))
    first, second = layer.summary().split("\n\nlogits\n")
    assert first.split("\n")[2].split()[:2] == ["trainable", "3"]
    assert second.split("\n")[2].split()[:2] == ["trainable", "1"]


# Saving


def untied() -> SplitReversibleEmbedding:
    reverse = split_of_nine(seed=1, trainable_ids=[2, 5])
    return SplitReversibleEmbedding(split_of_nine(), tie_weights=False, reverse_split=reverse)


MAKE = {
    "tied": lambda: SplitReversibleEmbedding(
        split_of_nine(), logit_soft_cap=2.5, mask_zero=True, reverse_dtype="float32"
    ),
    "untied": untied,
}


@pytest.mark.parametrize("name", MAKE)
def test_config_is_small_and_makes_the_same_layer(name):
    layer = MAKE[name]()
    config = json.loads(json.dumps(layer.get_config()))
    assert len(json.dumps(config)) < 3000
    again = SplitReversibleEmbedding.from_config(config)
    assert json.loads(json.dumps(again.get_config())) == config
    np.testing.assert_array_equal(numpy(again(STATES, reverse=True)), numpy(layer(STATES, reverse=True)))


@pytest.mark.parametrize("name", MAKE)
def test_logits_without_tables_are_refused(name):
    config = MAKE[name]().get_config()
    for which in ("split", "reverse_split"):
        if config[which]:
            config[which]["frozen_fingerprint"] = "sha256:" + "0" * 64
    layer = SplitReversibleEmbedding.from_config(config)
    assert layer(keras.Input((3, DIM)), reverse=True).shape == (None, 3, NUM_TOKENS)
    with pytest.raises(MissingTableError, match="has no tables"):
        layer(STATES, reverse=True)


@pytest.mark.parametrize("name", MAKE)
def test_saved_model_predicts_the_same_logits(name, tmp_path):
    states = keras.Input((None, DIM))
    model = keras.Model(states, MAKE[name]()(states, reverse=True))
    expected = model.predict(STATES, verbose=0)
    model.save(tmp_path / "model.keras")
    del model
    LIVE.clear()
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(STATES, verbose=0), expected)


@pytest.mark.skipif(LAYER is None, reason="this Keras cannot load a functional model that calls a layer twice")
@pytest.mark.parametrize("name", MAKE)
def test_a_loaded_language_model_continues_training(name, tmp_path):
    model = language_model(MAKE[name]())
    model.compile(keras.optimizers.Adam(0.01), loss())
    ids, following = batches()[0]
    model.train_on_batch(ids, following)
    expected = model.predict(ids, verbose=0)
    model.save(tmp_path / "model.keras")
    LIVE.clear()
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(ids, verbose=0), expected)
    np.testing.assert_allclose(
        loaded.train_on_batch(ids, following), model.train_on_batch(ids, following), rtol=0, atol=TOLERANCE
    )


@pytest.mark.parametrize("name", MAKE)
def test_weights_files_contain_only_the_trainable_rows(name, tmp_path):
    model = language_model(MAKE[name]())
    model.save_weights(tmp_path / "m.weights.h5")
    shapes = []
    with h5py.File(tmp_path / "m.weights.h5") as file:
        file.visititems(lambda _, item: shapes.append(item.shape) if isinstance(item, h5py.Dataset) else None)
    assert (len(TRAINABLE), DIM) in shapes
    assert not [shape for shape in shapes if NUM_TOKENS in shape or (NUM_TOKENS - len(TRAINABLE), DIM) == shape]
    other = language_model(MAKE[name]())
    other.layers[1].trainable_rows.assign(np.zeros((len(TRAINABLE), DIM)))
    other.load_weights(tmp_path / "m.weights.h5")
    np.testing.assert_array_equal(numpy(other(batches()[0][0])), numpy(model(batches()[0][0])))
