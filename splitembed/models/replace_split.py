"""A model and a changed split enter; the model on the new split leaves, training as if nothing had happened.

The frozen part of a layer is immutable, so a changed split means a new layer in the old one's place: what that learned,
and the optimizer's slots of surviving rows, move over.
"""

from typing import Any

import numpy as np

from splitembed.errors import SplitError
from splitembed.layers.embedding import SplitEmbedding
from splitembed.models.find_embedding import layers_in
from splitembed.models.owners import put_split
from splitembed.models.split_embedding import split_again
from splitembed.optimizers.optimizer_state import Moved, Rows
from splitembed.split.table import SplitTable
from splitembed.split.thaw_freeze import carried_rows


def replace_split(
    model: Any,
    layer: Any,
    new_split: SplitTable,
    *,
    new_ids: Any = None,
    new_reverse_split: SplitTable | None = None,
) -> Any:
    """Puts one of a model's layers on another split, in place, ready to go on training.

    ```python
    layer = model.get_layer("embedding")
    splitembed.replace_split(model, layer, layer.to_split().thaw(["usr"]))
    ```

    Carried over are the trained rows, the optimizer with its iterations and the slots of the rows that survive, the
    compiled loss and metrics, and all other layers. Rows that begin to train have the slots of a variable that was
    never updated. What else is compiled, and holds the layer too, must be compiled again.

    Args:
        model: of any kind; the layer may lie anywhere in it. Give the outermost one.
        layer: the model's `SplitEmbedding`, or its name.
        new_split: made of `layer.to_split()`, by `thaw`, `freeze`, `grow`, `shrink`, `with_frozen`, or by hand.
        new_ids: `(old num_tokens,)`, the new id of each old one or -1, as `shrink` gives it; for splits without
            strings whose ids have changed.
        new_reverse_split: of a `SplitReversibleEmbedding` whose weights are not tied, that of the logits, made likewise
            of `layer.reverse_embedding.to_split()`; the one that it has by default.

    Returns:
        The model: the same object, in which the same layer is on the new split.

    Raises:
        SplitError: no such layer; another dim; trained rows that are not those of the layer as it is now; or another
            layer that was built for the old number of tokens. The model is as it was then.
    """
    old = _found(model, layer)
    layers, splits = [old], [new_split]
    if getattr(old, "reverse_embedding", None) is not None:
        layers.append(old.reverse_embedding)
        splits.append(old.reverse_embedding.to_split() if new_reverse_split is None else new_reverse_split)
    elif new_reverse_split is not None:
        raise SplitError(
            f"`new_reverse_split` is for a layer whose weights are not tied, and {old.name!r} has one table."
        )
    if len({each.num_tokens for each in splits}) > 1:
        raise SplitError(
            f"`new_split` has {new_split.num_tokens} tokens, the table of the logits {splits[1].num_tokens}: pass "
            f"`new_reverse_split` as well, made likewise of layer.reverse_embedding.to_split()."
        )
    rows = [_rows(each, split, new_ids) for each, split in zip(layers, splits, strict=True)]
    new = split_again(old, *splits)
    variables = [each.trainable_rows for each in layers if each.built]
    made = [new, *([new.reverse_embedding] if len(splits) == 2 else [])]
    carried = {
        id(each.trainable_rows): Moved(before, of_each)
        for each, before, of_each in zip(made, variables, rows, strict=False)
    }
    return put_split(model, old, new, carried)


def _rows(layer: SplitEmbedding, new_split: SplitTable, new_ids: Any) -> Rows:
    """The layer's own row of each trainable row of a split that is to take its place."""
    old_split = layer.to_split()
    if new_split.dim != old_split.dim:
        raise SplitError(f"`new_split` has dim {new_split.dim}; the layer {layer.name!r} has {old_split.dim}.")
    rows = carried_rows(old_split, new_split, new_ids)
    _check_rows(old_split, new_split, rows)
    return rows


def _found(model: Any, layer: Any) -> SplitEmbedding:
    """The layer of the model, by itself or by name."""
    layers = layers_in(model, SplitEmbedding)
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
