"""A small language model, and a reference for it: Keras's dense reversible layer with its frozen rows reset."""

import keras
import numpy as np
from keras import ops

from splitembed import SplitTable

NUM_TOKENS, DIM = 9, 4
TRAINABLE = [1, 4, 7]
# float32: products of four terms, and steps of training in which their order differs
TOLERANCE = 1e-5
# None in the oldest Keras
LAYER = getattr(keras.layers, "ReversibleEmbedding", None)


def rows(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def split_of_nine(seed: int = 0, trainable_ids=TRAINABLE) -> SplitTable:
    """Nine tokens, of which the first is padding and three train."""
    matrix = rows(NUM_TOKENS, DIM, seed=seed)
    matrix[0] = 0
    words = ["", *(f"w{number}" for number in range(1, NUM_TOKENS))]
    return SplitTable.from_matrix(matrix, trainable_ids, vocabulary=words, padding=0)


def make_split_in_order(seed: int = 0) -> SplitTable:
    """Six tokens of a base table, one of them padding and two with trainable rows, and three new tokens."""
    frozen = rows(6, DIM, seed=seed)
    frozen[0] = 0
    trainable = np.concatenate([frozen[[2, 5]], rows(3, DIM, seed=seed + 1)])
    words = ["", *(f"w{number}" for number in range(1, NUM_TOKENS))]
    remap = [0, 1, ~0, 3, 4, ~1, ~4, ~2, ~3]
    return SplitTable.from_arrays(frozen, remap, trainable, vocabulary=words, padding=0)


class Tied(keras.layers.Embedding):
    """Keras's reversible layer with tied weights, for a Keras without it."""

    def __init__(self, *sizes, logit_soft_cap=None, reverse_dtype=None, **options) -> None:
        super().__init__(*sizes, **options)
        self.logit_soft_cap, self.reverse_dtype = logit_soft_cap, reverse_dtype

    def call(self, inputs, reverse=False):
        if not reverse:
            return super().call(inputs)
        kernel = ops.transpose(self.embeddings)
        if self.reverse_dtype is not None:
            inputs, kernel = ops.cast(inputs, self.reverse_dtype), ops.cast(kernel, self.reverse_dtype)
        logits, cap = ops.matmul(inputs, kernel), self.logit_soft_cap
        return logits if cap is None else ops.multiply(ops.tanh(ops.divide(logits, cap)), cap)

    def compute_mask(self, inputs, mask=None):
        return None

    def compute_output_spec(self, inputs, reverse=False):
        shape = (*inputs.shape[:-1], self.input_dim) if reverse else (*inputs.shape, self.output_dim)
        return keras.KerasTensor(shape, dtype=self.compute_dtype)


class Twin:
    """A dense layer whose frozen rows are reset after each training step."""

    def __init__(self, split: SplitTable, reverse_split: SplitTable | None = None, **options) -> None:
        untied = {} if reverse_split is None else {"tie_weights": False}
        self.layer = (LAYER or Tied)(split.num_tokens, split.dim, **untied, **options)
        self.layer.build()
        self.splits = [split, *([] if reverse_split is None else [reverse_split])]
        self._set([each.combine() for each in self.splits])

    def rows(self) -> list[np.ndarray]:
        """Return each table, `(num_tokens, dim)`."""
        first, *others = self.layer.get_weights()
        return [first, *(other.T for other in others)]

    def reset_frozen(self) -> None:
        """Reset the rows of frozen tokens."""
        tables = []
        for now, split in zip(self.rows(), self.splits, strict=True):
            is_frozen = split.remap[:, None] >= 0
            tables.append(np.where(is_frozen, split.combine(), now))
        self._set(tables)

    def _set(self, matrices: list[np.ndarray]) -> None:
        self.layer.set_weights([matrices[0], *(each.T for each in matrices[1:])])


def language_model(layer: keras.layers.Layer) -> keras.Model:
    """One block of a transformer, with the same weights at each call: logits for each position of the ids."""
    keras.utils.set_random_seed(3)
    ids = keras.Input((None,), dtype="int32")
    states = layer(ids)
    # the gradient of a key bias is rounding noise
    attend = keras.layers.MultiHeadAttention(2, 4, use_bias=False)
    attended = attend(states, states, use_causal_mask=True)
    states = keras.layers.LayerNormalization()(keras.layers.Add()([states, attended]))
    return keras.Model(ids, layer(keras.layers.Dense(DIM)(states), reverse=True))


def batches(num: int = 8, num_tokens: int = NUM_TOKENS) -> list[tuple[np.ndarray, np.ndarray]]:
    """Batches of ids and the next ids, each `(3, 5)`, with repeated tokens; some end in padding."""
    texts = np.random.default_rng(4).integers(1, num_tokens, (num, 3, 6)).astype(np.int32)
    texts[:, 0, 4:] = 0
    return [(text[:, :-1], text[:, 1:]) for text in texts]


def loss() -> keras.losses.Loss:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def assert_steps_are_equal(layer, twin: Twin, make_optimizer, **options) -> None:
    """Train both on the same batches, and compare losses, rows and the other weights after each step."""
    models = [language_model(each) for each in (layer, twin.layer)]
    for model in models:
        model.compile(make_optimizer(), loss(), **options)
    tables = [layer, layer.reverse_embedding][: len(twin.splits)]
    before = [table.to_split().frozen.tobytes() for table in tables]
    for ids, following in batches():
        losses = [model.train_on_batch(ids, following) for model in models]
        twin.reset_frozen()
        np.testing.assert_allclose(*losses, rtol=0, atol=TOLERANCE)
        for table, dense in zip(tables, twin.rows(), strict=True):
            np.testing.assert_allclose(table.to_split().combine(), dense, rtol=0, atol=TOLERANCE)
        ours, theirs = (model.layers[2].get_weights() for model in models)
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(mine, other, rtol=0, atol=TOLERANCE)
    for table, split, frozen in zip(tables, twin.splits, before, strict=True):
        assert table.to_split().frozen.tobytes() == frozen
        assert (table.to_split().trainable != split.trainable).all()
