"""The lookup: token ids to rows, and the gradient back to the trainable ones."""

# first, so that no module here is half imported when Keras makes splitembed register its classes
import keras  # noqa: F401
