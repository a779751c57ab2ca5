"""Whole Keras models: an embedding is split, replaced, combined or exported in place."""
