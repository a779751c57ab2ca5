"""A model and a changed split enter; the model on the new split leaves, training as if nothing had happened.

The frozen part of a layer is immutable, so a changed split means a new layer: what the old one learned, the optimizer's
slots of surviving rows and every other layer move over.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import keras
import numpy as np

from splitembed.carrying import Rows, compile_like
from splitembed.errors import SplitError
from splitembed.layer import SplitEmbedding
from splitembed.life import carried_rows
from splitembed.spec import LIVE, SplitSpec
from splitembed.split import SplitTable


def replace_split(model: Any, layer: Any, new_split: SplitTable, *, new_ids: Any = None) -> Any:
    """Gives the model with one of its layers on another split, ready to go on training.

    ```python
    layer = model.get_layer("embedding")
    model = splitembed.replace_split(model, layer, layer.to_split().thaw(["usr"]))
    ```

    Carried over are the trained rows, the optimizer with its iterations and the slots of the rows that survive, the
    compiled loss and metrics, and all other layers, which the two models then share: go on with the new one alone. Rows
    that begin to train have the slots of a variable that was never updated.

    Args:
        model: functional, Sequential or subclassed; the layer may lie in a model or layer inside it. Functional and
            Sequential models are built anew; of others, the attribute that holds the layer is set, in place.
        layer: the model's `SplitEmbedding`, or its name.
        new_split: made of `layer.to_split()`, by `thaw`, `freeze`, `grow`, `shrink`, `with_frozen`, or by hand.
        new_ids: `(old num_tokens,)`, the new id of each old one or -1, as `shrink` gives it; for splits without
            strings whose ids have changed.

    Returns:
        The model on the new split.

    Raises:
        SplitError: no such layer; another dim; trained rows that are not those of the layer as it is now; or a model
            whose making is not known.
    """
    old = _found(model, layer)
    old_split = old.to_split()
    if new_split.dim != old_split.dim:
        raise SplitError(f"`new_split` has dim {new_split.dim}; the layer {old.name!r} has {old_split.dim}.")
    rows = carried_rows(old_split, new_split, new_ids)
    _check_rows(old_split, new_split, rows)
    spec = SplitSpec.of(new_split)
    LIVE[spec] = new_split
    new = type(old).from_config({**old.get_config(), "split": asdict(spec)})
    if old.built:
        new.build()
    replaced = _with_layer(model, old, new)
    if getattr(model, "compiled", False):
        compile_like(model, replaced, {id(new.trainable_rows): old.trainable_rows} if old.built else {}, rows)
    return replaced


def _found(model: Any, layer: Any) -> SplitEmbedding:
    """The layer of the model, by itself or by name."""
    layers = [each for each in model._flatten_layers() if isinstance(each, SplitEmbedding)]
    for each in layers:
        if each is layer or each.name == layer:
            return each
    names = ", ".join(repr(each.name) for each in layers) or "none"
    raise SplitError(
        f"`layer` must be a SplitEmbedding of the model {model.name!r}, whose SplitEmbedding layers are: {names}. "
        f"Received: {layer!r}."
    )


def _check_rows(old: SplitTable, new: SplitTable, rows: Rows) -> None:
    """Refuses a split that would put rows from before the training in the place of trained ones."""
    survive = rows >= 0
    before, after = (each.view(np.uint32) for each in (old.trainable[rows[survive]], new.trainable[survive]))
    moved = (before != after).any(axis=1)  # by their bits: a NaN is what it was
    if moved.any():
        raise SplitError(
            f"{np.count_nonzero(moved)} of {len(moved)} trainable rows of `new_split` are not those of the layer as it "
            "is now, so training would be lost. Make the new split of layer.to_split(); rows of your own go in after "
            "this, by layer.assign_rows."
        )


def _with_layer(owner: Any, old: Any, new: Any) -> Any:
    """The owner with the new layer in the old one's place: built anew where that can be, else changed in place."""
    if owner is old:
        return new
    if not isinstance(owner, keras.Layer) or old not in owner._flatten_layers():
        return owner
    if isinstance(owner, keras.Sequential) or _is_functional(owner):
        return _cloned(owner, lambda each: _with_layer(each, old, new))
    for inner in owner._layers:
        if inner is old or old in inner._flatten_layers():
            _set_attribute(owner, inner, _with_layer(inner, old, new))
    return owner


def _is_functional(model: Any) -> bool:
    functional: bool = hasattr(model, "_run_through_graph") and hasattr(model, "operations")
    return functional


def _cloned(model: Any, clone: Callable[[Any], Any]) -> Any:
    """The model built anew of the same layers, but for one; not compiled: Keras would make the optimizer anew."""
    compiled, model.compiled = model.compiled, False
    try:
        cloned = keras.models.clone_model(model, clone_function=clone)
    finally:
        model.compiled = compiled
    if type(cloned) is not type(model):
        raise SplitError(
            f"The model {model.name!r} is a {type(model).__name__}, which takes no (inputs, outputs), so it cannot "
            "be built anew. Give it such a constructor, or hold the layer in an attribute of a subclassed model."
        )
    cloned.trainable = model.trainable
    return cloned


def _set_attribute(owner: Any, inner: Any, replaced: Any) -> None:
    """Sets the attribute that holds a layer; Keras has locked what a built layer tracks."""
    if replaced is inner:
        return
    names = [name for name, value in vars(owner).items() if value is inner]
    if not names:
        raise SplitError(
            f"{owner.name!r} (a {type(owner).__name__}) does not hold the layer {inner.name!r} in an attribute of its "
            "own, perhaps in a list. Hold it in an attribute."
        )
    place = next(index for index, each in enumerate(owner._layers) if each is inner)
    owner._tracker.unlock()
    owner._tracker.untrack(inner)
    for name in names:
        setattr(owner, name, replaced)
    owner._layers.insert(place, owner._layers.pop())  # where the old one was: the order of weights is that of layers
    if owner.built:
        owner._tracker.lock()
