"""SplitEmbedding in models: the bits of a dense Embedding, training of only its trainable rows, Keras's contract."""

import json
import pickle
import warnings
from copy import deepcopy

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings

from splitembed import LazyAdam, SplitEmbedding, SplitTable
from splitembed.errors import MissingTableError, SplitEmbedError, SplitError, TokenIdError
from tests.helpers.bits import same_bits
from tests.helpers.models import (
    DIM,
    IDS,
    MODELS,
    ONLY_READS,
    TARGETS,
    TRAINABLE_IDS,
    WORDS,
    embeddings_in,
    functional,
    kinds_of_large_values,
    make_split,
    sequential,
    unbuilt_sequential,
)
from tests.helpers.strategies import splits_and_ids

FROZEN_IDS = [0, 2, 3, 5]


@pytest.fixture(scope="module")
def split() -> SplitTable:
    return make_split()


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


SPLITS = {
    "mixed": make_split,
    "all frozen": lambda: SplitTable.from_matrix(values(6, 3), []),
    "all trainable": lambda: SplitTable.from_matrix(values(6, 3), range(6)),
    "one frozen token": lambda: SplitTable.from_matrix(values(1, 3), []),
    "one trainable token": lambda: SplitTable.from_matrix(values(1, 3), [0]),
    "shared rows": lambda: SplitTable.from_arrays(values(2, 3), [1, ~0, 1, ~0, 0, ~1], values(2, 3, seed=1)),
}


def dense(split: SplitTable, **options) -> keras.layers.Embedding:
    """Return Keras's Embedding with the same rows."""
    layer = keras.layers.Embedding(split.num_tokens, split.dim, **options)
    layer.build()
    layer.set_weights([split.combine()])
    return layer


def ids_for(split: SplitTable) -> np.ndarray:
    return IDS % split.num_tokens


def identity(layer: keras.layers.Layer) -> keras.Model:
    """Return a functional model of only the layer."""
    ids = keras.Input((None,), dtype="int32")
    return keras.Model(ids, layer(ids))


class Alone(keras.Model):
    """A subclassed model of only the layer."""

    def __init__(self, layer) -> None:
        super().__init__()
        self.layer = layer

    def call(self, ids):
        return self.layer(ids)


WAYS = {
    "eager": lambda layer, ids: layer(ids),
    "tf.function": lambda layer, ids: tf.function(layer)(ids),
    "functional": lambda layer, ids: identity(layer).predict(ids, verbose=0),
    "Sequential": lambda layer, ids: keras.Sequential([layer]).predict(ids, verbose=0),
    "subclassed": lambda layer, ids: Alone(layer).predict(ids, verbose=0),
}


# Rows


@settings(max_examples=30)
@given(splits_and_ids())
def test_equals_the_dense_layer_to_the_bit(case):
    split, ids = case
    found = SplitEmbedding(split)(ids)
    same_bits(found, split.lookup(ids))
    same_bits(found, dense(split)(ids.astype(np.int64)))


# each kind of model, and each kind of split in one of them
@pytest.mark.parametrize(
    ("kind", "way"), [*(("mixed", way) for way in WAYS), *((kind, "functional") for kind in SPLITS if kind != "mixed")]
)
def test_equals_the_dense_layer_in_every_kind_of_model(kind, way):
    split = SPLITS[kind]()
    ids = ids_for(split)
    found = WAYS[way](SplitEmbedding(split), ids)
    same_bits(found, split.lookup(ids))
    same_bits(found, WAYS[way](dense(split), ids))


@pytest.mark.parametrize("dtype", ["uint8", "int64", "uint64"])
def test_inputs_of_other_integer_dtypes(dtype, split):
    ids = keras.Input((None,), dtype=dtype)
    model = keras.Model(ids, SplitEmbedding(split)(ids))
    same_bits(model.predict(IDS.astype(dtype), verbose=0), split.lookup(IDS))


RAGGED = [[1], [2, 3], []]


def same_ragged(found, split):
    assert isinstance(found, tf.RaggedTensor) and found.shape == (3, None, DIM)
    assert found.to_list() == [split.lookup(np.array(row, int)).tolist() for row in RAGGED]


def test_ragged_ids_give_ragged_rows(split):
    layer, ids = SplitEmbedding(split, mask_zero=True), tf.ragged.constant(RAGGED)
    same_ragged(layer(ids), split)
    same_ragged(tf.function(layer)(ids), split)
    assert layer(tf.ragged.constant([[[1], []], [[2, 3]]])).shape == (2, None, None, DIM)


