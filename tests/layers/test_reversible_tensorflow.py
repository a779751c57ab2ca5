"""Logits on TensorFlow: what a step allocates, XLA, LazyAdam, replicas, checkpoints and exports."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from splitembed import LazyAdam, SplitTable
from splitembed.errors import MissingTableError
from splitembed.layers import logits
from splitembed.layers.reversible import SplitReversibleEmbedding
from tests.helpers.bits import same_bits
from tests.helpers.devices import two_replicas
from tests.helpers.languages import (
    DIM,
    NUM_TOKENS,
    Twin,
    batches,
    language_model,
    loss,
    make_split_in_order,
    rows,
    split_of_nine,
)
from tests.helpers.models import ONLY_READS, kinds_of_large_values
from tests.models.test_export_formats import exported

TOLERANCE = 1e-5


def trained(layer, optimizer, **options):
    model = language_model(layer)
    model.compile(optimizer, loss(), **options)
    for ids, following in batches():
        model.train_on_batch(ids, following)
    return layer.to_split().trainable


@pytest.mark.parametrize(("make", "lookup"), [(split_of_nine, "static"), (make_split_in_order, "auto")])
def test_training_inside_xla_is_the_same(lookup, make):
    expected = trained(SplitReversibleEmbedding(make()), keras.optimizers.Adam(0.01))
    layer = SplitReversibleEmbedding(make(), lookup=lookup)
    np.testing.assert_allclose(
        trained(layer, keras.optimizers.Adam(0.01), jit_compile=True), expected, rtol=0, atol=TOLERANCE
    )


@pytest.mark.parametrize("gradient", ["auto", "dense", "sparse"])
def test_lazy_adam_is_adam_as_logits_touch_every_row(gradient):
    split = split_of_nine()
    twin = Twin(split)
    layers = [SplitReversibleEmbedding(split, gradient=gradient), twin.layer]
    models = [language_model(layer) for layer in layers]
    for model, optimizer in zip(models, (LazyAdam(0.01), keras.optimizers.Adam(0.01)), strict=True):
        model.compile(optimizer, loss())
    for ids, following in batches():
        losses = [model.train_on_batch(ids, following) for model in models]
        twin.reset_frozen()
        np.testing.assert_allclose(*losses, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(layers[0].to_split().combine(), twin.rows()[0], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("make", "gradient"),
    [*((split_of_nine, gradient) for gradient in ("auto", "dense", "sparse")), (make_split_in_order, "auto")],
)
def test_the_gradient_is_the_dense_sum_of_both_ends(gradient, make):
    split = make()
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
    by_row = tape.gradient(dense, table).numpy()[split.trainable_ids]
    expected = by_row[np.argsort(~split.remap[split.trainable_ids])]
    for each in (scaled, total):
        (found,) = tape.gradient(each, layer.trainable_variables)
        assert not isinstance(found, tf.IndexedSlices)
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("frozen_dtype", "num_rows"), [("float32", 100_000), ("float32", 400_000), ("int8", 100_000), ("float16", 400_000)]
)
def test_a_step_allocates_nothing_of_the_size_of_the_table(frozen_dtype, num_rows):
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
    if num_rows == num_tokens and frozen_dtype == "float32":
        # as in Keras's layer; the next test shows that it is optimized away
        reads.add("Transpose")
    # logits are a dozen times smaller
    assert kinds_of_large_values(step.graph, num_tokens * dim) <= reads
    assert max(np.prod(variable.shape) for variable in model.optimizer.variables) == dim * dim


def test_the_transposed_table_of_a_product_in_order_is_never_built(monkeypatch):
    # of this small table two of six tokens train, which are few
    monkeypatch.setattr(logits, "_FEW", 1.0)
    layer = SplitReversibleEmbedding(make_split_in_order())
    layer.build()

    @tf.function
    def run(states):
        with tf.GradientTape() as tape:
            tape.watch(states)
            total = tf.reduce_sum(layer(states, reverse=True) ** 2)
        return tape.gradient(total, [states, *layer.trainable_variables])

    traced, optimized = kinds_before_and_after(run, tf.constant(rows(3, DIM)))
    assert "Transpose" in traced and "MatMul" in optimized
    assert "Transpose" not in optimized


def kinds_before_and_after(function, *arguments) -> list[set[str]]:
    """Return the types of the traced operations, and of those that remain after TensorFlow's optimizer."""
    context.context().enable_graph_collection()
    function(*arguments)
    graphs = context.context().export_run_metadata().function_graphs
    context.context().disable_graph_collection()
    names = ("pre_optimization_graph", "post_optimization_graph")
    return [{node.op for each in graphs for node in getattr(each, name).node} for name in names]


