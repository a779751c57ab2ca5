"""The gradients that would reach frozen rows, against those of a dense Embedding with a row for each occurrence."""

import inspect
import tracemalloc

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from splitembed import LazyAdam, SplitEmbedding, SplitReversibleEmbedding, SplitTable
from splitembed.errors import SplitError
from splitembed.models.row_gradients import BATCH_SIZE, WIDTH, measure_gradients

TOKENS, DIM, LENGTH, EXAMPLES = 12, 4, 6, 10
TRAINABLE = [1, 5]
GENERATOR = np.random.default_rng(0)
MATRIX = GENERATOR.normal(size=(TOKENS, DIM)).astype(np.float32)
MATRIX[0] = 0
IDS = GENERATOR.integers(0, TOKENS, (EXAMPLES, LENGTH)).astype(np.int32)
# GlobalAveragePooling1D needs an unmasked token
IDS[:, 0] = 3
TARGETS = GENERATOR.normal(size=(EXAMPLES, 2)).astype(np.float32)
WEIGHTS = GENERATOR.uniform(0.5, 2, EXAMPLES).astype(np.float32)
FROZEN = np.isin(np.arange(TOKENS), [0, *TRAINABLE], invert=True)


def split_layer(matrix=MATRIX, **options):
    return SplitEmbedding(SplitTable.from_matrix(matrix, TRAINABLE, padding=0), mask_zero=True, **options)


def averaging(layer):
    ids = keras.Input((None,), dtype="int32")
    mean = keras.layers.GlobalAveragePooling1D()(layer(ids))
    return keras.Model(ids, head()(keras.layers.Dropout(0.5)(mean)))


def recurrent(layer):
    ids = keras.Input((None,), dtype="int32")
    states = keras.layers.GRU(3, kernel_initializer=fixed(2), recurrent_initializer=fixed(3))(layer(ids))
    return keras.Model(ids, head()(states))


def called_twice(layer):
    ids = keras.Input((None,), dtype="int32")
    flat = keras.layers.GlobalAveragePooling1D()
    return keras.Model(ids, head()(flat(layer(ids)) + ops.tanh(flat(layer(ids[:, ::-1])))))


def head():
    return keras.layers.Dense(2, kernel_initializer=fixed(1))


def fixed(seed):
    return keras.initializers.GlorotUniform(seed=seed)


def compiled(model, loss="mse", **options):
    model.compile(LazyAdam(0.01), loss, metrics=["mae"], **options)
    return model


def measure(model, layer, data, seed=0, is_measured=FROZEN):
    found = measure_gradients(model, layer, data, is_measured[: layer.input_dim], seed)
    assert not any(each[~is_measured].any() for each in found)
    return found


def dense_reference(build, ids, targets, weights=None, matrix=MATRIX):
    """Return the counts, squared norms of sums, and sums of squared norms, from a dense row for each occurrence."""
    is_word = ids != 0
    own_ids = np.where(is_word, 1 + np.arange(ids.size).reshape(ids.shape), 0)
    table = np.concatenate([matrix[:1], matrix[ids.ravel()]])
    dense = keras.layers.Embedding(len(table), matrix.shape[1], mask_zero=True)
    model = build(dense)
    dense.set_weights([table])
    model.compile("sgd", "mse")
    with tf.GradientTape() as tape:
        predicted = model(own_ids, training=False)
        # the sum over the examples
        loss = len(ids) * model.compute_loss(y=targets, y_pred=predicted, sample_weight=weights)
    gradients = tf.convert_to_tensor(tape.gradient(loss, dense.embeddings.value)).numpy()[1:]
    tokens = ids.ravel()
    total = np.zeros((len(matrix), matrix.shape[1]))
    np.add.at(total, tokens, gradients)
    squares = np.bincount(tokens, (gradients**2).sum(1), len(matrix))
    return np.bincount(tokens, minlength=len(matrix)), (total**2).sum(1), squares