def test_ragged_functional_model(split):
    try:
        ids = keras.Input((None,), dtype="int32", ragged=True)
    except TypeError:
        pytest.skip("this Keras has no ragged inputs")
    rows = SplitEmbedding(split)(ids)
    assert rows.ragged and rows.shape == (None, None, DIM)
    model = keras.Model(ids, rows)
    same_ragged(model(tf.ragged.constant(RAGGED)), split)
    same_ragged(model.predict(tf.ragged.constant(RAGGED), verbose=0), split)


def test_sparse_ids_are_refused(split):
    ids = tf.sparse.from_dense([[1, 0], [0, 2]])
    for look_up in (SplitEmbedding(split), tf.function(SplitEmbedding(split), autograph=False)):
        with pytest.raises(SplitError, match=r"must be dense or ragged. .* Call tf.sparse.to_dense first"):
            look_up(ids)
    with pytest.raises(SplitError, match="sparse=False"):
        SplitEmbedding(split)(keras.Input((None,), dtype="int32", sparse=True))


# Ids


@pytest.mark.parametrize(
    ("token_id", "dtype"), [(6, "int32"), (-1, "int64"), (2**32 + 5, "int64"), (2**63 + 9, "uint64")]
)
def test_an_id_out_of_range_gives_the_same_error_everywhere(token_id, dtype, split):
    ids = np.array([[0, token_id]], dtype)
    text = f"Token id {token_id} is out of range: there are 6 tokens, so ids run from 0 to 5"
    with pytest.raises(TokenIdError, match=text):
        SplitEmbedding(split)(ids)
    inputs = keras.Input((None,), dtype=dtype)
    model = keras.Model(inputs, keras.layers.GlobalAveragePooling1D()(SplitEmbedding(split)(inputs)))
    model.compile("sgd", "mse")
    for run in (
        tf.function(SplitEmbedding(split)),
        model.predict,
        lambda ids: model.fit(ids, np.ones((1, DIM)), verbose=0),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            run(ids)


BIG = 2**24 + 2


@pytest.fixture(scope="module")
def big_split() -> SplitTable:
    """More tokens than float32 can distinguish; all but the last share one row."""
    remap = np.zeros(BIG, np.int32)
    remap[-1] = ~0
    return SplitTable.from_arrays([[1.0]], remap, [[2.0]])


def test_an_input_without_dtype_takes_small_ids(split):
    ids = keras.Input((None,))
    assert keras.backend.standardize_dtype(ids.dtype) == "float32"
    model = keras.Model(ids, SplitEmbedding(split)(ids))
    same_bits(model.predict(IDS, verbose=0), split.lookup(IDS))
    for token_id in (0.5, np.nan):
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be whole numbers from 0 to 5"):
            model.predict(np.array([[token_id]]), verbose=0)


def test_an_input_without_dtype_is_refused_if_float32_rounds_ids(big_split):
    message = (
        r'`ids` of dtype float32 cannot hold every id below 16777218 exactly.* keras.Input\(shape, dtype="int32"\)'
    )
    with pytest.raises(SplitError, match=message):
        SplitEmbedding(big_split)(keras.Input((1,)))
    with pytest.raises(SplitError, match=message):
        keras.Sequential([SplitEmbedding(big_split)]).predict(np.array([[BIG - 1]]), verbose=0)
    model = identity(SplitEmbedding(big_split))
    assert model.predict(np.array([[BIG - 1, BIG - 2]]), verbose=0).tolist() == [[[2.0], [1.0]]]


@pytest.fixture
def mixed_float16():
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    yield
    keras.config.set_dtype_policy(before)


def test_float16_ids_are_refused_if_they_round(mixed_float16):
    split = SplitTable.from_matrix(np.arange(2050.0)[:, None] / 4, [2049])
    ids = np.array([[2047, 2048, 2049]])
    with pytest.raises(SplitError, match="of dtype float16 cannot hold every id below 2050 exactly"):
        keras.Sequential([SplitEmbedding(split)]).predict(ids, verbose=0)
    # None is float32 here, which can represent all ids
    for dtype in ("int32", None):
        inputs = keras.Input((None,), dtype=dtype)
        rows = keras.Model(inputs, SplitEmbedding(split)(inputs)).predict(ids, verbose=0)
        same_bits(rows, split.lookup(ids).astype(np.float16))


POLICIES = {"float32": "float32", "mixed_float16": "float16", "mixed_bfloat16": "bfloat16", "float64": "float64"}


@pytest.mark.parametrize(("policy", "dtype"), POLICIES.items())
def test_dtype_policies_cast_the_output_and_keep_the_rows(policy, dtype, split):
    layer = SplitEmbedding(split, dtype=policy)
    model = identity(layer)
    rows = layer(IDS)
    assert model.output.dtype == rows.dtype == dtype and layer.trainable_rows.dtype == "float32"
    same_bits(rows, tf.cast(split.lookup(IDS), dtype))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(IDS))
    same_bits(
        tape.gradient(loss, layer.trainable_weights)[0], np.repeat([[3.0], [4.0]], DIM, axis=1).astype(np.float32)
    )


