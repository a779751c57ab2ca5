"""The static lookup without a layer: NaN for invalid ids, dropped rows, shapes. Layers are in test_forms.py."""

import numpy as np
import pytest
from keras import ops

from splitembed.errors import SplitError
from splitembed.lookup.choose_backend import choose_backend
from splitembed.lookup.static import check_weights_shape, combine_fixed, look_up_fixed
from tests.helpers.models import IDS, TRAINABLE_IDS, make_split
from tests.lookup.test_backend_keras import Layer


@pytest.fixture
def tables():
    split = make_split()
    return choose_backend().hold_tables(Layer(split), split, None)


def look_up(ids, tables, dropped=None):
    return ops.convert_to_numpy(
        look_up_fixed(ops.convert_to_tensor(ids), tables, ops.convert_to_tensor(make_split().trainable), dropped)
    )


def test_rows_equal_numpy_and_an_invalid_id_gives_nan(tables):
    np.testing.assert_array_equal(look_up(IDS, tables), make_split().lookup(IDS))
    for ids in ([1, -1], [1, 6], [1, 2**31 - 1]):
        rows = look_up(np.array(ids, np.int32), tables)
        assert np.isnan(rows[1]).all()
        np.testing.assert_array_equal(rows[0], make_split().lookup([1])[0])


def test_dropped_trainable_rows_are_zero_and_frozen_rows_stay(tables):
    rows = look_up(IDS, tables, ops.ones(IDS.shape, "bool"))
    trains = np.isin(IDS, TRAINABLE_IDS)
    np.testing.assert_array_equal(rows, np.where(trains[..., None], 0, make_split().lookup(IDS)))


def test_an_empty_bag_is_zero():
    combined = combine_fixed(ops.ones((1, 2, 3)), ops.zeros((1, 2), "int32"), None, "mean", mask_zero=True)
    np.testing.assert_array_equal(ops.convert_to_numpy(combined), np.zeros((1, 3)))


def test_weights_of_another_shape_are_refused_as_far_as_shapes_are_known():
    check_weights_shape((None, 3), (2, None))
    with pytest.raises(SplitError, match=r"`weights` must have the shape of the ids, \(2, 3\). Received: shape \(2,\)"):
        check_weights_shape((2,), (2, 3))