def test_the_check_of_allocations_can_fail():
    layer = keras.layers.Embedding(2000, 50)
    layer.build()
    step = tf.function(lambda states: tf.matmul(states, tf.transpose(layer.embeddings)))
    graph = step.get_concrete_function(tf.zeros((4, 50))).graph
    assert not kinds_of_large_values(graph, 2000 * 50) <= ONLY_READS


def test_ragged_states():
    split = split_of_nine()
    layer = SplitReversibleEmbedding(split)
    ids = tf.ragged.constant([[1], [2, 3], []])
    logits = layer(layer(ids), reverse=True)
    assert isinstance(logits, tf.RaggedTensor) and logits.shape == (3, None, NUM_TOKENS)
    np.testing.assert_allclose(logits.flat_values, split.lookup([1, 2, 3]) @ split.combine().T, rtol=0, atol=TOLERANCE)


def test_two_replicas_train_as_the_dense_twin_s():
    split = split_of_nine()
    texts, following = (np.concatenate(parts) for parts in zip(*batches(2), strict=True))
    with two_replicas().scope():
        layer, twin = SplitReversibleEmbedding(split), Twin(split)
        models = [language_model(each) for each in (layer, twin.layer)]
        for model in models:
            model.compile(keras.optimizers.SGD(0.1), loss())
    for model in models:
        model.fit(texts, following, batch_size=len(texts), shuffle=False, verbose=0)
    twin.reset_frozen()
    np.testing.assert_allclose(layer.to_split().combine(), twin.rows()[0], rtol=0, atol=TOLERANCE)
    assert (layer.to_split().trainable != split.trainable).all()


UNTIED = {
    "tied": lambda: None,
    "untied": lambda: split_of_nine(1, [5]).with_frozen_dtype("int8"),
    "untied, in order": lambda: make_split_in_order(1).with_frozen_dtype("bfloat16"),
}


@pytest.mark.parametrize(
    ("make_first", "other"),
    [(split_of_nine, "tied"), (make_split_in_order, "untied"), (split_of_nine, "untied, in order")],
)
def test_exported_models_and_checkpoints(other, make_first, tmp_path):
    def make():
        reverse = UNTIED[other]()
        return language_model(
            SplitReversibleEmbedding(make_first(), tie_weights=reverse is None, reverse_split=reverse)
        )

    model, ids = make(), batches()[0][0]
    trainable = model.layers[1].trainable_rows
    trainable.assign(rows(*trainable.shape, seed=7))
    expected = model.predict(ids, verbose=0)
    model.export(tmp_path / "export", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "export")
    np.testing.assert_allclose(loaded.serve(tf.constant(ids)), expected, rtol=0, atol=TOLERANCE)
    path = tf.train.Checkpoint(model=model).save(tmp_path / "checkpoint")
    shapes = [shape for _, shape in tf.train.list_variables(path)]
    assert list(trainable.shape) in shapes and not [shape for shape in shapes if NUM_TOKENS in shape]
    again = make()
    again.layers[1].trainable_rows.assign(np.zeros(trainable.shape))
    tf.train.Checkpoint(model=again).restore(path).assert_existing_objects_matched()
    same_bits(again.predict(ids, verbose=0), expected)


@pytest.mark.parametrize(("form", "frozen_dtype"), [("onnx", "float32"), ("onnx", "int8"), ("litert", "bfloat16")])
def test_other_formats_have_logits_in_order(frozen_dtype, form, tmp_path):
    pytest.importorskip("keras.src.export.onnx", reason="this Keras exports only to SavedModel")
    for module in ("tf2onnx", "onnxruntime") if form == "onnx" else ("ai_edge_litert",):
        pytest.importorskip(module)
    split = make_split_in_order().with_frozen_dtype(frozen_dtype)
    states = keras.Input((3, DIM))
    model = keras.Model(states, SplitReversibleEmbedding(split)(states, reverse=True))
    given = rows(2, 3, DIM, seed=2)
    expected = model(given)
    run = exported(model, form, tmp_path)
    np.testing.assert_allclose(run(given), expected, rtol=0, atol=TOLERANCE)
    model.layers[1].trainable_rows.assign(rows(split.num_trainable, DIM, seed=7))
    run = exported(model, form, tmp_path)
    np.testing.assert_allclose(run(given), model(given), rtol=0, atol=TOLERANCE)


def test_a_graph_without_tables_is_traced_and_refuses_to_run():
    config = SplitReversibleEmbedding(split_of_nine()).get_config()
    config["split"]["frozen_fingerprint"] = "sha256:" + "0" * 64
    layer = SplitReversibleEmbedding.from_config(config)
    function = tf.function(lambda states: layer(states, reverse=True))
    assert function.get_concrete_function(tf.TensorSpec((None, DIM))).output_shapes[-1] == NUM_TOKENS
    with pytest.raises(tf.errors.InvalidArgumentError, match="has no tables"):
        function(tf.zeros((2, DIM)))
    with pytest.raises(MissingTableError):
        layer(tf.zeros((2, DIM)), reverse=True)