# Frozen rows


def compiled(layer: SplitEmbedding, optimizer) -> keras.Model:
    model = functional(layer)
    model.compile(optimizer, "mse")
    return model


def fit(model: keras.Model, ids=IDS, targets=TARGETS, **options) -> None:
    model.fit(ids, targets, verbose=0, shuffle=False, **options)


def assert_frozen(layer: SplitEmbedding, split: SplitTable, before: bytes) -> None:
    assert split.frozen.tobytes() == layer.to_split().frozen.tobytes() == before
    same_bits(layer(np.array(FROZEN_IDS)), split.lookup(FROZEN_IDS))


def test_momentum_changes_no_frozen_row():
    split = make_split()
    before, layer = split.frozen.tobytes(), SplitEmbedding(split)
    model = compiled(layer, keras.optimizers.Adam(0.1))
    for token_id in (2, 3):
        fit(model, np.array([[token_id, 1]]), TARGETS[:1])
    assert_frozen(layer, split, before)
    assert (layer.to_split().lookup(TRAINABLE_IDS)[0] != split.lookup(TRAINABLE_IDS)[0]).all()


def test_weight_decay_changes_no_frozen_row():
    split = make_split()
    before, layer = split.frozen.tobytes(), SplitEmbedding(split)
    fit(compiled(layer, keras.optimizers.AdamW(0.1, weight_decay=0.1)), epochs=20)
    assert_frozen(layer, split, before)
    assert (layer.to_split().trainable != split.trainable).all()


def test_the_trainable_flag_stops_and_restarts_training():
    split = make_split()
    before, layer = split.frozen.tobytes(), SplitEmbedding(split)
    model = compiled(layer, "adam")
    fit(model)
    trained = layer.to_split().trainable
    assert (trained != split.trainable).any()
    layer.trainable = False
    model.compile("adam", "mse")
    fit(model)
    same_bits(layer.to_split().trainable, trained)
    assert layer not in [each for each in model.layers if each.trainable_weights]
    layer.trainable = True
    model.compile("adam", "mse")
    fit(model)
    assert (layer.to_split().trainable != trained).any()
    assert_frozen(layer, split, before)


@pytest.mark.parametrize("options", [{"trainable": False}, {}])
def test_an_untrainable_layer_has_no_gradient(options, split):
    layer = SplitEmbedding(split, **options)
    layer.build()
    layer.trainable = False
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(IDS))
    assert layer.trainable_weights == [] and tape.gradient(loss, layer.weights) == [None]


@pytest.mark.parametrize("optimizer", [keras.optimizers.Adam, LazyAdam])
def test_a_step_allocates_nothing_of_the_size_of_the_table(optimizer):
    num_tokens, dim = 200_000, 50
    split = SplitTable.from_matrix(np.ones((num_tokens, dim), np.float32), range(10))
    model = sequential(SplitEmbedding(split))
    model.compile(optimizer(0.1), "mse")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        fit(model)
    assert not [each for each in warned if "IndexedSlices" in str(each.message)]
    assert max(np.prod(variable.shape) for variable in model.optimizer.variables) == 10 * dim
    step = tf.function(model.train_step).get_concrete_function((tf.constant(IDS), tf.constant(TARGETS)))
    assert kinds_of_large_values(step.graph, num_tokens) <= ONLY_READS
    assert (embeddings_in(model)[0].to_split().trainable[0] != 1).all()


