"""Bags of ids on TensorFlow: the combiner of the layer, and TensorFlow's sparse lookup."""

from typing import Any

import keras
import tensorflow as tf

from benchmarks.speed.contestants.floor import Floor
from benchmarks.speed.contestants.ours import Ours
from benchmarks.speed.contestants.pooling import OneRowABag
from benchmarks.speed.problems import Problem
from splitembed.layers.embedding import SplitEmbedding


class Combiner(OneRowABag, Ours):
    """`SplitEmbedding` with `combiner="mean"`, which never stores a row for each id."""

    def make_layer(self, problem: Problem) -> keras.layers.Layer:
        layer = SplitEmbedding(problem.split(self.mapped), combiner="mean")
        layer.build()
        return layer


class SparseLookup(OneRowABag, Floor):
    """`tf.nn.embedding_lookup_sparse` from one constant."""

    def embed(self, ids: Any) -> Any:
        return tf.nn.embedding_lookup_sparse(self.table, tf.RaggedTensor.from_tensor(ids), None, combiner="mean")
