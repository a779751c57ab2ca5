"""Gradients of a function on the backend of Keras, and by finite differences in NumPy."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

BACKEND = keras.backend.backend()
Scalar = Callable[..., Any]


def numpy(tensor: Any) -> np.ndarray:
    return np.array(ops.convert_to_numpy(tensor))


def gradients(function: Scalar, *arrays: Any, compiled: bool = False) -> list[np.ndarray]:
    """Return the gradient of a scalar function for each argument; compiled by XLA where the backend has it."""
    return [numpy(each) for each in _BACKENDS[BACKEND](function, list(arrays), compiled)]


def differences(function: Scalar, array: Any, step: float = 1e-3) -> np.ndarray:
    """Return the central differences of a scalar function for each element, in float64."""
    array = np.array(array, np.float64)
    result = np.zeros_like(array)
    for position in np.ndindex(array.shape):
        ahead, behind = array.copy(), array.copy()
        ahead[position] += step
        behind[position] -= step
        result[position] = (function(ahead) - function(behind)) / (2 * step)
    return result


def _tensorflow(function: Scalar, arrays: list[Any], compiled: bool) -> list[Any]:
    import tensorflow as tf

    def run(*tensors: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            value = function(*tensors)
        return tape.gradient(value, tensors)

    tensors = [tf.convert_to_tensor(each) for each in arrays]
    return (tf.function(run, jit_compile=True) if compiled else run)(*tensors)


def _jax(function: Scalar, arrays: list[Any], compiled: bool) -> list[Any]:
    import jax

    run = jax.grad(function, tuple(range(len(arrays))))
    return list((jax.jit(run) if compiled else run)(*arrays))


def _torch(function: Scalar, arrays: list[Any], compiled: bool) -> list[Any]:
    import torch

    tensors = [torch.tensor(each, requires_grad=True) for each in arrays]
    return list(torch.autograd.grad(function(*tensors), tensors))


_BACKENDS = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}
