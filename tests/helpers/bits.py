"""Bitwise equality of arrays."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike


def same_bits(found: ArrayLike, expected: ArrayLike) -> None:
    """Assert equal dtype, shape and bits: NaN equals itself, and 0.0 differs from -0.0."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes(), f"{found}\ndiffers from\n{expected}"


def all_same_bits(found: Iterable[ArrayLike], expected: Iterable[ArrayLike]) -> None:
    """Assert `same_bits` of each pair of arrays, and equal numbers of arrays."""
    for now, before in zip(found, expected, strict=True):
        same_bits(now, before)
