"""Bags compared with weighted sums in NumPy, and their gradients with those of the same sums in TensorFlow."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from splitembed import LazyAdam, SplitEmbedding, SplitTable
from splitembed.errors import SplitError

MATRIX = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)
MATRIX[0] = 0
IDS = np.array([[1, 2, 0, 0], [3, 3, 8, 1], [0, 0, 0, 0], [5, 0, 4, 5]])
WEIGHTS = np.array([[0.5, 2, 1, 1], [1, -0.5, 3, 0], [1, 1, 1, 1], [0, 0, 0.25, 1]], np.float32)
COMBINERS = ["mean", "sum", "sqrtn"]
TRAINABLE = {"some": [2, 3, 5], "none": [], "all but padding": range(1, 9)}


def split_of(trainable="some", **options) -> SplitTable:
    return SplitTable.from_matrix(MATRIX, TRAINABLE[trainable], padding=0, **options)


def expected(split, ids, weights, combiner, mask_zero) -> np.ndarray:
    """Return the bags, each computed in float64."""
    result = []
    for bag, factors in zip(ids, np.ones(np.shape(ids)) if weights is None else weights, strict=True):
        factors = np.where((np.asarray(bag) == 0) & mask_zero, 0, factors).astype(np.float64)
        divisor = {"sum": 1.0, "mean": factors.sum(), "sqrtn": np.sqrt((factors**2).sum())}[combiner]
        total = factors @ split.lookup(np.asarray(bag, np.int64)).astype(np.float64)
        result.append(total / divisor if divisor else total * 0)
    return np.array(result)


# every combiner with and without weights and mask, and the two extreme splits
CASES = [*itertools.product(COMBINERS, [None, WEIGHTS], [False, True], ["some"])]
CASES += [("mean", WEIGHTS, True, trainable) for trainable in ("none", "all but padding")]


@pytest.mark.parametrize(("combiner", "weights", "mask_zero", "trainable"), CASES)
def test_equals_numpy(combiner, weights, mask_zero, trainable):
    split = split_of(trainable)
    layer = SplitEmbedding(split, combiner=combiner, mask_zero=mask_zero)
    wanted = expected(split, IDS, weights, combiner, mask_zero)
    arguments = [tf.constant(IDS)] if weights is None else [tf.constant(IDS), tf.constant(weights)]
    np.testing.assert_allclose(layer(*arguments), wanted, rtol=0, atol=1e-5)
    np.testing.assert_allclose(tf.function(layer)(*arguments), wanted, rtol=0, atol=1e-5)


@given(st.lists(st.lists(st.integers(0, 8), max_size=5), min_size=1, max_size=5), st.sampled_from(COMBINERS))
def test_ragged_bags_equal_numpy_bag_by_bag(bags, combiner):
    split = split_of()
    rows = SplitEmbedding(split, combiner=combiner)(tf.ragged.constant(bags, dtype=tf.int32, ragged_rank=1))
    wanted = [expected(split, [bag], None, combiner, False)[0] for bag in bags]
    np.testing.assert_allclose(rows, wanted, rtol=0, atol=1e-5)


def test_ragged_weights():
    split, bags, weights = split_of(), [[1, 2], [], [3]], [[0.5, 2.0], [], [4.0]]
    rows = SplitEmbedding(split, combiner="sum")(tf.ragged.constant(bags), tf.ragged.constant(weights))
    wanted = [0.5 * MATRIX[1] + 2 * MATRIX[2], np.zeros(4), 4 * MATRIX[3]]
    np.testing.assert_allclose(rows, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("combiner", "weighted", "form"),
    [("mean", False, "dense"), ("sum", True, "dense"), ("mean", True, "sparse"), ("sum", False, "sparse")]
    + [("sqrtn", weighted, "sparse") for weighted in (False, True)],
)
def test_gradients_equal_those_of_pooling_after_the_lookup(combiner, weighted, form):
    split, ids = split_of(), tf.constant(IDS)
    weights = tf.Variable(WEIGHTS if weighted else np.ones_like(WEIGHTS))
    bags, plain = SplitEmbedding(split, combiner=combiner, gradient=form), SplitEmbedding(split)
    bags.build()
    plain.build()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sin(bags(ids, weights) if weighted else bags(ids)))
    found = tape.gradient(loss, [bags.trainable_rows.value, *([weights] if weighted else [])])
    with tf.GradientTape() as tape:
        divisor = {
            "sum": tf.ones(4),
            "mean": tf.reduce_sum(weights, 1),
            "sqrtn": tf.sqrt(tf.reduce_sum(weights**2, 1)),
        }[combiner]
        total = tf.reduce_sum(plain(ids) * weights[..., None], 1)
        loss = tf.reduce_sum(tf.sin(tf.math.divide_no_nan(total, divisor[:, None])))
    wanted = tape.gradient(loss, [plain.trainable_rows.value, weights])
    assert isinstance(found[0], tf.IndexedSlices) == (form == "sparse")
    for ours, theirs in zip(found, wanted, strict=False):
        np.testing.assert_allclose(tf.convert_to_tensor(ours), tf.convert_to_tensor(theirs), rtol=0, atol=1e-5)


def test_no_tensor_has_a_row_for_every_position():
    """The graph of a step has no tensor of shape `(batch, length, dim)` or `(batch * length, dim)`."""
    layer = SplitEmbedding(split_of(), combiner="mean")
    layer.build()

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(ids) ** 2)
        return tape.gradient(loss, layer.trainable_variables)

    graph = step.get_concrete_function(tf.TensorSpec((16, 50), tf.int32)).graph
    shapes = [tuple(out.shape) for op in graph.get_operations() for out in op.outputs if out.shape.rank]
    assert (800,) in shapes and (16, 50, 4) not in shapes and (800, 4) not in shapes


@pytest.mark.parametrize("make", [lambda: LazyAdam(0.05), lambda: keras.optimizers.Adam(0.05)])
def test_a_functional_model_trains_saves_and_loads(make, tmp_path):
    ids, weights = keras.Input((None,), dtype="int32"), keras.Input((None,))
    layer = SplitEmbedding(split_of(), combiner="mean", mask_zero=True)
    pooled = layer(ids, weights)
    assert pooled.shape == (None, 4)
    model = keras.Model([ids, weights], keras.layers.Dense(1)(pooled))
    model.compile(optimizer=make(), loss="mse")
    history = model.fit([IDS, np.abs(WEIGHTS)], np.arange(4.0), epochs=5, verbose=0).history["loss"]
    assert history[-1] < history[0]
    np.testing.assert_array_equal(layer.to_split().frozen, split_of().frozen)
    model.save(tmp_path / "bags.keras")
    loaded = keras.models.load_model(tmp_path / "bags.keras")
    np.testing.assert_array_equal(*(m.predict([IDS, WEIGHTS], verbose=0) for m in (loaded, model)))


@pytest.mark.parametrize(
    ("weights", "dtype"), [(None, "float16"), (WEIGHTS, "bfloat16"), (None, "int8"), (WEIGHTS, "int8")]
)
def test_narrow_frozen_rows(weights, dtype):
    split = split_of().with_frozen_dtype(dtype)
    rows = SplitEmbedding(split, combiner="sum")(IDS, weights)
    np.testing.assert_allclose(rows, expected(split, IDS, weights, "sum", False), rtol=0, atol=1e-5)


def test_leading_axes_are_kept():
    layer = SplitEmbedding(split_of(), combiner="sum")
    ids = np.arange(8).reshape(2, 2, 2)
    np.testing.assert_allclose(layer(ids), MATRIX[ids].sum(2), rtol=0, atol=1e-5)
    assert layer(np.zeros((3, 0), int)).shape == (3, 4) and layer(np.zeros((0, 3), int)).shape == (0, 4)
    assert layer(np.array([1, 2])).shape == (4,)


def test_invalid_bags_are_refused():
    bags = SplitEmbedding(split_of(), combiner="sum")
    with pytest.raises(SplitError, match="one axis to combine"):
        bags(np.int32(1))
    with pytest.raises(SplitError, match="`weights` must have the shape of the ids"):
        bags(IDS, np.ones(4))
    with pytest.raises(SplitError, match="`weights` are for a layer with a combiner"):
        SplitEmbedding(split_of())(IDS, WEIGHTS)
    with pytest.raises(SplitError, match="`combiner` must be"):
        SplitEmbedding(split_of(), combiner="max")


@pytest.mark.parametrize("wrap", [lambda layer: layer, tf.function], ids=["eager", "graph"])
def test_weights_of_another_shape_are_refused_when_the_shape_is_known(wrap):
    layer = wrap(SplitEmbedding(split_of(), combiner="sum"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="`weights` must have the shape of the ids"):
        layer(tf.ragged.constant([[1, 2], [3]]), tf.ragged.constant([[1.0], [2.0, 3.0]]))
    unknown = tf.function(layer, input_signature=[tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None, None))])
    with pytest.raises(tf.errors.InvalidArgumentError, match="`weights` must have the shape of the ids"):
        unknown(np.ones((2, 3), np.int32), np.ones((3, 2), np.float32))


def test_weights_of_another_width_are_refused_when_a_model_is_built():
    with pytest.raises(SplitError, match=r"shape of the ids, \(None, 3\). Received: shape \(None, 2\)"):
        SplitEmbedding(split_of(), combiner="sum")(keras.Input((3,), dtype="int32"), keras.Input((2,)))
