"""Small splits and models that the tests of the layer share. Each model returns one number for each example."""

import math
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from splitembed import SplitEmbedding, SplitTable

WORDS = ["", "[UNK]", "the", "\u00e9t\u00e9", "usr", "of"]
TRAINABLE_IDS = [1, 4]
DIM = 3
IDS = np.array([[2, 1, 4, 0], [5, 5, 1, 0], [4, 3, 4, 4], [0, 0, 2, 1]])
TARGETS = np.array([[1.0], [0.0], [2.0], [-1.0]])


def make_split(seed: int = 0) -> SplitTable:
    """Six tokens: padding, [UNK] and one more trainable token, three frozen words."""
    matrix = np.random.default_rng(seed).normal(size=(len(WORDS), DIM)).astype(np.float32)
    matrix[0] = 0
    return SplitTable.from_matrix(matrix, TRAINABLE_IDS, vocabulary=WORDS, padding=0)


def split_of_twelve() -> SplitTable:
    """Twelve tokens without words, of which 1, 4, 5 and 9 train."""
    matrix = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    return SplitTable.from_matrix(matrix, [1, 4, 5, 9])


def head() -> list[keras.layers.Layer]:
    """Layers with the same weights in every model and every process."""
    ones = keras.initializers.Ones()
    return [keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1, kernel_initializer=ones)]


def functional(*layers: keras.layers.Layer) -> keras.Model:
    ids = keras.Input((None,), dtype="int32")
    rows = [layer(ids) for layer in layers]
    tensor = rows[0] if len(rows) == 1 else keras.layers.Concatenate()(rows)
    for each in head():
        tensor = each(tensor)
    return keras.Model(ids, tensor)


def sequential(layer: keras.layers.Layer) -> keras.Model:
    return keras.Sequential([keras.Input((None,), dtype="int32"), layer, *head()])


def unbuilt_sequential(layer: keras.layers.Layer) -> keras.Model:
    return keras.Sequential([layer, *head()])


def nested(layer: keras.layers.Layer) -> keras.Model:
    ids = keras.Input((None,), dtype="int32")
    return keras.Model(ids, keras.layers.Dense(1, kernel_initializer="ones")(functional(layer)(ids)))


@keras.saving.register_keras_serializable("tests")
class Subclassed(keras.Model):
    """A subclassed model with the embedding layer in its config."""

    def __init__(self, embedding: keras.layers.Layer, **kwargs) -> None:
        super().__init__(**kwargs)
        self.embedding, self.parts = embedding, head()

    def call(self, ids):
        tensor = self.embedding(ids)
        for part in self.parts:
            tensor = part(tensor)
        return tensor

    def get_config(self):
        return {**super().get_config(), "embedding": keras.saving.serialize_keras_object(self.embedding)}

    @classmethod
    def from_config(cls, config):
        return cls(keras.saving.deserialize_keras_object(config.pop("embedding")), **config)


MODELS: dict[str, Callable[..., keras.Model]] = {
    "functional": functional,
    "sequential": sequential,
    "unbuilt sequential": unbuilt_sequential,
    "nested": nested,
    "subclassed": Subclassed,
}


def embeddings_in(model: keras.Model) -> list[SplitEmbedding]:
    """Return the SplitEmbedding layers of a model, in order."""
    return [layer for layer in model._flatten_layers() if isinstance(layer, SplitEmbedding)]


def kinds_of_large_values(graph: tf.Graph, num_elements: int) -> set[str]:
    """Return the types of the operations in a graph that output a value of at least that many elements."""
    found = set()
    definition = graph.as_graph_def(add_shapes=True)
    for node in [*definition.node, *(node for each in definition.library.function for node in each.node_def)]:
        for shape in node.attr["_output_shapes"].list.shape:
            sizes = [dim.size for dim in shape.dim]
            if not shape.unknown_rank and min(sizes, default=1) >= 0 and math.prod(sizes) >= num_elements:
                found.add(node.op)
    return found


# both refer to the memory of the variable
ONLY_READS = {"ReadVariableOp", "Identity"}
