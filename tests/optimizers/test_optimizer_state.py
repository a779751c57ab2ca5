"""An optimizer on new variables gets the slots of rows that stay, and all variables that are not slots."""

import keras
import numpy as np
import pytest

from splitembed.errors import SplitError
from splitembed.optimizers.optimizer_state import RowSource, copy_state, copy_without_state, recompile

RNG = np.random.default_rng(0)
OLD, NEW, COLUMNS = (4, 3), (3, 3), (3, 4)
ROWS = np.array([2, -1, 0])


def variable(shape, name="v"):
    return keras.Variable(RNG.normal(size=shape).astype(np.float32), name=name)


def trained(make, variables, steps=2):
    """Make a built optimizer with state, in which each variable is a different number."""
    optimizer = make()
    optimizer.build(variables)
    for _ in range(steps):
        gradients = [keras.ops.convert_to_tensor(RNG.normal(size=each.shape).astype(np.float32)) for each in variables]
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return optimizer


def numpy(each):
    return keras.ops.convert_to_numpy(each)


def slots(optimizer, shape):
    return [numpy(each) for each in optimizer.variables if tuple(each.shape) == shape]


def copied(make, old_variable, new_variable, source):
    """Return both optimizers, with a second variable that both train."""
    other = variable((2,), "other")
    old = trained(make, [old_variable, other])
    new = copy_without_state(old)
    new.build([new_variable, other])
    copy_state(old, new, {id(new_variable): source})
    assert int(numpy(new.iterations)) == int(numpy(old.iterations)) == 2
    for before, after in zip(slots(old, (2,)), slots(new, (2,)), strict=True):
        np.testing.assert_array_equal(before, after)
    return old, new


OPTIMIZERS = {
    "adam": lambda: keras.optimizers.Adam(0.1),
    "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "rmsprop": lambda: keras.optimizers.RMSprop(0.1, momentum=0.5, centered=True),
    "nadam": lambda: keras.optimizers.Nadam(0.1),
}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_slots_of_rows_that_stay_are_copied_and_others_start_again(make):
    before, after = variable(OLD), variable(NEW)
    old, new = copied(make, before, after, RowSource(before, ROWS))
    found, expected = slots(new, NEW), slots(old, OLD)
    assert len(found) == len(expected) > 0
    for now, then in zip(found, expected, strict=True):
        np.testing.assert_array_equal(now, [then[2], np.zeros(3), then[0]])


def test_initial_values_of_slots_are_those_of_the_optimizer():
    before, after = variable(OLD), variable(NEW)
    make = lambda: keras.optimizers.Adagrad(0.1, initial_accumulator_value=0.25)  # noqa: E731
    _, new = copied(make, before, after, RowSource(before, ROWS))
    np.testing.assert_array_equal(slots(new, NEW)[0][1], np.full(3, 0.25))


@pytest.mark.parametrize("transposed", ["old", "new"])
def test_rows_are_copied_from_and_to_columns(transposed):
    shapes = (COLUMNS, NEW) if transposed == "old" else (OLD, (3, 3))
    before, after = (variable(shape) for shape in shapes)
    old, new = copied(OPTIMIZERS["adam"], before, after, RowSource(before, ROWS, transposed))
    found = [each.T if transposed == "new" else each for each in slots(new, NEW)]
    expected = [each.T if transposed == "old" else each for each in slots(old, shapes[0])]
    for now, then in zip(found, expected, strict=True):
        np.testing.assert_array_equal(now, [then[2], np.zeros(3), then[0]])


def test_a_moving_average_starts_at_the_row():
    before, after = variable(OLD), variable(NEW)
    make = lambda: keras.optimizers.SGD(0.1, use_ema=True)  # noqa: E731
    old, new = copied(make, before, after, RowSource(before, ROWS))
    average, expected = slots(new, NEW)[0], slots(old, OLD)[0]
    np.testing.assert_array_equal(average, [expected[2], numpy(after)[1], expected[0]])


def test_factors_of_adafactor_are_copied_by_row_and_by_column():
    before, after = variable((4, 5)), variable((3, 5))
    old, new = copied(lambda: keras.optimizers.Adafactor(0.1), before, after, RowSource(before, ROWS))
    (rows,), (columns,) = slots(old, (4,)), slots(old, (5,))
    np.testing.assert_array_equal(slots(new, (3,))[0], [rows[2], 0, rows[0]])
    np.testing.assert_array_equal(slots(new, (5,))[0], columns)


def test_the_state_of_a_loss_scale_and_of_the_optimizer_in_it_is_copied():
    before, after = variable(OLD), variable(NEW)
    old = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.1), initial_scale=8.0)
    old.build([before])
    for each in old.inner_optimizer.variables:
        if tuple(each.shape) == OLD:
            each.assign(RNG.normal(size=OLD))
    old.dynamic_scale.assign(32.0)
    new = copy_without_state(old)
    new.build([after])
    copy_state(old, new, {id(after): RowSource(before, ROWS)})
    assert float(numpy(new.dynamic_scale)) == 32.0
    found, expected = slots(new.inner_optimizer, NEW), slots(old.inner_optimizer, OLD)
    assert len(found) == 2
    for now, then in zip(found, expected, strict=True):
        np.testing.assert_array_equal(now, [then[2], np.zeros(3), then[0]])


def test_a_variable_that_did_not_train_before_starts_again():
    kept, added = variable(OLD, "kept"), variable(NEW, "added")
    old = trained(OPTIMIZERS["adam"], [kept])
    new = copy_without_state(old)
    new.build([added, kept])
    copy_state(old, new, {})
    assert not any(each.any() for each in slots(new, NEW))
    for now, then in zip(slots(new, OLD), slots(old, OLD), strict=True):
        np.testing.assert_array_equal(now, then)


def test_no_optimizer_stays_none():
    assert copy_without_state(None) is None


def test_an_optimizer_without_a_config_is_refused():
    class Bare(keras.optimizers.SGD):
        def get_config(self):
            raise NotImplementedError("no config")

    with pytest.raises(SplitError, match="The model's optimizer, Bare, cannot be made again .* no config. Compile"):
        copy_without_state(Bare(0.1))


def test_a_model_is_compiled_with_the_same_arguments_and_exclusions():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="head")])
    optimizer = keras.optimizers.AdamW(0.1, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    model.compile(optimizer, "mae", metrics=["mse"], jit_compile=False)
    model.train_on_batch(np.ones((1, 2)), np.ones((1, 1)))
    model.layers[0].bias.assign([4.0])
    recompile(model, copy_without_state(optimizer), {})
    assert model.loss == "mae" and model.optimizer is not optimizer and int(numpy(model.optimizer.iterations)) == 1
    model.layers[0].kernel.assign([[4.0], [4.0]])
    model.train_on_batch(np.ones((1, 2)), np.ones((1, 1)), sample_weight=np.zeros(1))
    # a step without a gradient moves by the momentum, at most the learning rate, and by the decay
    assert numpy(model.layers[0].kernel).max() < 3.95 and numpy(model.layers[0].bias)[0] > 3.85
