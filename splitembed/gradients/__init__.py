"""Gradient control beside the split: on any tensor, on rows of a gradient, and under `fit`."""

# first, so that no module here is half imported when Keras makes splitembed register its classes
import keras  # noqa: F401

from splitembed.gradients.gate import GradientGate
from splitembed.gradients.mask import keep_gradient_where
from splitembed.gradients.partial_embedding import PartialEmbedding
from splitembed.gradients.rows import clip_gradient_rows, keep_gradient_rows
from splitembed.gradients.wrapper import RowGradientOptimizer

__all__ = [
    "GradientGate",
    "PartialEmbedding",
    "RowGradientOptimizer",
    "clip_gradient_rows",
    "keep_gradient_rows",
    "keep_gradient_where",
]
