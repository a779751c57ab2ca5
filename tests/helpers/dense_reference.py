"""Training steps of a SplitEmbedding on batches that repeat ids, and their reference: a dense variable of its rows."""

from functools import partial

import keras
import numpy as np
import tensorflow as tf

from splitembed import SplitEmbedding, SplitTable
from tests.helpers.devices import two_replicas

# the sizes of `split_of_twelve`
NUM_TOKENS, DIM, STEPS = 12, 4, 10
TRAINABLE_IDS = [1, 4, 5, 9]
# float32: sums in another order, over ten steps at learning rate 0.1
TOLERANCE = 1e-5


def make_batches() -> list[np.ndarray]:
    """Ten batches of (8, 6) ids, so every batch repeats ids; half of them are without the last trainable token."""
    generator = np.random.default_rng(1)
    ids = [generator.integers(0, NUM_TOKENS, (8, 6)) for _ in range(STEPS)]
    for batch in ids[::2]:
        batch[batch == TRAINABLE_IDS[-1]] = 0
    return ids


def loss_of(rows: tf.Tensor, calls: int, look_up) -> tf.Tensor:
    """A loss with curvature, so that a wrong step shows in the next gradient; `calls` uses of one table."""
    total = tf.reduce_sum(tf.tanh(look_up(rows)) ** 2)
    for call in range(1, calls):
        total += tf.reduce_sum(tf.sin(look_up(rows[:, ::-1]) * (call + 1.0)))
    # a steeper loss makes ten steps of momentum chaotic: rounding alone then exceeds TOLERANCE
    return total / 16.0


class Dense:
    """The reference: the same rows as one dense variable, read by a matrix product, whose gradient is summed."""

    def __init__(self, split: SplitTable) -> None:
        self.variable = keras.Variable(split.trainable, name="rows")
        is_frozen = split.remap >= 0
        self.frozen = tf.constant(np.where(is_frozen[:, None], split.combine(), 0).astype(np.float32))
        self.position = tf.constant(np.where(is_frozen, -1, ~split.remap))

    def __call__(self, ids: tf.Tensor) -> tf.Tensor:
        chosen = tf.one_hot(tf.gather(self.position, ids), self.variable.shape[0])
        return tf.gather(self.frozen, ids) + chosen @ self.variable.value

    def penalty(self) -> tf.Tensor:
        return 0.1 * tf.reduce_sum(self.variable.value**2)


def train_one(look_up, variables, optimizer, batches, calls, penalty=None) -> None:
    """`penalty`, if any, is added to the loss: its gradient is dense, and so would be the sum of both."""

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            loss = loss_of(ids, calls, look_up)
            if penalty is not None:
                loss += penalty()
        optimizer.apply(tape.gradient(loss, variables), variables)

    for ids in batches:
        step(tf.constant(ids))
    if optimizer.use_ema:
        optimizer.finalize_variable_values(variables)


def train_replicas(split, make_optimizer, batches, calls, **options):
    """One model on two devices, each with half of every batch; the optimizer sums the replicas' gradients."""
    strategy = two_replicas()
    with strategy.scope():
        layer, optimizer = SplitEmbedding(split, **options), make_optimizer()
        layer.build()
        optimizer.build(layer.trainable_variables)

    @tf.function
    def step(ids):
        def replica(ids):
            with tf.GradientTape() as tape:
                loss = loss_of(ids, calls, layer)
                loss = getattr(optimizer, "scale_loss", lambda value: value)(loss)
            optimizer.apply(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)

        strategy.run(replica, (ids,))

    for ids in batches:
        step(strategy.experimental_distribute_values_from_function(partial(halves, ids)))
    if optimizer.use_ema:
        optimizer.finalize_variable_values(layer.trainable_variables)
    replicas = strategy.experimental_local_results(layer.trainable_rows.value)
    np.testing.assert_array_equal(replicas[0].numpy(), replicas[1].numpy())
    return layer


def halves(ids: np.ndarray, context) -> tf.Tensor:
    return tf.constant(np.split(ids, context.num_replicas_in_sync)[context.replica_id_in_sync_group])


def assert_frozen(layer: SplitEmbedding, split: SplitTable, before: bytes) -> None:
    assert layer.to_split().frozen.tobytes() == before
    frozen_ids = np.flatnonzero(split.remap >= 0)
    np.testing.assert_array_equal(layer(frozen_ids).numpy(), split.lookup(frozen_ids))
