"""Tables as TensorFlow constants on the memory of their arrays: nothing is copied, whatever the size.

A constant is a handle that no optimizer and no checkpoint sees, and that `model.export` writes beside the graph instead
of into it.
"""

from functools import cached_property
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from splitembed.arrays import as_aligned, without_read_only_flag
from splitembed.lookup.context import exports_fixed_shapes
from splitembed.split.id_order import Order, order_of, unused_rows_are_finite
from splitembed.split.table import SplitTable
from splitembed.tables.storage import FLOAT32


def make_constant(array: NDArray[Any], name: str) -> tf.Variable:
    """Make a handle on the memory of an array; an array that TensorFlow cannot use as it is, is copied once.

    Read it as `tf.gather(handle.read_value(), rows)`: `tf.gather(handle, rows)` would copy the whole table.

    Args:
        array: any shape, of a dtype that DLPack knows; it must never be written to again.
        name: the name of the handle in exported graphs.

    Returns:
        A non-trainable `tf.Variable` that is never assigned.
    """
    with tf.init_scope():
        return tf.Variable(as_tensor(array), trainable=False, name=name)


def as_tensor(array: NDArray[Any]) -> tf.Tensor:
    """Make an eager tensor on the memory of an array, as `make_constant` does.

    TensorFlow never writes to memory that it did not allocate: a variable that starts from the tensor is copied before
    its first update.
    """
    # an empty array has no memory to refer to
    if array.size == 0:
        return tf.zeros(array.shape, array.dtype)
    memory = without_read_only_flag(as_aligned(array))
    with tf.device("CPU:0"):
        return tf.experimental.dlpack.from_dlpack(memory.__dlpack__())


class Constants(tf.Module):
    """The tables of a lookup that training never changes, as constants on the memory of the split.

    `remap` is int32 `(num_tokens,)`; `frozen` is `(num_frozen, dim)` as stored; `scale` is float32 `(num_frozen,)` if
    the storage has one, else None.

    Args:
        split: the split to read.
        transposed: whether to hold the frozen rows as columns, `(dim, num_frozen)`, for a table that is only
            multiplied.
    """

    def __init__(self, split: SplitTable, transposed: bool = False) -> None:
        super().__init__()
        self.num_tokens, self.num_frozen, self.dim = split.num_tokens, split.num_frozen, split.dim
        self.transposed, self.storage, self._split = transposed, split.storage, split
        self.remap = make_constant(split.remap, "remap")
        self.frozen = make_constant(np.ascontiguousarray(split.frozen.T) if transposed else split.frozen, "frozen")
        self.scale = None if split.scale is None else make_constant(split.scale, "scale")
        self._widened: tf.Variable | None = None

    @cached_property
    def order(self) -> Order | None:
        """What trains, where the frozen rows are in id order."""
        return order_of(self._split)

    @cached_property
    def is_finite(self) -> bool:
        """Whether all frozen rows without a token are finite."""
        return unused_rows_are_finite(self._split)

    def read_remap(self) -> tf.Tensor:
        """Return the remap without a copy, int32 `(num_tokens,)`."""
        return self.remap.read_value()

    def read_stored(self) -> tf.Tensor:
        """Return the frozen rows as stored, without a copy: `(num_frozen, dim)`, transposed `(dim, num_frozen)`."""
        return self._as_named(self.frozen.read_value())

    def read(self, rows: tf.Tensor) -> tf.Tensor:
        """Gather frozen rows into new memory, `rows.shape + (dim,)`, widened to float32."""
        values = self.gather(rows)
        return keras.ops.moveaxis(values, 0, -1) if self.transposed else values

    def gather(self, rows: tf.Tensor) -> tf.Tensor:
        """Gather frozen rows as `read` does, but of a transposed table as `(dim,) + rows.shape`."""
        axis = 1 if self.transposed else 0
        table = self._to_gather_from(rows)
        values = tf.gather(table.read_value(), rows, axis=axis)
        values = tf.cast(self._as_named(values) if table is self.frozen else values, tf.float32)
        if self.scale is None:
            return values
        return values * tf.expand_dims(tf.gather(self.scale.read_value(), rows), axis - 1)

    def _as_named(self, values: tf.Tensor) -> tf.Tensor:
        """Return stored values in the dtype that their storage is named by."""
        return tf.bitcast(values, tf.as_dtype(self.storage.name)) if self.storage.is_bit_pattern else values

    def _to_gather_from(self, rows: tf.Tensor) -> tf.Variable:
        """Return the frozen rows, for an exporter widened to float32 where the format cannot gather such floats."""
        if self.storage is FLOAT32 or self.storage.has_scale or not exports_fixed_shapes(rows):
            self._widened = None
            return self.frozen
        if self._widened is None:
            with tf.init_scope():
                self._widened = make_constant(self.storage.decode(self.frozen.numpy(), None), "frozen")
        return self._widened
