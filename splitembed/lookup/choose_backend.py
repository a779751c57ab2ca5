"""The choice of the implementation for the backend that Keras runs on."""

from functools import cache

import keras

from splitembed.lookup.backend import Backend


@cache
def choose_backend() -> Backend:
    """Return the operations for Keras's backend; only those for TensorFlow import TensorFlow."""
    if keras.backend.backend() == "tensorflow":
        from splitembed.lookup.backend_tensorflow import TensorFlowBackend

        return TensorFlowBackend()
    from splitembed.lookup.backend_keras import KerasBackend

    return KerasBackend()