def assert_equal(found, expected, calls=1):
    count, summed, squares = (np.where(FROZEN, each, 0) for each in expected)
    np.testing.assert_array_equal(found.counts, calls * count)
    # float32 gradients, added in another order
    np.testing.assert_allclose(found.summed, summed, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(found.squares, squares, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("build", [averaging, recurrent])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
def test_gradients_of_a_model_are_those_of_a_dense_embedding(build, weights):
    layer = split_layer(trainable_dropout=0.5)
    model = compiled(build(layer))
    data = (IDS, TARGETS) if weights is None else (IDS, TARGETS, weights)
    assert_equal(measure(model, layer, data), dense_reference(build, IDS, TARGETS, weights))


@pytest.mark.parametrize("eager", [False, True], ids=["traced", "eager"])
@pytest.mark.parametrize("batch_size", [3, 10])
def test_batches_of_different_sizes_count_each_example_the_same(batch_size, eager):
    layer = split_layer()
    model = compiled(averaging(layer), run_eagerly=eager)
    data = tf.data.Dataset.from_tensor_slices((IDS, TARGETS)).batch(batch_size)
    assert_equal(measure(model, layer, data), dense_reference(averaging, IDS, TARGETS))


def test_arrays_are_cut_into_batches():
    ids, targets = np.tile(IDS, (20, 1)), np.tile(TARGETS, (20, 1))
    assert len(ids) > BATCH_SIZE
    layer = split_layer()
    assert_equal(measure(compiled(averaging(layer)), layer, (ids, targets)), dense_reference(averaging, ids, targets))


def test_all_calls_of_a_layer_add_up():
    layer = split_layer()
    found = measure(compiled(called_twice(layer)), layer, (IDS, TARGETS))
    twice = np.concatenate([IDS, IDS[:, ::-1]], axis=1)

    def build(dense):
        ids = keras.Input((2 * LENGTH,), dtype="int32")
        flat = keras.layers.GlobalAveragePooling1D()
        return keras.Model(ids, head()(flat(dense(ids[:, :LENGTH])) + ops.tanh(flat(dense(ids[:, LENGTH:])))))

    assert_equal(found, dense_reference(build, twice, TARGETS))


@pytest.mark.parametrize(
    ("combiner", "form", "weighted"),
    [
        ("sum", "dynamic", False),
        ("mean", "dynamic", True),
        ("sqrtn", "dynamic", True),
        ("mean", "static", False),
        ("mean", "ragged", False),
        ("sum", "ragged", True),
    ],
)
def test_bags_have_the_gradients_of_their_ids(combiner, form, weighted):
    factors = GENERATOR.uniform(0.5, 2, IDS.shape).astype(np.float32) if weighted else np.ones(IDS.shape, np.float32)
    used = factors * (IDS != 0)
    divisor = {"sum": 1.0, "mean": used.sum(1), "sqrtn": np.sqrt((used**2).sum(1))}[combiner]
    shares = (used / np.broadcast_to(divisor, len(IDS))[:, None])[..., None]

    def build(dense):
        ids = keras.Input((LENGTH,), dtype="int32")
        return keras.Model(ids, head()(ops.tanh(ops.sum(dense(ids) * shares, axis=1))))

    layer = split_layer(combiner=combiner, lookup="static" if form == "static" else "auto")
    ragged = form == "ragged"
    if ragged and "ragged" not in inspect.signature(keras.Input).parameters:
        pytest.skip("this Keras has no ragged inputs")
    options = {"ragged": True} if ragged else {}
    inputs = [keras.Input((None,), dtype=dtype, **options) for dtype in ("int32", "float32")]
    rows = layer(*inputs) if weighted else layer(inputs[0])
    model = compiled(keras.Model(inputs, head()(ops.tanh(rows))))
    x = (IDS, factors)
    if ragged:
        x = tuple(tf.RaggedTensor.from_tensor(each) for each in x)
    data = tf.data.Dataset.from_tensors((x, TARGETS))
    assert_equal(measure(model, layer, data), dense_reference(build, IDS, TARGETS))


def test_mixed_precision_agrees_with_float32():
    layer = split_layer(dtype="mixed_float16")
    ids = keras.Input((None,), dtype="int32")
    mean = keras.layers.GlobalAveragePooling1D(dtype="mixed_float16")(layer(ids))
    model = keras.Model(ids, keras.layers.Dense(2, kernel_initializer=fixed(1), dtype="mixed_float16")(mean))
    model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam()), "mse")
    # without the loss scale, these gradients would be zero in float16
    weights = np.full(EXAMPLES, 1e-6, np.float32)
    model.optimizer.build(model.trainable_variables)
    found = measure(model, layer, (IDS, TARGETS, weights))
    _, summed, squares = dense_reference(averaging, IDS, TARGETS, weights)
    # float16 has 11 bits
    np.testing.assert_allclose(found.summed, np.where(FROZEN, summed, 0), rtol=0.02)
    np.testing.assert_allclose(found.squares, np.where(FROZEN, squares, 0), rtol=0.02)


