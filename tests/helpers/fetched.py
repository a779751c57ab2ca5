"""Real data, where `make data` has fetched it."""

import pytest

from benchmarks.data import packages


def needs_data(*names: str) -> pytest.MarkDecorator:
    """Skip a test where one of the named packages is not in the data folder."""
    missing = [name for name in names if not packages.archive_path(name).exists()]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not fetched: `make data` fetches it")
