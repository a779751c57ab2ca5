"""Dropout of occurrences of trainable rows in a training step."""

from typing import Any

import keras

from splitembed.errors import SplitError
from splitembed.lookup.backend import Drop


def checked_rate(rate: Any) -> float:
    """Return a dropout rate as a float, after a check that some rows are kept.

    >>> checked_rate(0.5)
    0.5
    >>> checked_rate(1)
    Traceback (most recent call last):
    splitembed.errors.SplitError: `trainable_dropout` must be a probability, 0 <= p < 1: at 1 no row would ever train...

    Raises:
        SplitError: any other value.
    """
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1:
        raise SplitError(
            f"`trainable_dropout` must be a probability, 0 <= p < 1: at 1 no row would ever train. "
            f"Received: {rate!r} (of type {type(rate).__name__})."
        )
    return float(rate)


def make_drop(rate: float, seeds: Any) -> Drop:
    """Return a function that draws independently for each occurrence, from the seeds of one layer.

    Args:
        rate: the probability of True.
        seeds: the `keras.random.SeedGenerator` of the layer, which gives each call a new seed, in a compiled step too.
    """

    def drop(shape: Any) -> Any:
        return keras.ops.less(keras.random.uniform(shape, dtype="float32", seed=seeds), rate)

    return drop
