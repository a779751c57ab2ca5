"""A small language model, and Keras's dense reversible layer with rows held where they are: the twin of ours."""

import keras
import numpy as np
from keras import ops

from splitembed import SplitTable

NUM_TOKENS, DIM = 9, 4
TRAINABLE = [1, 4, 7]
LAYER = getattr(keras.layers, "ReversibleEmbedding", None)  # not in the oldest Keras


def rows(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def make_split(seed: int = 0, trainable_ids=TRAINABLE) -> SplitTable:
    matrix = rows(NUM_TOKENS, DIM, seed=seed)
    matrix[0] = 0
    words = ["", *(f"w{number}" for number in range(1, NUM_TOKENS))]
    return SplitTable.from_matrix(matrix, trainable_ids, vocabulary=words, padding=0)


class Tied(keras.layers.Embedding):
    """What Keras's layer computes with tied weights, where Keras has no such layer."""

    def __init__(self, *sizes, logit_soft_cap=None, **options) -> None:
        super().__init__(*sizes, **options)
        self.logit_soft_cap = logit_soft_cap

    def call(self, inputs, reverse=False):
        if not reverse:
            return super().call(inputs)
        logits = ops.matmul(inputs, ops.transpose(self.embeddings))
        return logits if self.logit_soft_cap is None else ops.tanh(logits / self.logit_soft_cap) * self.logit_soft_cap

    def compute_mask(self, inputs, mask=None):
        return None

    def compute_output_spec(self, inputs, reverse=False):
        shape = (*inputs.shape[:-1], self.input_dim) if reverse else (*inputs.shape, self.output_dim)
        return keras.KerasTensor(shape, dtype=self.compute_dtype)


class Twin:
    """A dense layer all of whose rows train, put back after each step but for those of the split."""

    def __init__(self, split: SplitTable, reverse_split: SplitTable | None = None, **options) -> None:
        untied = {} if reverse_split is None else {"tie_weights": False}
        self.layer = (LAYER or Tied)(split.num_tokens, split.dim, **untied, **options)
        self.layer.build()
        self.splits = [split, *([] if reverse_split is None else [reverse_split])]
        self._set([each.combine() for each in self.splits])

    def rows(self) -> list[np.ndarray]:
        """Of each table `(num_tokens, dim)`."""
        first, *others = self.layer.get_weights()
        return [first, *(other.T for other in others)]

    def hold(self) -> None:
        """Puts the rows of frozen tokens back."""
        held = []
        for now, split in zip(self.rows(), self.splits, strict=True):
            is_frozen = split.remap[:, None] >= 0
            held.append(np.where(is_frozen, split.combine(), now))
        self._set(held)

    def _set(self, matrices: list[np.ndarray]) -> None:
        self.layer.set_weights([matrices[0], *(each.T for each in matrices[1:])])


def language_model(layer: keras.layers.Layer) -> keras.Model:
    """One block of a transformer, the same at each call: ids `(batch, length)` in, logits for each place out."""
    keras.utils.set_random_seed(3)
    ids = keras.Input((None,), dtype="int32")
    states = layer(ids)
    attend = keras.layers.MultiHeadAttention(2, 4, use_bias=False)  # the keys' bias has no gradient but noise
    attended = attend(states, states, use_causal_mask=True)
    states = keras.layers.LayerNormalization()(keras.layers.Add()([states, attended]))
    return keras.Model(ids, layer(keras.layers.Dense(DIM)(states), reverse=True))


def batches(num: int = 8, num_tokens: int = NUM_TOKENS) -> list[tuple[np.ndarray, np.ndarray]]:
    """Ids and the ids that follow them, each `(3, 5)`, in which tokens repeat; some end in padding."""
    texts = np.random.default_rng(4).integers(1, num_tokens, (num, 3, 6)).astype(np.int32)
    texts[:, 0, 4:] = 0
    return [(text[:, :-1], text[:, 1:]) for text in texts]


def loss() -> keras.losses.Loss:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)
