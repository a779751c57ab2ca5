"""The Keras layers over a split, and how they are saved and loaded."""

# first, so that no module here is half imported when Keras makes splitembed register its classes
import keras  # noqa: F401
