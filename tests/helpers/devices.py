"""Two logical CPU devices, so that MirroredStrategy has two replicas; imported before TensorFlow runs anything."""

from functools import cache

import tensorflow as tf

CPUS = ("CPU:0", "CPU:1")

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * len(CPUS)
)


@cache
def two_replicas() -> tf.distribute.MirroredStrategy:
    """The one strategy of a test process: a second one would number its collective operations as the first did."""
    return tf.distribute.MirroredStrategy(CPUS)