@pytest.mark.parametrize("tied", [True, False])
def test_tied_logits_add_to_the_gradient_of_each_row(tied):
    split = SplitTable.from_matrix(MATRIX, TRAINABLE, padding=0)
    options = {} if tied else {"tie_weights": False, "reverse_split": split}
    layer = SplitReversibleEmbedding(split, logit_soft_cap=5.0, **options)
    ids = keras.Input((None,), dtype="int32")
    model = compiled(keras.Model(ids, layer(ops.tanh(layer(ids)), reverse=True)), loss="mse")
    targets = np.random.default_rng(1).normal(size=(EXAMPLES, LENGTH, TOKENS)).astype(np.float32)
    found = measure(model, layer, (IDS, targets))
    table, logits_table = (tf.convert_to_tensor(MATRIX) for _ in range(2))
    with tf.GradientTape() as tape:
        rows = tf.gather(table, IDS)
        tape.watch([rows, logits_table])
        states = tf.tanh(rows)
        # the rows of each state are one occurrence
        copies = tf.tile(logits_table[None], [EXAMPLES * LENGTH, 1, 1])
        tape.watch(copies)
        logits = tf.einsum("nd,nvd->nv", tf.reshape(states, [-1, DIM]), copies)
        loss = EXAMPLES * tf.reduce_mean((5 * tf.tanh(tf.reshape(logits, targets.shape) / 5) - targets) ** 2)
    of_rows, of_copies = (each.numpy() for each in tape.gradient(loss, [rows, copies]))
    of_rows = of_rows.reshape(-1, DIM)
    total = np.zeros((TOKENS, DIM))
    np.add.at(total, IDS.ravel(), of_rows)
    squares = np.bincount(IDS.ravel(), (of_rows**2).sum(1), TOKENS)
    if tied:
        total, squares = total + of_copies.sum(0), squares + (of_copies**2).sum((0, 2))
    assert_equal(found, (np.bincount(IDS.ravel(), minlength=TOKENS), (total**2).sum(1), squares))


def test_the_norms_of_wide_gradients_are_close():
    dim = 8 * WIDTH
    matrix = np.random.default_rng(2).normal(size=(TOKENS, dim)).astype(np.float32)
    matrix[0] = 0
    layer = split_layer(matrix)
    model = compiled(averaging(layer))
    _, summed, _ = dense_reference(averaging, IDS, TARGETS, matrix=matrix)
    errors = [
        np.log(each.summed[FROZEN] / summed[FROZEN])
        for each in (measure(model, layer, (IDS, TARGETS), seed) for seed in range(8))
    ]
    # one norm is within sqrt(2 / 32 * 7 / 8) = 23 % of the norm squared; the mean of 8 independent ones within a third
    assert np.std(errors) < 0.35 and abs(np.mean(errors)) < 0.2
    ratios = measure(model, layer, (IDS, TARGETS))
    assert np.all(ratios.summed[ratios.counts == 1] == pytest.approx(ratios.squares[ratios.counts == 1], rel=1e-4))


