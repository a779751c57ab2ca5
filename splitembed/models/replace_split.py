"""Put a layer of a model on a changed split, and let training continue.

The frozen part of a layer is immutable, so that a changed split needs a new layer. The trained
rows, and the optimizer's slots of rows that still train, are copied.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from splitembed.errors import SplitError
from splitembed.layers.embedding import SplitEmbedding
from splitembed.models.find_embedding import find_split
from splitembed.models.stale_lookups import warn_of_stale_lookups
from splitembed.models.swap_layer import build_like, swap_layer
from splitembed.optimizers.optimizer_state import Rows, RowSource
from splitembed.split.table import SplitTable, split_of
from splitembed.split.thaw_freeze import carried_rows


def replace_split(
    model: Any,
    layer: Any,
    new_split: SplitTable,
    *,
    new_ids: Any = None,
    new_reverse_split: SplitTable | None = None,
    also: Sequence[Any] = (),
) -> Any:
    """Put one of a model's layers on another split in place, ready to train on.

    ```python
    layer = model.get_layer("embedding")
    splitembed.replace_split(model, layer, layer.to_split().thaw(["usr"]))
    ```

    The trained rows, the optimizer with its iterations and the slots of rows that still train, the compiled loss and
    metrics, and all other layers are kept. Rows that begin to train have the slots of a variable that was never
    updated.

    Args:
        model: a Keras model, in which the layer may be at any depth. Give the outermost one.
        layer: the model's `SplitEmbedding`, or its name.
        new_split: made of `layer.to_split()`, by `thaw`, `freeze`, `grow`, `shrink`, `with_frozen`, or by hand.
        new_ids: `(old num_tokens,)`, the new id of each old one or -1, the `id_mapping` that `shrink` sets; for splits
            without strings whose ids have changed.
        new_reverse_split: for a `SplitReversibleEmbedding` whose weights are not tied, the split of the logits, made
            likewise of `layer.reverse_embedding.to_split()`; by default the present one.
        also: models around `model`, as in `split_embedding`. The compiled functions of a model that is not handed over
            continue to compute with the old split until it is compiled again.

    Returns:
        The model: the same object, in which the same layer is on the new split.

    Warns:
        VocabularyWarning: a lookup layer in the model, or the one that the split was built from, still has the old
            vocabulary.

    Raises:
        SplitError: the model has no such layer; the new split has another dim; its trained rows are not those that the
            layer has now; another layer was built for the old number of tokens; or a model in `also` does not hold the
            layer. The model is as it was then.
    """
    old, new_split = find_split(model, layer), split_of(new_split, "new_split")
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
            f"`new_reverse_split` too, made likewise of layer.reverse_embedding.to_split()."
        )
    rows = [_rows(each, split, new_ids) for each, split in zip(layers, splits, strict=True)]
    warn_of_stale_lookups((model, *also), old.to_split(), new_split)
    new = old.on_split(*splits)
    if not old.built:
        return swap_layer(model, old, new, {}, also)
    build_like(new, old)
    made = [new, *([new.reverse_embedding] if len(splits) == 2 else [])]
    sources = {
        id(each.trainable_rows): RowSource(before.trainable_rows, of_each)
        for each, before, of_each in zip(made, layers, rows, strict=True)
    }
    return swap_layer(model, old, new, sources, also)


def _rows(layer: SplitEmbedding, new_split: SplitTable, new_ids: Any) -> Rows:
    """Return, for each trainable row of a new split, its row in the layer, or -1."""
    old_split = layer.to_split()
    if new_split.dim != old_split.dim:
        raise SplitError(f"`new_split` has dim {new_split.dim}; the layer {layer.name!r} has {old_split.dim}.")
    rows = carried_rows(old_split, new_split, new_ids)
    _check_rows(old_split, new_split, rows)
    return rows


def _check_rows(old: SplitTable, new: SplitTable, rows: Rows) -> None:
    """Refuse a split that would replace trained rows by rows from before the training."""
    survive = rows >= 0
    before, after = (each.view(np.uint32) for each in (old.trainable[rows[survive]], new.trainable[survive]))
    # compared as bits, in which a NaN equals itself
    moved = (before != after).any(axis=1)
    if moved.any():
        raise SplitError(
            f"{np.count_nonzero(moved)} of {len(moved)} trainable rows of `new_split` are not those of the layer as it "
            "is now, so training would be lost. Make the new split of layer.to_split(). Set other rows by "
            "layer.assign_rows after this call."
        )
