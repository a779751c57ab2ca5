"""An optimizer on the variables of before goes in; one on those of now leaves, with the state of the rows that stay."""

from functools import partial
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def compile_like(model: Any, replaced: Any, old_of: dict[int, Any], rows: Rows) -> None:
    """Compiles a model as another one, or itself, was compiled, with the optimizer carried over.

    Args:
        model: compiled.
        replaced: what to compile. If it is the same one, whatever else its class keeps at `compile` stays, such as a
            sampler.
        old_of, rows: as `carry_optimizer` takes them.
    """
    old = model.optimizer
    made_again = None if old is None else type(old).from_config(old.get_config())
    recompile = partial(keras.Model.compile, model) if replaced is model else replaced.compile
    recompile(**{**model._compile_config.config, "optimizer": made_again})
    if getattr(old, "built", False):
        replaced.optimizer.build(replaced.trainable_variables)
        carry_optimizer(old, replaced.optimizer, old_of, rows)


def carry_optimizer(old: Any, new: Any, old_of: dict[int, Any], rows: Rows) -> None:
    """Copies an optimizer's state to one that is built on partly other variables.

    Args:
        old, new: of the same class, both built.
        old_of: the old variable of a new one, by the new one's `id`; others are the same in both.
        rows: `(num_trainable,)`, the old row of each row of those new variables, or -1.
    """
    if hasattr(old, "inner_optimizer"):
        carry_optimizer(old.inner_optimizer, new.inner_optimizer, old_of, rows)
    old_slots, new_slots = _slots(old), _slots(new)
    for name, slots in new_slots.items():
        for index, variable in enumerate(new._trainable_variables):
            before = old_of.get(id(variable), variable)
            place = next((i for i, each in enumerate(old._trainable_variables) if each is before), None)
            if place is not None and slots[index] is not None:
                carried = rows if id(variable) in old_of else None
                _carry(name, old_slots[name][place], slots[index], variable, carried)
    for before, after in zip(_others(old, old_slots), _others(new, new_slots), strict=True):
        after.assign(before)


def _slots(optimizer: Any) -> dict[str, list[Any]]:
    """The optimizer's lists of one variable, or None, for each variable that it trains."""
    num_variables = len(optimizer._trainable_variables)
    kind = type(optimizer._iterations)  # in Keras 3.6 what an optimizer makes is no keras.Variable
    return {
        name: list(value)
        for name, value in vars(optimizer).items()
        if isinstance(value, list)
        and name not in ("_trainable_variables", "_variables")
        and len(value) == num_variables
        and all(each is None or isinstance(each, kind) for each in value)
    }


def _others(optimizer: Any, slots: dict[str, list[Any]]) -> list[Any]:
    """Iterations, learning rate and the like: every variable of the optimizer's own that is no slot."""
    inner = getattr(optimizer, "inner_optimizer", None)
    known = {id(each) for each_slots in slots.values() for each in each_slots}
    known |= {id(each) for each in inner.variables} if inner is not None else set()
    return [each for each in optimizer.variables if id(each) not in known]


def _carry(name: str, before: Any, after: Any, variable: Any, rows: Rows | None) -> None:
    """Copies a slot; of the split's variable row by row."""
    if rows is None or name == "_c":  # Adafactor's factor for the columns, which all rows share
        after.assign(before)
        return
    fresh = variable if name == "_model_variables_moving_average" else after  # an average of what stood still
    values = np.array(keras.ops.convert_to_numpy(fresh))
    values[rows >= 0] = keras.ops.convert_to_numpy(before)[rows[rows >= 0]]
    after.assign(values)
