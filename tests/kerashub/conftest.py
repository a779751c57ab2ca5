"""What the tests on KerasHub models have in common."""

import pytest


@pytest.fixture
def no_fusions():
    """TensorFlow fuses what stands after an embedding or not, as it finds it, and rounds otherwise then."""
    import tensorflow as tf

    before = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options({"remapping": False})
    yield
    tf.config.optimizer.set_experimental_options({"remapping": before.get("remapping", True)})
