"""keep_gradient_where on every backend, against finite differences and the bits of the target."""

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays, mutually_broadcastable_shapes
from keras import ops

from splitembed.errors import SplitError
from splitembed.gradients.mask import KeepGradientWhere, check_broadcast, keep_gradient_where
from tests.helpers.differentiate import BACKEND, differences, gradients, numpy
from tests.helpers.fresh import run_fresh

pytestmark = pytest.mark.every_backend

ODD = np.array([[1.0, -0.0, np.inf], [np.nan, 1e-42, -np.inf]], np.float32)
X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]], np.float32)
MASKS = {
    "bool": np.array([[True, False, True], [False, True, False]]),
    "integers": np.array([[1], [0]]),
    "bytes": np.array([[1], [0]], np.uint8),
    "fractions": np.array([0.25, 0.0, 1.0], np.float32),
    "float64": np.array([[0.5, 1.0, 0.0]]),
    "a list": [[True], [False]],
    "a scalar": 0.5,
    "reversing": np.array([[-1.0], [2.0]], np.float32),
}


def cube(x):
    return ops.sum(x * x * x)


# each mask, and each dtype of the target with one of them
@pytest.mark.parametrize(
    ("mask", "dtype"),
    [*((mask, "float32") for mask in MASKS), *(("bool", dtype) for dtype in ("float16", "bfloat16", "float64"))],
)
def test_forward_is_the_target_to_the_bit(mask, dtype):
    if BACKEND == "jax" and dtype == "float64":
        pytest.skip("JAX has no float64 by default")
    target = ops.cast(ODD, dtype)
    kept = keep_gradient_where(target, MASKS[mask])
    assert kept.dtype == target.dtype and tuple(kept.shape) == ODD.shape
    wide = "float64" if dtype == "float64" else "float32"
    assert numpy(ops.cast(kept, wide)).tobytes() == numpy(ops.cast(target, wide)).tobytes()


@pytest.mark.parametrize(
    ("mask", "compiled"),
    [*((mask, False) for mask in MASKS.values()), (MASKS["fractions"], True)],
    ids=[*MASKS, "fractions, compiled"],
)
def test_the_gradient_is_the_ungated_one_times_the_mask(mask, compiled):
    (found,) = gradients(lambda x: cube(keep_gradient_where(x, mask)), X, compiled=compiled)
    expected = differences(lambda x: (x**3).sum(), X) * np.asarray(mask, np.float64)
    # the tolerance of the finite differences
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@given(mutually_broadcastable_shapes(num_shapes=1, base_shape=(2, 3, 2), min_dims=0, max_dims=3), st.data())
def test_every_mask_that_broadcasts_scales_the_gradient(shapes, data):
    (shape,) = shapes.input_shapes
    if shapes.result_shape != (2, 3, 2):
        return
    mask = data.draw(arrays(np.float32, shape, elements=st.sampled_from([0.0, 0.5, 1.0, -1.0])))
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    (found,) = gradients(lambda x: ops.sum(keep_gradient_where(x, mask) * x), x)
    np.testing.assert_array_equal(found, x * mask + x)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("above", [np.inf, np.nan])
def test_infinite_gradients_are_zero_where_the_mask_is_zero(above, compiled):
    upstream = ops.convert_to_tensor(np.full_like(X, above))
    (found,) = gradients(lambda x: ops.sum(keep_gradient_where(x, [[0], [1]]) * upstream), X, compiled=compiled)
    np.testing.assert_array_equal(found, [[0.0] * 3, [above] * 3])


def test_no_gradient_reaches_the_mask():
    mask = np.array([[1.0], [0.5]], np.float32)
    found = gradients(lambda x, mask: cube(keep_gradient_where(x, mask)) + ops.sum(mask), X, mask)
    np.testing.assert_array_equal(found[1], np.ones_like(mask))


def test_the_second_derivative_is_masked_twice():
    mask = np.array([[1.0], [0.5]], np.float32)
    second = {"tensorflow": _second_tensorflow, "jax": _second_jax, "torch": _second_torch}[BACKEND]
    np.testing.assert_allclose(numpy(second(lambda x: cube(keep_gradient_where(x, mask)))), 6 * X * mask**2, rtol=1e-6)