def test_memory_does_not_depend_on_the_dim():
    num_tokens, dim = 100_000, 8 * WIDTH
    frozen = np.zeros((1, dim), np.float32)
    layer = SplitEmbedding(SplitTable(frozen, np.zeros(num_tokens, np.int32), np.zeros((0, dim), np.float32)))
    model = compiled(averaging(layer))
    tracemalloc.start()
    try:
        measure_gradients(model, layer, (IDS, TARGETS), np.ones(num_tokens, bool), 0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # the sums in float32, and a quarter for the rest
    assert peak < 1.25 * 4 * num_tokens * WIDTH


class Counting(keras.layers.Layer):
    """A layer with a state that every call changes."""

    def build(self, shape):
        self.calls = self.add_weight(shape=(), trainable=False, initializer="zeros")

    def call(self, inputs):
        self.calls.assign_add(1.0)
        return inputs


@pytest.mark.parametrize("fitted", [True, False])
def test_the_model_stays_as_it_is(fitted):
    layer = split_layer(trainable_dropout=0.5)
    ids = keras.Input((None,), dtype="int32")
    mean = Counting()(keras.layers.BatchNormalization()(keras.layers.GlobalAveragePooling1D()(layer(ids))))
    model = keras.Model(ids, [head()(mean), head()(mean)])
    model.compile(LazyAdam(0.01), ["mse", "mae"], metrics=[["mae"], []])
    targets = [TARGETS, TARGETS]
    if fitted:
        model.fit(IDS, targets, verbose=0)
        model.predict(IDS, verbose=0)
    functions = model.train_function, model.predict_function
    before = [each.numpy() for each in (*model.variables, *model.optimizer.variables)]
    flags = [each.trainable for each in model.variables]
    metrics = model.get_metrics_result() if fitted else None
    measure(model, layer, (IDS, targets))
    for value, after in zip(before, (*model.variables, *model.optimizer.variables), strict=True):
        np.testing.assert_array_equal(value, after.numpy())
    assert flags == [each.trainable for each in model.variables]
    assert functions == (model.train_function, model.predict_function)
    if fitted:
        assert metrics == model.get_metrics_result()
    else:
        assert all(not np.any(value.numpy()) for each in model.metrics for value in each.variables)


def test_calls_where_no_gradient_can_be_taken_are_refused():
    layer = split_layer()
    layer.build()
    model = compiled(keras.Sequential([keras.Input((LENGTH,)), head()]))
    with pytest.raises(SplitError, match="does not call the layer 'split_embedding"):
        measure_gradients(model, layer, (IDS.astype(np.float32), TARGETS), FROZEN, 0)

    class Compiled(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = split_layer()
            self.run = tf.function(self.inner)

        def call(self, ids):
            return self.run(ids)

    for eager in (False, True):
        outer = Compiled()
        model = compiled(averaging(outer), run_eagerly=eager)
        with pytest.raises(SplitError, match="or calls it in a loop or in a function that it compiles"):
            measure_gradients(model, outer.inner, (IDS, TARGETS), FROZEN, 0)


def test_gradients_that_are_not_finite_are_refused():
    layer, targets = split_layer(), TARGETS.copy()
    targets[7] = np.nan
    data = tf.data.Dataset.from_tensor_slices((IDS, targets)).batch(4)
    with pytest.raises(SplitError, match="gradient of batch 2 has NaN or infinite numbers. Check the loss"):
        measure_gradients(compiled(averaging(layer)), layer, data, FROZEN, 0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (IDS, "Received: ndarray with lengths"),
        ([IDS, TARGETS], "Received: list"),
        ((IDS, TARGETS[:3]), r"tuple with lengths 10, 3"),
        ((IDS.tolist(), TARGETS), "`data` must be a tf.data.Dataset"),
        (tf.data.Dataset.from_tensors((IDS, TARGETS)).repeat(), "`data` is an infinite dataset"),
    ],
)
def test_invalid_data_is_refused(data, message):
    layer = split_layer()
    with pytest.raises(SplitError, match=message):
        measure_gradients(compiled(averaging(layer)), layer, data, FROZEN, 0)