def test_the_check_of_allocations_can_fail():
    model = sequential(dense(SplitTable.from_matrix(np.ones((2000, 50), np.float32), [])))
    model.compile("adam", "mse")
    fit(model)
    step = tf.function(model.train_step).get_concrete_function((tf.constant(IDS), tf.constant(TARGETS)))
    assert not kinds_of_large_values(step.graph, 2000) <= ONLY_READS


@pytest.mark.parametrize("kind", SPLITS)
def test_every_kind_of_split_trains_without_a_warning(kind):
    split = SPLITS[kind]()
    model = functional(SplitEmbedding(split))
    model.compile("adam", "mse")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(model, ids_for(split))
    rows = [weight for weight in model.trainable_weights if weight.name == "trainable_embeddings"]
    assert [weight.shape for weight in rows] == [(split.num_trainable, 3)] * (split.num_trainable > 0)
    assert len(model.trainable_weights) == 2 + len(rows)
    for weight in rows:
        assert (weight.numpy() != split.trainable).any()


# Padding and masks


def test_padding_stays_zero_and_masked(split):
    layer = SplitEmbedding(split, mask_zero=True)
    ids = np.array([[1, 0, 0]])
    assert (split.lookup(0) == 0).all()
    fit(compiled(layer, keras.optimizers.Adam(0.1)), ids, TARGETS[:1], epochs=10)
    assert (layer(np.array([0])).numpy() == 0).all() and (layer.to_split().lookup(0) == 0).all()
    assert layer.compute_mask(ids).numpy().tolist() == [[True, False, False]]
    assert layer(ids)._keras_mask.numpy().tolist() == [[True, False, False]]


@pytest.mark.parametrize("padding", [None, 2])
def test_mask_zero_without_padding_is_refused(padding):
    matrix = np.ones((4, 2))
    matrix[2] = 0
    with pytest.raises(SplitError, match=f"this split's padding is {padding}: id 0 would be a word"):
        SplitEmbedding(SplitTable.from_matrix(matrix, [1], padding=padding), mask_zero=True)


@pytest.mark.parametrize("mask_zero", [False, True])
@pytest.mark.parametrize("after", [lambda: keras.layers.LSTM(2, seed=0), keras.layers.GlobalAveragePooling1D])
def test_later_layers_get_the_mask_of_a_dense_embedding(after, mask_zero, split):
    keras.utils.set_random_seed(0)
    following = after()
    models = [
        keras.Sequential([keras.Input((None,), dtype="int32"), layer, following])
        for layer in (SplitEmbedding(split, mask_zero=mask_zero), dense(split, mask_zero=mask_zero))
    ]
    ours, keras_s = (model.predict(IDS, verbose=0) for model in models)
    same_bits(ours, keras_s)
    assert SplitEmbedding(split, mask_zero=mask_zero).supports_masking == mask_zero


# Regularizers and constraints


def test_the_regularizer_covers_only_the_trainable_rows(split):
    layer = SplitEmbedding(split, embeddings_regularizer=keras.regularizers.L2(0.1))
    model = functional(layer)
    np.testing.assert_allclose(model.losses, [0.1 * np.sum(split.trainable.astype(np.float64) ** 2)], rtol=1e-6)


@pytest.mark.parametrize("optimizer", [keras.optimizers.SGD, LazyAdam])
def test_the_constraint_changes_only_the_trainable_rows(optimizer):
    split = make_split()
    before, layer = (
        split.frozen.tobytes(),
        SplitEmbedding(split, embeddings_constraint=keras.constraints.UnitNorm(axis=1)),
    )
    fit(compiled(layer, optimizer(0.01)))
    np.testing.assert_allclose(np.linalg.norm(layer.to_split().trainable, axis=1), 1, rtol=1e-5)
    assert_frozen(layer, split, before)


# XLA


def test_the_dynamic_form_is_refused_inside_xla(split):
    with pytest.raises(SplitEmbedError, match="XLA would compile into code that returns other tokens' rows"):
        tf.function(SplitEmbedding(split, lookup="dynamic"), jit_compile=True)(IDS)


def test_keras_does_not_compile_a_model_with_the_dynamic_form_for_xla(split):
    model = functional(SplitEmbedding(split, lookup="dynamic"))
    with pytest.warns(UserWarning, match="doesn't support `jit_compile=True`"):
        model.compile("sgd", "mse", jit_compile=True)
    fit(model)
    assert not model.jit_compile
    assert (embeddings_in(model)[0].to_split().trainable != split.trainable).any()


