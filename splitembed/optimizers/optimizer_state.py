"""An optimizer on the variables of before goes in; one on those of now leaves, with the state of the rows that stay."""

from typing import Any, Literal, NamedTuple

import keras
import numpy as np
from numpy.typing import NDArray

from splitembed.errors import SplitError

Rows = NDArray[np.int64]


class Moved(NamedTuple):
    """Where the rows of a new variable come from.

    Args:
        old: the variable that they were in.
        rows: for each of its rows the old one's, or -1.
        turned: which of the two variables has its rows as columns, if one has.
    """

    old: Any
    rows: Rows
    turned: Literal["", "old", "new"] = ""


Carried = dict[int, Moved]  # by a new variable's `id`


def make_again(optimizer: Any) -> Any:
    """Makes an optimizer of the same config, without state; of None, None.

    Raises:
        SplitError: it has no config that it could be made of.
    """
    try:
        return None if optimizer is None else type(optimizer).from_config(optimizer.get_config())
    except Exception as error:
        raise SplitError(
            f"The model's optimizer, {type(optimizer).__name__}, cannot be made again for other variables: {error}. "
            "Compile the model with another one, or after this."
        ) from error


def compile_again(model: Any, optimizer: Any, carried: Carried) -> None:
    """Compiles a model as it was compiled, for the variables that it has now, with the optimizer's state carried over.

    Whatever else its class keeps at `compile`, such as a sampler, stays.

    Args:
        model: compiled.
        optimizer: its own, made again.
        carried: as `carry_optimizer` takes it.
    """
    old = model.optimizer
    if optimizer is not None:
        _leave_out_again(old, optimizer, model.trainable_variables, carried)
    keras.Model.compile(model, **{**model._compile_config.config, "optimizer": optimizer})
    if getattr(old, "built", False):
        model.optimizer.build(model.trainable_variables)
        carry_optimizer(old, model.optimizer, carried)


def _leave_out_again(old: Any, new: Any, variables: list[Any], carried: Carried) -> None:
    """Leaves out of weight decay what was left out, by itself or by its name, of which a config does not tell."""
    if hasattr(old, "inner_optimizer"):
        _leave_out_again(old.inner_optimizer, new.inner_optimizer, variables, carried)
    if getattr(old, "weight_decay", None):
        new.exclude_from_weight_decay(
            [each for each in variables if not old._use_weight_decay(carried.get(id(each), (each, None))[0])]
        )


def carry_optimizer(old: Any, new: Any, carried: Carried) -> None:
    """Copies an optimizer's state to one that is built on partly other variables.

    Args:
        old, new: of the same class, both built.
        carried: the variables that are not the same in both, and whose slots go along row by row.
    """
    if hasattr(old, "inner_optimizer"):
        carry_optimizer(old.inner_optimizer, new.inner_optimizer, carried)
    old_slots, new_slots = _slots(old), _slots(new)
    for name, slots in new_slots.items():
        for index, variable in enumerate(new._trainable_variables):
            moved = carried.get(id(variable))
            before = variable if moved is None else moved.old
            place = next((i for i, each in enumerate(old._trainable_variables) if each is before), None)
            state = None if place is None or name not in old_slots else old_slots[name][place]
            if state is not None and slots[index] is not None:
                _carry(name, state, slots[index], variable, moved)
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


def _carry(name: str, before: Any, after: Any, variable: Any, moved: Moved | None) -> None:
    """Copies a slot; of a moved variable row by row."""
    if moved is None or (name == "_c" and not moved.turned):  # Adafactor's factor for the columns, which all rows share
        after.assign(before)
        return
    fresh = variable if name == "_model_variables_moving_average" else after  # an average of what stood still
    values, state = np.array(keras.ops.convert_to_numpy(fresh)), keras.ops.convert_to_numpy(before)
    if moved.turned and values.ndim != 2:
        return  # a factor of Adafactor's for rows is one for columns then, and begins anew
    own, source = (values.T if moved.turned == "new" else values), (state.T if moved.turned == "old" else state)
    own[moved.rows >= 0] = source[moved.rows[moved.rows >= 0]]
    after.assign(values)
