"""The operations on TensorFlow that the tests of the layer do not reach: seeds of replicas, memory, missing tables."""

import numpy as np
import pytest
import tensorflow as tf

from splitembed.errors import MissingTableError
from splitembed.lookup.backend_tensorflow import ReplicaSeedGenerator, TensorFlowBackend
from tests.helpers.devices import two_replicas

BACKEND = TensorFlowBackend()


def test_each_replica_and_each_call_has_a_different_seed():
    with two_replicas().scope():
        seeds = ReplicaSeedGenerator(3)
    calls = [two_replicas().experimental_local_results(two_replicas().run(seeds.next)) for _ in range(2)]
    assert len({tuple(seed.numpy()) for call in calls for seed in call}) == 4


def test_stored_rows_do_not_change_with_an_update_of_the_variable():
    class Weight:
        value = tf.Variable(np.ones((16, 4), np.float32))

    rows = BACKEND.stored_rows(Weight)
    Weight.value.assign_add(tf.ones((16, 4)))
    assert (rows == 1).all() and (BACKEND.stored_rows(Weight) == 2).all()


def test_without_tables_a_graph_has_a_shape_and_raises_when_it_runs():
    @tf.function
    def call():
        return BACKEND.without_tables((None, 3), "float16", "no tables here")

    output = call.get_concrete_function().structured_outputs
    assert output.shape.as_list() == [1, 3] and output.dtype == tf.float16
    with pytest.raises(tf.errors.InvalidArgumentError, match="no tables here"):
        call()
    with pytest.raises(MissingTableError, match="no tables here"):
        BACKEND.without_tables((2, 3), "float32", "no tables here")
    with pytest.raises(MissingTableError, match="no tables here"):
        tf.function(lambda: BACKEND.without_tables((2, 3), "float32", "no tables here"), jit_compile=True)()


def test_ragged_ids_are_known():
    assert BACKEND.is_ragged(tf.ragged.constant([[1], []])) and not BACKEND.is_ragged(tf.constant([1]))
