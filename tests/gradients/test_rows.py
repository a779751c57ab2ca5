"""Kept and clipped rows of a gradient against NumPy, dense on every backend and in slices on TensorFlow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from keras import ops

from splitembed.errors import SplitError, TokenIdError
from splitembed.gradients.rows import clip_gradient_rows, keep_gradient_rows
from tests.helpers.differentiate import BACKEND, differences, gradients, numpy

pytestmark = pytest.mark.every_backend

NUM_ROWS, DIM = 5, 2
GRADIENT = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [-6.0, 8.0], [1.0, 0.0]], np.float32)
WEIGHTS = np.arange(8, dtype=np.float32).reshape(4, 2)
IDS = [1, 3, 1, 0]

on_tensorflow = pytest.mark.skipif(BACKEND != "tensorflow", reason="only TensorFlow has row slices")


def clipped_by_numpy(gradient, clipnorm):
    norms = np.linalg.norm(gradient.astype(np.float64), axis=1, keepdims=True)
    return np.where(norms > clipnorm, gradient * (clipnorm / np.where(norms == 0, 1, norms)), gradient)


# Dense, on every backend


@pytest.mark.parametrize(
    "rows", [[0, 3], (3, 0, 0), np.array([0, 3]), [True, False, False, True, False], {0, 3}, range(0, 4, 3)]
)
def test_rows_are_ids_or_a_mask(rows):
    expected = GRADIENT * np.array([[1], [0], [0], [1], [0]])
    np.testing.assert_array_equal(numpy(keep_gradient_rows(GRADIENT, rows)), expected)


def test_rows_may_be_tensors():
    for rows in ([0, 3], [True, False, False, True, False]):
        expected = numpy(keep_gradient_rows(GRADIENT, rows))
        np.testing.assert_array_equal(
            numpy(keep_gradient_rows(ops.convert_to_tensor(GRADIENT), ops.convert_to_tensor(rows))), expected
        )


@pytest.mark.parametrize("rows", [[], range(NUM_ROWS)])
def test_no_row_and_every_row(rows):
    expected = GRADIENT if len(rows) else np.zeros_like(GRADIENT)
    np.testing.assert_array_equal(numpy(keep_gradient_rows(GRADIENT, rows)), expected)


def test_dropped_rows_are_zero_and_kept_rows_unchanged():
    odd = np.array([[np.nan, np.inf], [np.nan, -0.0]], np.float32)
    found = numpy(keep_gradient_rows(odd, [1]))
    assert found.tobytes() == np.array([[0.0, 0.0], [np.nan, -0.0]], np.float32).tobytes()


@pytest.mark.parametrize("shape", [(3,), (3, 2), (3, 2, 2)])
def test_rows_of_any_rank_are_kept(shape):
    found = numpy(keep_gradient_rows(np.ones(shape, np.float32), [1]))
    np.testing.assert_array_equal(found.reshape(3, -1).all(1), [False, True, False])


@pytest.mark.parametrize("clipnorm", [1, 0.5, 5.0, 100.0])
def test_long_rows_are_shortened(clipnorm):
    np.testing.assert_allclose(
        numpy(clip_gradient_rows(GRADIENT, clipnorm)), clipped_by_numpy(GRADIENT, clipnorm), rtol=1e-6
    )


LARGE = 2.0**120


@given(
    arrays(
        np.float32,
        st.tuples(st.integers(1, 4), st.integers(1, 3)),
        elements=st.floats(-LARGE, LARGE, width=32, allow_subnormal=False),
    ),
    st.floats(1e-3, 1e3),
)
def test_no_row_exceeds_the_norm_and_short_rows_keep_their_bits(gradient, clipnorm):
    found = numpy(clip_gradient_rows(gradient, clipnorm))
    before, after = (np.linalg.norm(each.astype(np.float64), axis=1) for each in (gradient, found))
    assert (after <= clipnorm * (1 + 1e-5)).all()
    short = before < clipnorm * (1 - 1e-5)
    np.testing.assert_array_equal(found[short], gradient[short])
    np.testing.assert_allclose(after[~short], clipnorm, rtol=1e-4)


def test_large_and_small_rows_do_not_overflow():
    # the squares of these numbers overflow or underflow
    odd = np.array([[3e38, 3e38], [3e-30, 4e-30], [1e-45, 0.0]], np.float32)
    np.testing.assert_allclose(numpy(clip_gradient_rows(odd, 1.0)), np.array([[0.5**0.5] * 2, *odd[1:]]), rtol=1e-6)


def test_a_gradient_of_no_rows():
    none = np.empty((0, 2), np.float32)
    assert numpy(clip_gradient_rows(none, 1.0)).shape == numpy(keep_gradient_rows(none, [])).shape == (0, 2)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_a_row_that_is_not_finite_is_nan_throughout(value):
    found = numpy(clip_gradient_rows(np.array([[value, 1.0], [3.0, 4.0]], np.float32), 1.0))
    np.testing.assert_allclose(found, [[np.nan, np.nan], [0.6, 0.8]], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes_are_kept(dtype):
    if BACKEND == "jax" and dtype == "float64":
        pytest.skip("JAX has no float64 by default")
    large = ops.cast(np.array([[3e4, 4e4], [0.5, 0.0]], np.float32), dtype)
    clipped, kept = clip_gradient_rows(large, 1.0), keep_gradient_rows(large, [0])
    assert clipped.dtype == kept.dtype == large.dtype
    np.testing.assert_allclose(numpy(ops.cast(clipped, "float32")), [[0.6, 0.8], [0.5, 0]], rtol=1e-2)


@pytest.mark.parametrize("clipnorm", [0, -1.0, np.inf, np.nan, True, "1", None])
def test_invalid_norms_are_refused(clipnorm):
    with pytest.raises(SplitError, match="`clipnorm` must be a positive number"):
        clip_gradient_rows(GRADIENT, clipnorm)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([5], TokenIdError, "5 is out of range"),
        ([-1], TokenIdError, "-1 is out of range"),
        ([True, False], SplitError, "a mask has one value for each of the 5"),
        ([0.5], SplitError, "a boolean mask"),
    ],
)
def test_invalid_rows_are_refused(rows, error, message):
    with pytest.raises(error, match=message):
        keep_gradient_rows(GRADIENT, rows)
    if rows == [True, False]:
        with pytest.raises(SplitError, match=r"must be of shape \(5,\)"):
            keep_gradient_rows(GRADIENT, ops.convert_to_tensor(rows))


def test_gradients_without_rows_are_refused():
    with pytest.raises(SplitError, match="must have a known number of rows"):
        keep_gradient_rows(np.float32(1), [0])
    with pytest.raises(SplitError, match=r"must be `\(num_rows, ...\)` to be clipped by row"):
        clip_gradient_rows(np.ones(3, np.float32), 1.0)


@pytest.mark.parametrize("compiled", [False, True])
def test_against_finite_differences(compiled):
    table = np.linspace(-1, 1, NUM_ROWS * DIM, dtype=np.float32).reshape(NUM_ROWS, DIM)

    def loss(table):
        return ((table[IDS] * WEIGHTS) ** 2).sum()

    expected = differences(loss, table)
    (found,) = gradients(
        lambda table: ops.sum((ops.take(table, np.array(IDS), axis=0) * ops.convert_to_tensor(WEIGHTS)) ** 2),
        table,
        compiled=compiled,
    )
    kept, clipped = numpy(keep_gradient_rows(found, [1, 2])), numpy(clip_gradient_rows(found, 2.0))
    np.testing.assert_allclose(kept, expected * [[0], [1], [1], [0], [0]], rtol=1e-4)
    np.testing.assert_allclose(clipped, clipped_by_numpy(expected, 2.0), rtol=1e-4)


# Slices


def slices_of(values, indices, num_rows=NUM_ROWS):
    import tensorflow as tf

    values = np.asarray(values, np.float32)
    return tf.IndexedSlices(tf.constant(values), tf.constant(indices), tf.constant([num_rows, *values.shape[1:]]))


@on_tensorflow
@given(st.lists(st.integers(0, NUM_ROWS - 1), max_size=8), st.sets(st.integers(0, NUM_ROWS - 1)), st.data())
def test_slices_are_summed_and_equal_the_dense_form(ids, rows, data):
    import tensorflow as tf

    values = data.draw(arrays(np.float32, (len(ids), DIM), elements=st.floats(-8, 8, width=16)))
    slices = slices_of(values, np.array(ids, np.int64))
    dense = np.zeros((NUM_ROWS, DIM), np.float32)
    np.add.at(dense, ids, values)
    for function, argument in ((keep_gradient_rows, list(rows)), (clip_gradient_rows, 3.0)):
        found = function(slices, argument)
        assert isinstance(found, tf.IndexedSlices) and found.indices.dtype == tf.int64
        assert len(set(found.indices.numpy().tolist())) == len(found.indices)
        # equal but for the order of sums
        np.testing.assert_allclose(tf.convert_to_tensor(found), numpy(function(dense, argument)), rtol=1e-5, atol=1e-5)
    assert set(keep_gradient_rows(slices, list(rows)).indices.numpy().tolist()) == rows & set(ids)


@on_tensorflow
@pytest.mark.parametrize("jit", [False, True])
def test_slices_of_a_tape(jit):
    import tensorflow as tf

    table = tf.Variable(np.linspace(-1, 1, NUM_ROWS * DIM, dtype=np.float32).reshape(NUM_ROWS, DIM))
    expected = differences(lambda table: ((table[IDS] * WEIGHTS) ** 2).sum(), table.numpy())

    @tf.function(jit_compile=jit)
    def run():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((tf.gather(table, IDS) * WEIGHTS) ** 2)
        slices = tape.gradient(loss, table)
        found = [keep_gradient_rows(slices, [1, 2]), clip_gradient_rows(slices, 2.0)]
        assert all(isinstance(each, tf.IndexedSlices) for each in found)
        return [tf.convert_to_tensor(each) for each in found], [each.indices for each in found]

    (kept, clipped), indices = run()
    np.testing.assert_allclose(kept, expected * [[0], [1], [1], [0], [0]], rtol=1e-4)
    np.testing.assert_allclose(clipped, clipped_by_numpy(expected, 2.0), rtol=1e-4)
    assert all(len(set(each.numpy().tolist())) == len(each) for each in indices)


@on_tensorflow
def test_both_in_turn_sum_once():
    kept = keep_gradient_rows(slices_of([[3.0, 0], [0, 4], [9, 9]], [1, 1, 0]), [1])
    assert clip_gradient_rows(kept, 1.0).indices is kept.indices
    np.testing.assert_allclose(clip_gradient_rows(kept, 1.0).values, [[0.6, 0.8]], rtol=1e-6)


@on_tensorflow
def test_infinities_that_cancel_in_a_sum_are_nan():
    clipped = clip_gradient_rows(slices_of([[np.inf, 1], [-np.inf, 1]], [2, 2]), 1.0)
    assert np.isnan(clipped.values.numpy()).all() and clipped.indices.numpy().tolist() == [2]


@on_tensorflow
def test_slices_without_dense_shape_are_refused():
    import tensorflow as tf

    slices = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]))
    with pytest.raises(SplitError, match="or slices with `dense_shape`"):
        keep_gradient_rows(slices, [0])
    np.testing.assert_allclose(clip_gradient_rows(slices, 0.5).values, [[0.125**0.5] * 2], rtol=1e-6)


@on_tensorflow
def test_replicas_never_run_out_of_slices():
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    many = type("Many", (), {"num_replicas_in_sync": 2})()
    slices = slices_of([[1.0, 1], [2, 2]], [0, 3])
    of_one_replica = strategy.run(lambda: keep_gradient_rows(slices, [1]).indices)
    assert of_one_replica.numpy().tolist() == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tf.distribute, "get_replica_context", lambda: many)
        kept = keep_gradient_rows(slices, [0])
    assert kept.indices.numpy().tolist() == [0, 3] and kept.values.numpy().tolist() == [[1, 1], [0, 0]]