class MadeLate(keras.Model):
    """A model whose layer is made after it is compiled, so that Keras cannot check it."""

    def build(self, input_shape):
        self.layer = SplitEmbedding(make_split(), lookup="dynamic")

    def call(self, ids):
        return self.layer(ids)


@pytest.mark.parametrize("run", ["fit", "predict"])
def test_the_dynamic_form_is_refused_in_a_model_compiled_for_xla(run):
    model = MadeLate()
    model.compile("sgd", "mse", jit_compile=True)
    with pytest.raises(SplitEmbedError, match="XLA would compile into code that returns other tokens' rows"):
        model.fit(IDS, np.ones((4, 4, DIM)), verbose=0) if run == "fit" else model.predict(IDS, verbose=0)


# Keras's contract


def test_names_sizes_and_weights(split):
    layer = SplitEmbedding(split, name="tokens")
    assert (layer.input_dim, layer.output_dim, layer.num_frozen, layer.num_trainable) == (6, DIM, 4, 2)
    assert layer.name == "tokens" and not layer.built
    assert layer.compute_output_shape((None, 7)) == (None, 7, DIM)
    spec = layer.compute_output_spec(keras.KerasTensor((2, 7), "int32"))
    assert spec.shape == (2, 7, DIM) and spec.dtype == "float32"
    layer.build()
    assert [weight.path for weight in layer.weights] == ["tokens/trainable_embeddings"]
    assert layer.count_params() == 2 * DIM


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": np.ones(2)}, r"`split` must be a SplitTable. Received: array.* \(of type ndarray\)"),
        ({"gradient": "slices"}, '`gradient` must be "auto", "dense" or "sparse". Received: \'slices\''),
    ],
)
def test_invalid_arguments_are_refused(arguments, message, split):
    with pytest.raises(SplitError, match=message):
        SplitEmbedding(**{"split": split, **arguments})


def test_two_layers_and_two_calls_in_one_model():
    split = make_split()
    first, second = SplitEmbedding(split, name="first"), SplitEmbedding(split, name="second")
    model = functional(first, second, first)
    model.compile(LazyAdam(0.1), "mse")
    fit(model)
    rows = [layer.to_split().trainable for layer in (first, second)]
    assert (rows[0] != split.trainable).any() and (rows[0] != rows[1]).any()
    assert np.shares_memory(first.to_split().frozen, second.to_split().frozen)
    assert sum(weight.name == "trainable_embeddings" for weight in model.weights) == 2


def test_config_round_trip():
    split = make_split()
    layer = SplitEmbedding(
        split,
        mask_zero=True,
        embeddings_regularizer=keras.regularizers.L1L2(0.1, 0.2),
        embeddings_constraint="non_neg",
        gradient="dense",
        name="tokens",
        dtype="mixed_bfloat16",
        trainable=False,
    )
    config = layer.get_config()
    assert json.loads(json.dumps(config)) == config
    # from_config must not change the config
    for _ in range(2):
        again = SplitEmbedding.from_config(config)
        assert again.get_config() == config
    assert again.embeddings_regularizer.l2 == 0.2 and isinstance(again.embeddings_constraint, keras.constraints.NonNeg)
    assert again.mask_zero and again.compute_dtype == "bfloat16" and not again.trainable
    assert np.shares_memory(again.to_split().frozen, split.frozen)


def test_config_is_small_and_contains_no_token():
    num_tokens = 200_000
    words = [f"word-{token_id}" for token_id in range(num_tokens)]
    split = SplitTable.from_matrix(values(num_tokens, 4), [1], vocabulary=words)
    config = json.dumps(SplitEmbedding(split).get_config())
    assert len(config) < 2000 and "word-" not in config


def test_calls_in_a_block_are_observed_with_the_tensors_of_the_model(split):
    layer, calls = SplitEmbedding(split), []
    with layer.observed(calls.append):
        rows = layer(np.array([[1, 2]]))
        with pytest.raises(ValueError, match="stop"), layer.observed(calls.append):
            raise ValueError("stop")
    layer(np.array([3]))
    (call,) = calls
    assert call.output is rows and call.weights is None and not call.is_reverse
    np.testing.assert_array_equal(call.inputs, [[1, 2]])


