"""An array as a TensorFlow constant on the same memory: nothing is copied, whatever its size.

A NumPy array or memory map goes in; out comes a handle that reads it, that no optimizer and no checkpoint sees, and
that `model.export` writes beside the graph instead of into it.
"""

from typing import Any

import tensorflow as tf
from numpy.typing import NDArray

from splitembed.arrays import as_aligned, without_read_only_flag


def make_constant(array: NDArray[Any], name: str) -> tf.Variable:
    """Makes a handle on the array's own memory; an array that TensorFlow cannot use as it is, is copied once.

    Read it as `tf.gather(handle.read_value(), rows)`: `tf.gather(handle, rows)` would copy the whole table.

    Args:
        array: any shape, of a dtype that DLPack knows; it must never be written to again.
        name: the handle's name in exported graphs.

    Returns:
        A non-trainable `tf.Variable` that is never assigned.
    """
    with tf.init_scope():
        return tf.Variable(as_tensor(array), trainable=False, name=name)


def as_tensor(array: NDArray[Any]) -> tf.Tensor:
    """Makes an eager tensor on the array's own memory, as `make_constant` does.

    TensorFlow never writes to memory that is not its own: a variable that starts from the tensor is copied before its
    first update.
    """
    if array.size == 0:  # there is no memory to refer to
        return tf.zeros(array.shape, array.dtype)
    memory = without_read_only_flag(as_aligned(array))
    with tf.device("CPU:0"):
        return tf.experimental.dlpack.from_dlpack(memory.__dlpack__())
