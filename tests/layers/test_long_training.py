"""Thousands of steps on batches of every shape: correct rows in constant memory."""

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.accuracy.memory import anonymous_bytes
from splitembed import LazyAdam, SplitEmbedding, SplitTable
from tests.helpers.fresh import run_fresh

NUM_TOKENS, DIM = 1_000, 16
TRAINABLE_IDS = np.arange(0, NUM_TOKENS, 20)
FROZEN_IDS = np.setdiff1d(np.arange(NUM_TOKENS), TRAINABLE_IDS)
LEARNING_RATE, BETA_1, BETA_2, EPSILON = 0.01, 0.9, 0.999, 1e-7
WARM_UP, STEPS = 1_000, 5_000
# bytes; a leak of 1 kB a step would be twice as much
BOUND = 2 << 20


def split_of_a_thousand() -> SplitTable:
    matrix = np.random.default_rng(0).normal(size=(NUM_TOKENS, DIM)).astype(np.float32)
    return SplitTable.from_matrix(matrix, TRAINABLE_IDS)


def make_batches() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1)
    return {
        "mixed": generator.integers(0, NUM_TOKENS, (8, 16)),
        "one trainable token": TRAINABLE_IDS[7:8, None],
        "one frozen token": FROZEN_IDS[7:8, None],
        "no text": np.zeros((0, 16), np.int64),
        "texts without tokens": np.zeros((8, 0), np.int64),
        "trainable tokens with repeats": generator.choice(TRAINABLE_IDS[:9], (8, 16)),
        "frozen tokens": generator.choice(FROZEN_IDS, (8, 16)),
        "another number of texts": generator.integers(0, NUM_TOKENS, (5, 16)),
    }


def make_step(layer: SplitEmbedding, optimizer: LazyAdam):
    """Make a compiled step, in which the gradient of a row is `2 * row` for each occurrence."""

    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int64)])
    def step(ids):
        with tf.GradientTape() as tape:
            loss = optimizer.scale_loss(tf.reduce_sum(layer(ids) ** 2))
        optimizer.apply(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)
        return loss

    return step


def make_training():
    layer = SplitEmbedding(split_of_a_thousand())
    layer.build()
    optimizer = LazyAdam(LEARNING_RATE)
    optimizer.build(layer.trainable_variables)
    return layer, make_step(layer, optimizer)


class Reference:
    """LazyAdam on the trainable rows, in float64."""

    def __init__(self, split: SplitTable) -> None:
        self.split, self.steps = split, 0
        self.rows = split.trainable.astype(np.float64)
        self.first, self.second = np.zeros_like(self.rows), np.zeros_like(self.rows)

    def step(self, ids: np.ndarray) -> float:
        self.steps += 1
        remapped = self.split.remap[ids.ravel()]
        looked_up = np.where(
            remapped[:, None] >= 0, self.split.frozen[np.maximum(remapped, 0)], self.rows[np.maximum(~remapped, 0)]
        )
        touched, counts = np.unique(~remapped[remapped < 0], return_counts=True)
        gradient = 2 * self.rows[touched] * counts[:, None]
        self.first[touched] = BETA_1 * self.first[touched] + (1 - BETA_1) * gradient
        self.second[touched] = BETA_2 * self.second[touched] + (1 - BETA_2) * gradient**2
        rate = LEARNING_RATE * np.sqrt(1 - BETA_2**self.steps) / (1 - BETA_1**self.steps)
        self.rows[touched] -= rate * self.first[touched] / (np.sqrt(self.second[touched]) + EPSILON)
        return float(np.square(looked_up).sum())


def test_training_on_batches_of_every_shape_equals_the_reference():
    layer, step = make_training()
    reference = Reference(split_of_a_thousand())
    for _ in range(3):
        for name, ids in make_batches().items():
            loss = step(tf.constant(ids)).numpy()
            # float32: sums of 2,048 squares; rows of size 1, moved by 0.01 a step
            assert loss == pytest.approx(reference.step(ids), rel=1e-5), name
            np.testing.assert_allclose(layer.trainable_rows.numpy(), reference.rows, atol=1e-5, err_msg=name)
    np.testing.assert_array_equal(layer(FROZEN_IDS), split_of_a_thousand().lookup(FROZEN_IDS))


def growth(leak: bool = False) -> int:
    """Return the bytes of anonymous memory that the steps after the warm-up add; a leak is 1 kB a step."""
    _, step = make_training()
    batches = [tf.constant(ids) for ids in make_batches().values()]
    kept, after_warm_up = [], 0
    for number in range(STEPS):
        if number == WARM_UP:
            after_warm_up = anonymous_bytes()
        step(batches[number % len(batches)])
        if leak:
            kept.append(tf.fill([256], float(number)))
    return anonymous_bytes() - after_warm_up


@pytest.mark.slow
@pytest.mark.skipif(anonymous_bytes() is None, reason="the system does not report anonymous memory")
def test_memory_does_not_grow_over_thousands_of_steps():
    """Measure in a fresh process, where nothing else allocates or frees memory, and prove that a leak is found."""
    code = "from tests.layers.test_long_training import growth\nprint(growth(), growth(leak=True))"
    flat, leaking = map(int, run_fresh(code).split()[-2:])
    assert flat < BOUND < leaking
