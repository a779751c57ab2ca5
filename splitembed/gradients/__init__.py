"""Gradient control beside the split: on any tensor, on rows of a gradient, and under `fit`."""

from splitembed.gradients.gate import GradientGate
from splitembed.gradients.optimizer import RowGradientOptimizer
from splitembed.gradients.rows import clip_gradient_rows, keep_gradient_rows
from splitembed.gradients.where import keep_gradient_where

__all__ = [
    "GradientGate",
    "RowGradientOptimizer",
    "clip_gradient_rows",
    "keep_gradient_rows",
    "keep_gradient_where",
]