def _second_tensorflow(function):
    import tensorflow as tf

    x = tf.constant(X)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            value = function(x)
        first = inner.gradient(value, x)
    return outer.gradient(first, x)


def _second_jax(function):
    import jax

    return jax.grad(lambda x: ops.sum(jax.grad(function)(x)))(X)


def _second_torch(function):
    import torch

    x = torch.tensor(X, requires_grad=True)
    (first,) = torch.autograd.grad(function(x), [x], create_graph=True)
    return torch.autograd.grad(first.sum(), [x])[0]


def test_low_precision_keeps_its_dtype():
    target = ops.cast(X, "bfloat16")
    mask = np.array([[True], [False]])

    def loss(x):
        return ops.cast(ops.sum(keep_gradient_where(ops.cast(x, "bfloat16"), mask) * target), "float32")

    (found,) = gradients(loss, X)
    np.testing.assert_array_equal(found, X * mask)


@pytest.mark.parametrize("shape", [(4, 1), (2, 2), (1, 2, 3), (3, 2)])
def test_a_mask_that_enlarges_the_target_is_refused(shape):
    with pytest.raises(SplitError, match=r"A mask of shape .* does not broadcast to a target of shape \(2, 3\)") as e:
        keep_gradient_where(X, np.ones(shape))
    assert str(shape) in str(e.value)


def test_unknown_axes_fit_any_length():
    check_broadcast((None, 1), (None, 3))
    check_broadcast((5, 1), (None, 3))
    with pytest.raises(SplitError, match=r"\(None, 2\) does not broadcast to a target of shape \(None, 3\)"):
        check_broadcast((None, 2), (None, 3))


@pytest.mark.parametrize("target", [[1, 2], np.array([True, False])])
def test_a_target_without_a_gradient_is_refused(target):
    with pytest.raises(SplitError, match="`target` must be floats. Received: dtype"):
        keep_gradient_where(target, 1)


@pytest.mark.skipif(BACKEND != "jax", reason="tapes and PyTorch's graphs run backward")
def test_forward_derivatives_and_batches_on_jax():
    import jax

    mask = np.array([[1.0], [0.5]], np.float32)
    value, tangent = jax.jvp(lambda x: keep_gradient_where(x, mask), [X], [np.ones_like(X)])
    np.testing.assert_array_equal(value, X)
    np.testing.assert_array_equal(tangent, np.ones_like(X) * mask)
    rows = jax.vmap(jax.grad(lambda x, mask: cube(keep_gradient_where(x, mask))))(X, mask)
    np.testing.assert_allclose(rows, 3 * X**2 * mask, rtol=1e-6)


# Functional models


def gated_model():
    x, mask = keras.Input((3,), name="x"), keras.Input((1,), name="mask")
    hidden = keras.layers.Dense(2, use_bias=False, kernel_initializer="ones", name="hidden")(x)
    total = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", name="head")
    return keras.Model([x, mask], total(keep_gradient_where(keep_gradient_where(hidden, mask), np.array([1.0, 0.0]))))


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.skipif(BACKEND == "torch", reason="no"))])
def test_functional_model_trains_the_rows_without_gate(jit):
    model, mask = gated_model(), np.array([[1.0], [0.0]], np.float32)
    model.compile(keras.optimizers.SGD(0.5), "mse", jit_compile=jit)
    model.fit([X, mask], np.zeros((2, 1)), verbose=0)
    # the outputs before training: both units return the sum
    outputs = 2 * X.sum(1)
    by_kernel = (2 * outputs / 2 * mask[:, 0]) @ X
    moved = numpy(model.get_layer("hidden").kernel)
    np.testing.assert_allclose(moved, np.stack([1 - 0.5 * by_kernel, np.ones(3)], 1), rtol=1e-5)


def test_a_functional_model_is_saved_with_its_gates(tmp_path):
    model, mask = gated_model(), np.ones((2, 1), np.float32)
    model.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    assert sum(isinstance(each, KeepGradientWhere) for each in again.operations) == 2
    np.testing.assert_array_equal(again.predict([X, mask], verbose=0), model.predict([X, mask], verbose=0))


