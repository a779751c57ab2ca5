"""Concatenation of constant and variable: of both whole tables, or of the rows that a batch needs."""

from typing import Any

import tensorflow as tf

from benchmarks.speed.contestants.two_tables import TwoTables


class Concat(TwoTables):
    """Concatenates both tables, then gathers. This copies the whole table at each step."""

    def embed(self, ids: Any) -> Any:
        rows = tf.gather(self.remap, ids)
        positions = tf.where(rows >= 0, rows, self.frozen.shape[0] + tf.bitwise.invert(rows))
        return tf.gather(tf.concat([self.frozen, self.trainable.value], 0), positions)


class ConcatDistinct(TwoTables):
    """Gathers each distinct row from its table, concatenates these rows, then gathers by position."""

    def embed(self, ids: Any) -> Any:
        distinct, index = tf.unique(tf.reshape(ids, [-1]))
        rows = tf.gather(self.remap, distinct)
        is_trainable = rows < 0
        frozen = tf.gather(self.frozen, tf.boolean_mask(rows, ~is_trainable))
        trainable = tf.gather(self.trainable.value, tf.bitwise.invert(tf.boolean_mask(rows, is_trainable)))
        positions = tf.where(
            is_trainable,
            tf.shape(frozen)[0] + tf.cumsum(tf.cast(is_trainable, tf.int32), exclusive=True),
            tf.cumsum(tf.cast(~is_trainable, tf.int32), exclusive=True),
        )
        values = tf.gather(tf.concat([frozen, trainable], 0), tf.gather(positions, index))
        return tf.reshape(values, [*tf.unstack(tf.shape(ids)), values.shape[1]])
