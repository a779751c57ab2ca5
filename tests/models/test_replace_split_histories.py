"""Random changes of a table between training steps give the rows of a NumPy reference."""

import keras
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from splitembed import SplitEmbedding, SplitTable, replace_split

DIM, RATE, START, EPSILON = 3, 0.1, 0.1, 1e-7
HEAD = np.array([[0.5], [-1.0], [2.0]], np.float32)
TOKENS = [f"token {number}" for number in range(5)]
FIRST = np.random.default_rng(0).normal(size=(len(TOKENS), DIM))

operations = st.lists(st.sampled_from(["thaw", "freeze", "grow", "shrink", "train"]), min_size=2, max_size=5)


class Reference:
    """The row of each token and its Adagrad accumulator; frozen rows have neither gradient nor accumulator."""

    def __init__(self):
        self.row = dict(zip(TOKENS, FIRST.astype(np.float32).astype(np.float64), strict=True))
        self.sum = {TOKENS[1]: np.full(DIM, START)}

    def train(self, ids, targets):
        tokens = list(self.row)
        rows = np.array([[self.row[tokens[each]] for each in text] for text in ids])
        errors = rows.mean(axis=1) @ HEAD - targets
        gradient = {token: np.zeros(DIM) for token in self.sum}
        for text, error in zip(ids, errors, strict=True):
            for each in text:
                if tokens[each] in gradient:
                    gradient[tokens[each]] += 2 * error[0] / len(ids) * HEAD[:, 0] / len(text)
        for token, change in gradient.items():
            self.sum[token] = self.sum[token] + change**2
            self.row[token] = self.row[token] - RATE * change / np.sqrt(self.sum[token] + EPSILON)


def make_model() -> keras.Model:
    split = SplitTable.from_matrix(FIRST.astype(np.float32), [1], vocabulary=TOKENS)
    ids = keras.Input((None,), dtype="int32")
    head = keras.layers.Dense(1, use_bias=False, trainable=False, kernel_initializer=lambda *_, **__: HEAD)
    model = keras.Model(ids, head(keras.layers.GlobalAveragePooling1D()(SplitEmbedding(split, name="words")(ids))))
    model.compile(keras.optimizers.Adagrad(RATE, START, epsilon=EPSILON), "mse", run_eagerly=True)
    return model


def change(operation: str, split: SplitTable, reference: Reference, generator) -> SplitTable:
    """Apply an operation to both, on random tokens."""
    tokens = list(reference.row)
    chosen = [str(each) for each in generator.choice(tokens, 2, replace=False)]
    if operation == "thaw":
        for token in chosen:
            reference.sum.setdefault(token, np.full(DIM, START))
        return split.thaw(chosen)
    if operation == "freeze":
        for token in chosen:
            reference.sum.pop(token, None)
        return split.freeze(chosen)
    if operation == "grow":
        new, known = f"new {len(tokens)} {generator.integers(10**9)}", f"known {generator.integers(10**9)}"
        grown = split.grow([new, known], {known: [1.0, 2.0, 3.0]}, oov_initializer="zeros")
        reference.row |= {new: np.zeros(DIM), known: np.array([1.0, 2.0, 3.0])}
        reference.sum[new] = np.full(DIM, START)
        return grown
    if len(tokens) < 4:
        return split
    for token in chosen:
        del reference.row[token]
        reference.sum.pop(token, None)
    return split.shrink(chosen)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(operations, st.integers(0, 2**32 - 1))
def test_a_random_history_equals_numpy(history, seed):
    generator = np.random.default_rng(seed)
    model, reference, num_steps = make_model(), Reference(), 0
    for operation in ["train", *history, "train"]:
        if operation != "train":
            layer = model.get_layer("words")
            model = replace_split(model, layer, change(operation, layer.to_split(), reference, generator))
        ids = generator.integers(0, len(reference.row), (4, 6))
        targets = generator.normal(size=(4, 1)).astype(np.float32)
        model.train_on_batch(ids, targets)
        reference.train(ids, targets)
        # Keras takes no step without a trainable variable
        num_steps += bool(reference.sum)
        split = model.get_layer("words").to_split()
        assert list(split.vocabulary) == list(reference.row)
        assert set(split.trainable_ids) == {
            index for index, token in enumerate(reference.row) if token in reference.sum
        }
        np.testing.assert_allclose(split.combine(), list(reference.row.values()), rtol=1e-4, atol=1e-5)
        assert int(model.optimizer.iterations) == num_steps
