"""Load a file of trained tokens and rows onto the base model that they were trained on.

The fingerprint identifies the base: the frozen table that the file was made for must equal the embedding's table to the
bit.
"""

import os
from collections.abc import Sequence
from typing import Any

from splitembed.errors import FingerprintError, SplitError
from splitembed.layers.embedding import SplitEmbedding
from splitembed.layers.spec import SplitSpec
from splitembed.models.find_embedding import find_embedding, find_split, splits_in
from splitembed.models.split_embedding import split_like, tables_of
from splitembed.models.swap_layer import build_like, swap_layer
from splitembed.split.table import SplitTable
from splitembed.tables import TrainableTable, open_trainable


def load_trainable(path: str | os.PathLike[str], model: Any, *, layer: Any = None, also: Sequence[Any] = ()) -> Any:
    """Load what `save_trainable` wrote onto the base model that it was trained on, in place.

    ```python
    lm = keras_hub.models.CausalLM.from_preset("gemma_2b_en")
    splitembed.load_trainable("tools.h5", lm)     # split, with the trained rows
    splitembed.load_trainable("poems.h5", lm)     # replaces the first tokens
    ```

    A plain embedding is split. One that is split already gets the file's tokens and rows: where the tokens are the
    same, its weight is assigned and nothing else changes, else it is replaced. The frozen rows are not copied. Reading
    them once for their fingerprint takes about a second a GB. A compiled model stays compiled and its optimizer keeps
    its state; for rows of other tokens the slots start again.

    Args:
        path: the file.
        model: a Keras model with the base's embedding. Give the outermost one.
        layer: the embedding or its name, where there are several; by default the one that is split, else the one that
            `split_embedding` would take.
        also: models around `model`, as in `split_embedding`. The compiled functions of a model that is not handed over
            continue to compute with the old table until it is compiled again.

    Returns:
        The model: the same object.

    Raises:
        FingerprintError: the model's table is not that of the file; both fingerprints are named.
        TableFormatError: the file is foreign, cut short, damaged or too new.
        SplitError: the model has no such embedding, or several; it has another dim or fewer rows, or is tied where the
            file is not. After any error the model is as it was.
    """
    adapter = open_trainable(path, verify=True)
    found = find_split(model, layer) if splits_in(model, layer) else find_embedding(model, layer)
    bases = _bases(found)
    parts = [each for each in (adapter, adapter.reverse) if each is not None]
    where = f"{found.name!r} of {model.name!r}"
    if len(parts) != len(bases):
        raise SplitError(
            f"{adapter.path} holds {_tables(len(parts))}; the embedding {where} has {_tables(len(bases))}. Load it "
            "onto the model that it was trained on."
        )
    for part, base in zip(parts, bases, strict=True):
        _check(part, base, adapter.path, where if part is adapter else f"{where}, that of its logits,")
    splits = [_on(base, part, adapter) for part, base in zip(parts, bases, strict=True)]
    if not isinstance(found, SplitEmbedding):
        return swap_layer(model, found, split_like(found, *splits), {}, also)
    if all(map(_differ_in_rows_alone, splits, bases)):
        return _assigned(model, found, splits)
    new = found.on_split(*splits)
    if found.built:
        build_like(new, found)
    return swap_layer(model, found, new, {}, also)


def _tables(num_tables: int) -> str:
    return "one table" if num_tables == 1 else "two tables, as its weights are not tied"


def _bases(layer: Any) -> list[SplitTable]:
    """Return the split of the embedding, and that of the logits where weights are not tied."""
    if not isinstance(layer, SplitEmbedding):
        return tables_of(layer)
    reverse = getattr(layer, "reverse_embedding", None)
    return [each.to_split() for each in (layer, reverse) if each is not None]


def _check(part: TrainableTable, base: SplitTable, path: Any, where: str) -> None:
    dim, num_rows = part.vectors.shape[1], int(part.remap.max(initial=-1)) + 1
    if dim != base.dim or num_rows > base.num_frozen:
        raise SplitError(
            f"{path} holds rows of dim {dim}, for a base of {num_rows} rows or more; the table of {where} has dim "
            f"{base.dim} and {base.num_frozen} rows. Load it onto the base that it was trained on."
        )
    if part.frozen_fingerprint != base.fingerprint:
        raise FingerprintError(
            f"{path} was made for the frozen table {part.frozen_fingerprint}; the table of {where} is "
            f"{base.fingerprint} ({base.num_frozen} x {dim}, {base.frozen_dtype}). Load it onto the base that it was "
            "trained on, in the same dtype, before any of that base's own rows have been trained."
        )


def _on(base: SplitTable, part: TrainableTable, adapter: TrainableTable) -> SplitTable:
    """Return the file's rows and tokens as a split on the base's frozen rows, which are not copied."""
    names = adapter.vocabulary
    return base.with_parts(
        remap=part.remap, trainable=part.vectors, vocabulary=names, padding=part.padding, coverage=None
    )


def _differ_in_rows_alone(new: SplitTable, old: SplitTable) -> bool:
    return SplitSpec.of(new).tables() == SplitSpec.of(old).tables() and new.padding == old.padding


def _assigned(model: Any, layer: SplitEmbedding, splits: list[SplitTable]) -> Any:
    layers = [layer, *([] if len(splits) == 1 else [layer.reverse_embedding])]
    for each, split in zip(layers, splits, strict=True):
        if not each.built:
            each.build()
        each.trainable_rows.assign(split.trainable)
    return model
