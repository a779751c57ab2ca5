"""The state of an optimizer, copied to one of the same kind on partly other variables, row by row."""

from typing import Any, Literal, NamedTuple

import keras
import numpy as np
from numpy.typing import NDArray

from splitembed.errors import SplitError
from splitembed.keras_compat import compile_arguments, hides_slots, is_decayed, optimizer_slots, optimizer_variables

Rows = NDArray[np.int64]


class RowSource(NamedTuple):
    """The old variable that holds the rows of a new one, and their positions in it.

    Args:
        old: the variable.
        rows: `(num_rows,)`, for each row of the new variable its row in the old one, or -1.
        transposed: which of the two variables holds the rows as columns.
    """

    old: Any
    rows: Rows
    transposed: Literal["neither", "old", "new"] = "neither"


# by the `id` of a new variable
RowSources = dict[int, RowSource]


def copy_without_state(optimizer: Any) -> Any:
    """Return an optimizer with the same config and no state, or None for None.

    Raises:
        SplitError: the optimizer cannot be made from its config, or its state cannot be moved to other variables.
    """
    if hides_slots(optimizer):
        raise SplitError(
            f"The model's optimizer, {type(optimizer).__name__}, keeps its state in a form that cannot be moved to "
            f"other variables. Compile the model with another optimizer, or after this call."
        )
    try:
        return None if optimizer is None else type(optimizer).from_config(optimizer.get_config())
    except Exception as error:
        raise SplitError(
            f"The model's optimizer, {type(optimizer).__name__}, cannot be made again for other variables: {error}. "
            "Compile the model with another optimizer, or after this call."
        ) from error


def recompile(model: Any, optimizer: Any, sources: RowSources) -> None:
    """Compile a model as it was compiled, for its present variables, and copy the state of its optimizer.

    What a subclass of `keras.Model` sets in its own `compile`, such as a sampler, is kept.

    Args:
        model: a compiled model.
        optimizer: what `copy_without_state` returned for the model's optimizer.
        sources: where the rows of the new variables were.
    """
    old = model.optimizer
    if optimizer is not None:
        _exclude_from_decay(old, optimizer, model.trainable_variables, sources)
    keras.Model.compile(model, **{**compile_arguments(model), "optimizer": optimizer})
    if getattr(old, "built", False):
        model.optimizer.build(model.trainable_variables)
        copy_state(old, model.optimizer, sources)


def _exclude_from_decay(old: Any, new: Any, variables: list[Any], sources: RowSources) -> None:
    """Exclude the same variables from weight decay: a config does not hold them."""
    if hasattr(old, "inner_optimizer"):
        _exclude_from_decay(old.inner_optimizer, new.inner_optimizer, variables, sources)
    if getattr(old, "weight_decay", None):
        new.exclude_from_weight_decay([each for each in variables if not is_decayed(old, _before(each, sources))])


def copy_state(old: Any, new: Any, sources: RowSources) -> None:
    """Copy an optimizer's state to one that is built on partly other variables.

    Args:
        old: the optimizer with the state.
        new: a built optimizer of the same class.
        sources: where the rows of variables were that `old` does not train.
    """
    if hasattr(old, "inner_optimizer"):
        copy_state(old.inner_optimizer, new.inner_optimizer, sources)
    old_slots, new_slots = optimizer_slots(old), optimizer_slots(new)
    positions = {id(each): position for position, each in enumerate(optimizer_variables(old))}
    for name in new_slots.keys() & old_slots.keys():
        for variable, slot in zip(optimizer_variables(new), new_slots[name], strict=True):
            position = positions.get(id(_before(variable, sources)))
            state = None if position is None else old_slots[name][position]
            if state is not None and slot is not None:
                _copy_slot(name, state, slot, variable, sources.get(id(variable)))
    for before, after in zip(_variables_without_slots(old), _variables_without_slots(new), strict=True):
        after.assign(before)


def _before(variable: Any, sources: RowSources) -> Any:
    return sources[id(variable)].old if id(variable) in sources else variable


def _variables_without_slots(optimizer: Any) -> list[Any]:
    """The iterations, the learning rate and the like."""
    inner = getattr(optimizer, "inner_optimizer", None)
    known = {id(each) for slots in optimizer_slots(optimizer).values() for each in slots}
    known |= {id(each) for each in inner.variables} if inner is not None else set()
    return [each for each in optimizer.variables if id(each) not in known]


def _copy_slot(name: str, before: Any, after: Any, variable: Any, source: RowSource | None) -> None:
    # Adafactor's "c" is a factor for each column, which all rows share
    if source is None or (name == "c" and source.transposed == "neither"):
        after.assign(before)
        return
    # the moving average of a row that did not train is the row
    fresh = variable if name == "model_variables_moving_average" else after
    values, state = np.array(keras.ops.convert_to_numpy(fresh)), keras.ops.convert_to_numpy(before)
    # in a transposed table Adafactor's factors of rows and columns change roles, and start again
    if source.transposed != "neither" and values.ndim != 2:
        return
    rows = values.T if source.transposed == "new" else values
    old_rows = state.T if source.transposed == "old" else state
    kept = source.rows >= 0
    rows[kept] = old_rows[source.rows[kept]]
    after.assign(values)
