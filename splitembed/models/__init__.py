"""Whole Keras models: split, replace, combine or export an embedding."""

# first, so that no module here is half imported when Keras makes splitembed register its classes
import keras  # noqa: F401