@pytest.mark.slow
def test_a_saved_model_with_gates_loads_in_a_fresh_process(tmp_path):
    gated_model().save(tmp_path / "m.keras")
    run_fresh("import sys, splitembed, keras; keras.models.load_model(sys.argv[1])", tmp_path / "m.keras")


def test_functional_model_refuses_an_invalid_mask():
    with pytest.raises(SplitError, match=r"\(None, 2\) does not broadcast to a target of shape \(None, 3\)"):
        keep_gradient_where(keras.Input((3,)), keras.Input((2,)))
    with pytest.raises(SplitError, match="must be floats. Received: dtype int32"):
        keep_gradient_where(keras.Input((3,), dtype="int32"), keras.Input((1,)))


# TensorFlow

on_tensorflow = pytest.mark.skipif(BACKEND != "tensorflow", reason="tapes and row slices are TensorFlow's")


@on_tensorflow
@pytest.mark.parametrize(
    ("mask", "compiled"),
    [*((mask, False) for mask in ([[1], [0], [0.5], [1]], [1, 0], [[1, 0]], 0.5)), ([[1], [0], [0.5], [1]], True)],
)
def test_row_slices_stay_slices_and_equal_the_dense_gradient(mask, compiled):
    import tensorflow as tf

    table, ids = tf.Variable(np.arange(8, dtype=np.float32).reshape(4, 2)), tf.constant([1, 2, 2, 0])

    def run():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(keep_gradient_where(table, mask), ids) ** 2)
        slices = tape.gradient(loss, table)
        assert isinstance(slices, tf.IndexedSlices)
        return tf.convert_to_tensor(slices)

    found = tf.function(run, jit_compile=True)() if compiled else run()
    counts = np.array([[1], [1], [2], [0]])
    np.testing.assert_allclose(found, 2 * table.numpy() * counts * np.asarray(mask, np.float32))


@on_tensorflow
@pytest.mark.parametrize("shape", [(None, 3), (None, None)])
def test_shapes_known_at_run_time(shape):
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec(shape), tf.TensorSpec((None, 1))])
    def run(x, mask):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = cube(keep_gradient_where(x, mask))
        return tape.gradient(loss, x)

    mask = np.array([[1], [0]], np.float32)
    np.testing.assert_allclose(run(X, mask), 3 * X**2 * mask)
    np.testing.assert_allclose(run(X, mask[:1]), 3 * X**2)
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(X[:1], mask)


@on_tensorflow
def test_table_size_known_at_run_time():
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec((None, 2)), tf.TensorSpec((None, 1))])
    def run(table, mask):
        with tf.GradientTape() as tape:
            tape.watch(table)
            loss = tf.reduce_sum(tf.gather(keep_gradient_where(table, mask), [3, 1, 3]))
        return tf.convert_to_tensor(tape.gradient(loss, table))

    mask = np.array([[1], [0], [1], [0.5]], np.float32)
    np.testing.assert_array_equal(run(np.ones((4, 2)), mask), [[0, 0], [0, 0], [0, 0], [1, 1]])
    np.testing.assert_array_equal(run(np.ones((4, 2)), mask[:1]), [[0, 0], [1, 1], [0, 0], [2, 2]])


@on_tensorflow
def test_a_persistent_tape_and_a_variable():
    import tensorflow as tf

    x = keras.Variable(X)
    with tf.GradientTape(persistent=True) as tape:
        kept = keep_gradient_where(x, [[1], [0]])
        first, second = tf.reduce_sum(kept), cube(kept)
    np.testing.assert_array_equal(tape.gradient(first, x.value), [[1] * 3, [0] * 3])
    np.testing.assert_allclose(tape.gradient(second, x.value), 3 * X**2 * [[1], [0]])


@on_tensorflow
def test_forward_pass_copies_nothing():
    import tensorflow as tf

    x = tf.ones((1000, 10))
    kept = keep_gradient_where(x, tf.ones((1000, 1)))
    address = [np.asarray(memoryview(each)).__array_interface__["data"][0] for each in (x, kept)]
    assert address[0] == address[1]
