"""Rows and bytes of the tables."""

import pytest

from splitembed.coverage.sizes import TableSizes, in_bytes, size_rows

SIZES = TableSizes(num_tokens=1000, dim=50, num_frozen=900, num_trainable=100, frozen_bytes=90_000)


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (2_500_000_000, "2.5 GB"),
        (10**15, "1,000.0 TB"),
    ],
)
def test_bytes_are_shown_in_the_fitting_unit(num_bytes, text):
    assert in_bytes(num_bytes) == text


def test_trainable_and_dense_rows_are_float32_with_two_adam_slots():
    assert (SIZES.trainable_bytes, SIZES.trainable_adam_bytes) == (100 * 50 * 4, 3 * 100 * 50 * 4)
    assert (SIZES.dense_bytes, SIZES.dense_adam_bytes) == (1000 * 50 * 4, 3 * 1000 * 50 * 4)


def test_the_dict_holds_fields_and_derived_bytes():
    assert SIZES.to_dict() == {
        "num_tokens": 1000,
        "dim": 50,
        "num_frozen": 900,
        "num_trainable": 100,
        "frozen_bytes": 90_000,
        "trainable_bytes": 20_000,
        "trainable_adam_bytes": 60_000,
        "dense_bytes": 200_000,
        "dense_adam_bytes": 600_000,
    }


def test_frozen_rows_have_no_adam_slots():
    assert size_rows(SIZES)[1] == ("frozen", "900", "90.0 kB", "")
