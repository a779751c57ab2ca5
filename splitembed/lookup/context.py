"""The run that a call belongs to: eager, traced, compiled by XLA, or an export to a format of fixed shapes."""

from typing import Any

import keras
import numpy as np

from splitembed import keras_compat

_BACKEND = keras.backend.backend()


def is_traced(tensor: Any) -> bool:
    """Return whether a program is being traced, which will run on other values.

    Args:
        tensor: an input of the call, by which JAX and PyTorch can tell.
    """
    if _BACKEND == "tensorflow":
        import tensorflow as tf

        return not tf.executing_eagerly()
    if isinstance(tensor, np.ndarray):
        return False
    if _BACKEND == "jax":
        import jax

        return isinstance(tensor, jax.core.Tracer)
    if _BACKEND == "torch":
        import torch

        return tensor.device.type == "meta" or torch.compiler.is_compiling()
    return True


def in_graph() -> bool:
    """Return whether TensorFlow traces a graph; on JAX and PyTorch only a tensor can tell, and the answer is no."""
    return _BACKEND == "tensorflow" and is_traced(None)


def in_xla() -> bool:
    """Return whether XLA compiles the program that is being traced, as it compiles every program of JAX."""
    if _BACKEND != "tensorflow":
        return _BACKEND == "jax"
    import tensorflow as tf

    return not tf.executing_eagerly() and keras_compat.is_for_xla(tf.compat.v1.get_default_graph())


def exports_fixed_shapes(tensor: Any) -> bool:
    """Return whether an exporter to ONNX or LiteRT traces this call, which needs the static form.

    A SavedModel has no fixed shapes. In an eager call the answer is no, without a look at the stack.

    Args:
        tensor: an input of the call, as for `is_traced`.
    """
    return is_traced(tensor) and keras_compat.is_called_by_exporter()
