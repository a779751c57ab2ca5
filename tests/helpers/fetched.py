"""A marker for tests on the real data that `make data` downloads."""

import pytest

from benchmarks.data import packages


def needs_data(*names: str) -> pytest.MarkDecorator:
    """Skip a test if one of the named packages is not in the data folder."""
    missing = [name for name in names if not packages.archive_path(name).exists()]
    return pytest.mark.skipif(bool(missing), reason=f"missing data: {', '.join(missing)}; `make data` downloads them")
