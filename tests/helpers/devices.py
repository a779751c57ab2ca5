"""Two logical CPU devices for a MirroredStrategy of two replicas. Import it before TensorFlow runs an operation."""

from functools import cache

import tensorflow as tf

CPUS = ("CPU:0", "CPU:1")

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * len(CPUS)
)


@cache
def two_replicas() -> tf.distribute.MirroredStrategy:
    """Return the only strategy of a test process: a second one would reuse the numbers of its collective operations."""
    return tf.distribute.MirroredStrategy(CPUS)
