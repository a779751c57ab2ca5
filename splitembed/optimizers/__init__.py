"""Optimizers that update only the rows that a batch touched."""

# first, so that no module here is half imported when Keras makes splitembed register its classes
import keras  # noqa: F401

from splitembed.optimizers.lazy import LazyAdagrad, LazyAdam, LazySGD

__all__ = ["LazyAdagrad", "LazyAdam", "LazySGD"]
