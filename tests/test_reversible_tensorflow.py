"""Logits on TensorFlow: what a step allocates, XLA, LazyAdam, replicas, checkpoints and exports."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from devices import two_replicas
from languages import DIM, NUM_TOKENS, TRAINABLE, Twin, batches, language_model, loss, make_split, rows
from models import ONLY_READS, kinds_of_large_values, same_bits

from splitembed import LazyAdam, SplitTable
from splitembed.errors import MissingTableError
from splitembed.reversible import SplitReversibleEmbedding

TOLERANCE = 1e-5


def trained(layer, optimizer, **options):
    model = language_model(layer)
    model.compile(optimizer, loss(), **options)
    for ids, following in batches():
        model.train_on_batch(ids, following)
    return layer.to_split().trainable


@pytest.mark.parametrize("lookup", ["auto", "static"])
def test_training_inside_xla_is_the_same(lookup):
    expected = trained(SplitReversibleEmbedding(make_split()), keras.optimizers.Adam(0.01))
    layer = SplitReversibleEmbedding(make_split(), lookup=lookup)
    np.testing.assert_allclose(
        trained(layer, keras.optimizers.Adam(0.01), jit_compile=True), expected, rtol=0, atol=TOLERANCE
    )


@pytest.mark.parametrize("gradient", ["auto", "dense", "sparse"])
def test_lazy_adam_is_adam_as_logits_touch_every_row(gradient):
    split = make_split()
    twin = Twin(split)
    layers = [SplitReversibleEmbedding(split, gradient=gradient), twin.layer]
    models = [language_model(layer) for layer in layers]
    for model, optimizer in zip(models, (LazyAdam(0.01), keras.optimizers.Adam(0.01)), strict=True):
        model.compile(optimizer, loss())
    for ids, following in batches():
        losses = [model.train_on_batch(ids, following) for model in models]
        twin.hold()
        np.testing.assert_allclose(*losses, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(layers[0].to_split().combine(), twin.rows()[0], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("gradient", ["auto", "dense", "sparse"])
def test_the_gradient_is_the_dense_sum_of_both_ends(gradient):
    split = make_split()
    layer = SplitReversibleEmbedding(split, gradient=gradient)
    layer.build()
    lazy = LazyAdam(0.1)
    lazy.build(layer.trainable_variables)
    ids, factors = tf.constant([[1, 4, 4, 2]]), tf.constant(rows(4, NUM_TOKENS, seed=5))
    table = tf.Variable(split.combine())
    with tf.GradientTape(persistent=True) as tape:
        states = layer(ids)
        total = tf.reduce_sum(layer(tf.sin(states), reverse=True) * factors)
        scaled = lazy.scale_loss(total)
        values = tf.convert_to_tensor(table)
        dense = tf.reduce_sum(tf.sin(tf.gather(values, ids)) @ tf.transpose(values) * factors)
    expected = tape.gradient(dense, table).numpy()[TRAINABLE]
    for each in (scaled, total):
        (found,) = tape.gradient(each, layer.trainable_variables)
        assert not isinstance(found, tf.IndexedSlices)
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("frozen_dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("num_rows", [100_000, 400_000])
def test_a_step_makes_nothing_of_the_table_s_size(frozen_dtype, num_rows):
    num_tokens, dim = 100_000, 50
    trainable = range(3, 10)
    remap = np.arange(num_tokens, dtype=np.int32)
    remap[trainable] = ~np.arange(len(trainable), dtype=np.int32)
    split = SplitTable.from_arrays(np.ones((num_rows, dim), np.float32), remap, np.ones((len(trainable), dim)))
    layer = SplitReversibleEmbedding(split.with_frozen_dtype(frozen_dtype))
    ids = keras.Input((4,), dtype="int32")
    model = keras.Model(ids, layer(keras.layers.Dense(dim)(layer(ids)), reverse=True))
    model.compile("adam", loss())
    texts, following = tf.constant([[3, 4, 5, 6]]), tf.constant([[4, 5, 6, 7]])
    model.train_on_batch(texts, following)
    step = tf.function(model.train_step).get_concrete_function((texts, following))
    reads = ONLY_READS | {"Bitcast"}
    assert kinds_of_large_values(step.graph, num_tokens * dim) <= reads  # logits are a dozen times less
    assert max(np.prod(variable.shape) for variable in model.optimizer.variables) == dim * dim


def test_that_check_can_fail():
    layer = keras.layers.Embedding(2000, 50)
    layer.build()
    step = tf.function(lambda states: tf.matmul(states, tf.transpose(layer.embeddings)))
    graph = step.get_concrete_function(tf.zeros((4, 50))).graph
    assert not kinds_of_large_values(graph, 2000 * 50) <= ONLY_READS


def test_ragged_states():
    split = make_split()
    layer = SplitReversibleEmbedding(split)
    ids = tf.ragged.constant([[1], [2, 3], []])
    logits = layer(layer(ids), reverse=True)
    assert isinstance(logits, tf.RaggedTensor) and logits.shape == (3, None, NUM_TOKENS)
    np.testing.assert_allclose(logits.flat_values, split.lookup([1, 2, 3]) @ split.combine().T, rtol=0, atol=TOLERANCE)


def test_two_replicas_train_as_the_dense_twin_s():
    split = make_split()
    texts, following = (np.concatenate(parts) for parts in zip(*batches(2), strict=True))
    with two_replicas().scope():
        layer, twin = SplitReversibleEmbedding(split), Twin(split)
        models = [language_model(each) for each in (layer, twin.layer)]
        for model in models:
            model.compile(keras.optimizers.SGD(0.1), loss())
    for model in models:
        model.fit(texts, following, batch_size=len(texts), shuffle=False, verbose=0)
    twin.hold()
    np.testing.assert_allclose(layer.to_split().combine(), twin.rows()[0], rtol=0, atol=TOLERANCE)
    assert (layer.to_split().trainable != split.trainable).all()


@pytest.mark.parametrize("tie_weights", [True, False])
def test_exported_models_and_checkpoints(tie_weights, tmp_path):
    def make():
        other = (
            {} if tie_weights else {"tie_weights": False, "reverse_split": make_split(1, [5]).with_frozen_dtype("int8")}
        )
        return language_model(SplitReversibleEmbedding(make_split(), **other))

    model, ids = make(), batches()[0][0]
    model.layers[1].trainable_rows.assign(rows(len(TRAINABLE), DIM, seed=7))
    expected = model.predict(ids, verbose=0)
    model.export(tmp_path / "export", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "export")
    np.testing.assert_allclose(loaded.serve(tf.constant(ids)), expected, rtol=0, atol=TOLERANCE)
    path = tf.train.Checkpoint(model=model).save(tmp_path / "checkpoint")
    shapes = [shape for _, shape in tf.train.list_variables(path)]
    assert [len(TRAINABLE), DIM] in shapes and not [shape for shape in shapes if NUM_TOKENS in shape]
    again = make()
    again.layers[1].trainable_rows.assign(np.zeros((len(TRAINABLE), DIM)))
    tf.train.Checkpoint(model=again).restore(path).assert_existing_objects_matched()
    same_bits(again.predict(ids, verbose=0), expected)


def test_a_graph_without_tables_is_traced_and_refuses_to_run():
    config = SplitReversibleEmbedding(make_split()).get_config()
    config["split"]["frozen_fingerprint"] = "sha256:other"
    layer = SplitReversibleEmbedding.from_config(config)
    function = tf.function(lambda states: layer(states, reverse=True))
    assert function.get_concrete_function(tf.TensorSpec((None, DIM))).output_shapes[-1] == NUM_TOKENS
    with pytest.raises(tf.errors.InvalidArgumentError, match="has no tables"):
        function(tf.zeros((2, DIM)))
    with pytest.raises(MissingTableError):
        layer(tf.zeros((2, DIM)), reverse=True)