def test_to_split_copies_the_trainable_rows_and_shares_the_frozen_ones():
    split = make_split()
    layer = SplitEmbedding(split)
    assert layer.to_split() is split
    model = compiled(layer, "sgd")
    before = layer.to_split()
    same_bits(before.trainable, split.trainable)
    fit(model)
    same_bits(before.trainable, split.trainable)
    after = layer.to_split()
    same_bits(after.combine()[FROZEN_IDS], split.combine()[FROZEN_IDS])
    same_bits(after.lookup(IDS), layer(IDS))
    assert list(after.vocabulary) == WORDS and after.padding == 0 and np.shares_memory(after.frozen, split.frozen)


@pytest.mark.parametrize("copy", [deepcopy, lambda split: pickle.loads(pickle.dumps(split))])
@pytest.mark.parametrize("mapped", [False, True])
def test_splits_can_be_copied_and_pickled(copy, mapped, tmp_path):
    split = make_split()
    if mapped:
        split.save(tmp_path)
        split = SplitTable.open(tmp_path)
    twin = copy(split)
    same_bits(twin.combine(), split.combine())
    assert (twin.vocabulary, twin.padding, twin.fingerprint) == (split.vocabulary, 0, split.fingerprint)
    same_bits(SplitEmbedding(twin)(IDS), split.lookup(IDS))


# Without tables


@pytest.fixture
def bare() -> SplitEmbedding:
    """A layer made from a config whose split is not in this process."""
    config = SplitEmbedding(make_split(), mask_zero=True).get_config()
    config["split"]["frozen_fingerprint"] = "sha256:" + "0" * 64
    return SplitEmbedding.from_config(config)


def test_a_layer_without_tables_has_shapes_and_no_rows(bare):
    assert bare.compute_output_shape((2, 7)) == (2, 7, DIM)
    assert bare(keras.Input((7,), dtype="int32")).shape == (None, 7, DIM)
    for use in (lambda: bare(IDS), bare.to_split):
        with pytest.raises(MissingTableError, match=f"Layer '{bare.name}' has no tables"):
            use()


@pytest.mark.filterwarnings("ignore:Gradients do not exist")
@pytest.mark.parametrize("name", MODELS)
def test_a_model_without_tables_cannot_predict_train_or_be_saved(name, bare, tmp_path):
    model = MODELS[name](bare)
    model.compile("sgd", "mse")
    # as Keras builds a loaded model
    model.build_from_config({"input_shape": (None, None)})
    assert bare.built
    for run in (
        lambda: model.predict(IDS, verbose=0),
        lambda: model.evaluate(IDS, TARGETS, verbose=0),
        lambda: fit(model),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match="has no tables"):
            run()
    with pytest.raises(MissingTableError, match="has no tables"):
        model.save(tmp_path / "model.keras")


def test_a_model_of_many_tokens_builds_from_float_placeholders(big_split):
    """Keras builds a loaded model with float placeholders, and leaves the model half built if that raises."""
    model = MODELS["subclassed"](SplitEmbedding(big_split))
    model.build_from_config({"input_shape": (None, 4)})
    assert all(layer.built for layer in model._flatten_layers(include_self=False))
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot hold every id"):
        model.predict(np.array([[1.0]]), verbose=0)


def test_an_unbuilt_sequential_refuses_floats_when_called(big_split):
    with pytest.raises(SplitError, match="cannot hold every id"):
        unbuilt_sequential(SplitEmbedding(big_split))(np.array([[1]]))


# Examples of padding alone


def test_the_mean_of_padding_alone_is_nan_by_pooling_and_zero_by_a_combiner(split):
    ids = keras.Input((3,), dtype="int32")
    pooled = keras.layers.GlobalAveragePooling1D()(SplitEmbedding(split, mask_zero=True)(ids))
    combined = SplitEmbedding(split, mask_zero=True, combiner="mean")(ids)
    found_pooled, found_combined = keras.Model(ids, [pooled, combined])(tf.constant([[0, 0, 0], [2, 0, 0]]))
    assert np.isnan(found_pooled[0]).all() and not np.any(found_combined[0])
    np.testing.assert_allclose(found_pooled[1], found_combined[1], rtol=0, atol=1e-6)


# Environments


@pytest.mark.parametrize("value", ["1", "true"])
def test_an_environment_of_keras_2_is_refused(split, value, monkeypatch):
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", value)
    with pytest.raises(SplitError, match=f"TF_USE_LEGACY_KERAS={value} makes tf.keras Keras 2.*Unset the variable"):
        SplitEmbedding(split)
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "0")
    SplitEmbedding(split)
