"""Optimizers that update only the rows that a batch touched."""

from splitembed.optimizers.lazy import LazyAdagrad, LazyAdam, LazySGD

__all__ = ["LazyAdagrad", "LazyAdam", "LazySGD"]
