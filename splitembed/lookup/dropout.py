"""Which occurrences of trainable rows a training step drops: their shape goes in, True where to drop comes out."""

from collections.abc import Callable
from typing import Any

from splitembed.errors import SplitError

Drop = Callable[[Any], Any]  # a shape -> bool of that shape, drawn anew at each call


def checked_rate(rate: Any) -> float:
    """The probability as a number of which a row can be left.

    >>> checked_rate(0.5)
    0.5
    >>> checked_rate(1)
    Traceback (most recent call last):
    splitembed.errors.SplitError: `trainable_dropout` must be a probability, 0 <= p < 1: at 1 no row would ever train...

    Raises:
        SplitError: anything else.
    """
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1:
        raise SplitError(
            f"`trainable_dropout` must be a probability, 0 <= p < 1: at 1 no row would ever train. "
            f"Received: {rate!r} (of type {type(rate).__name__})."
        )
    return float(rate)


def make_drop(rate: float, seeds: Any) -> Drop:
    """Draws independently for each occurrence, from the seeds of one layer.

    Args:
        rate: the probability of True.
        seeds: the layer's own `keras.random.SeedGenerator`, which gives each call another seed, in a compiled step too.
    """
    import keras  # here, as importing Keras registers the layer, which needs this module

    def drop(shape: Any) -> Any:
        return keras.ops.less(keras.random.uniform(shape, dtype="float32", seed=seeds), rate)

    return drop
