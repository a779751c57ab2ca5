"""Whole Keras models: an embedding is split, replaced, combined or exported in place."""

# first, so that no module here is half imported when Keras makes splitembed register its classes
import keras  # noqa: F401
