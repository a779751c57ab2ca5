"""Gather from both tables with clamped rows, then select."""

from typing import Any

import tensorflow as tf

from benchmarks.speed.contestants.two_tables import TwoTables


class Where(TwoTables):
    """A lookup in which frozen tokens send zero gradients to trainable row 0, and gradient rows repeat."""

    def embed(self, ids: Any) -> Any:
        rows = tf.gather(self.remap, ids)
        frozen = tf.gather(self.frozen, tf.maximum(rows, 0))
        trainable = tf.gather(self.trainable.value, tf.maximum(tf.bitwise.invert(rows), 0))
        return tf.where((rows < 0)[..., None], trainable, frozen)
