"""Parameters of which `make test` runs a few, and `make test-all` all."""

from collections.abc import Iterable

import pytest


def others_slow(names: Iterable[str], fast: Iterable[str]) -> list:
    """Return names as parameters of a test, marked as slow except for those in `fast`."""
    fast = set(fast)
    found = [name if name in fast else pytest.param(name, marks=pytest.mark.slow) for name in names]
    assert sum(isinstance(each, str) for each in found) == len(fast), f"a name of {fast} is not among the parameters"
    return found
