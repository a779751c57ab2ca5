"""A model and a trainable.h5 that belongs to its base go in; the same model comes out, with the file's tokens and rows.

By fingerprint: the frozen table that the file was made for must be the embedding's own table, bit for bit.
"""

import os
from typing import Any

from splitembed.errors import FingerprintError, SplitError
from splitembed.layers.embedding import SplitEmbedding
from splitembed.layers.spec import SplitSpec
from splitembed.models.find_embedding import find_embedding, layers_in
from splitembed.models.owners import put_split
from splitembed.models.split_embedding import split_again, split_like, tables_of
from splitembed.split.table import SplitTable
from splitembed.tables import TrainableTable, open_trainable


def load_trainable(path: str | os.PathLike[str], model: Any, *, layer: Any = None) -> Any:
    """Puts what `save_trainable` wrote onto the base model that it was trained on, in place.

    ```python
    lm = keras_hub.models.CausalLM.from_preset("gemma_2b_en")
    splitembed.load_trainable("tools.h5", lm)     # as split_embedding left it, with the rows as they were trained
    splitembed.load_trainable("poems.h5", lm)     # another one, in the first one's place
    ```

    A plain embedding is split, and one that is split already gets the file's tokens and rows: where they are the same
    tokens, its weight is assigned and nothing else changes, else another layer takes its place. The frozen rows stay
    where they are. Reading them once for their fingerprint takes about a second a GB. A compiled model stays so, and
    its optimizer goes on; for rows of other tokens it starts anew.

    Args:
        path: the file.
        model: any Keras model that holds the base's embedding. Give the outermost one.
        layer: the embedding or its name, where there are several; by default the one that is split, else the one that
            `split_embedding` would take.

    Returns:
        The model: the same object.

    Raises:
        FingerprintError: the model's table is another one than that of the file; both fingerprints are named.
        TableFormatError: the file is foreign, cut short, damaged or too new.
        SplitError: no such embedding, or several; one of another dim or with fewer rows, or tied where the file is not.
            Whatever is raised, the model is as it was.
    """
    adapter = open_trainable(path, verify=True)
    found = _found(model, layer)
    bases = _bases(found)
    parts = [each for each in (adapter, adapter.reverse) if each is not None]
    where = f"{found.name!r} of {model.name!r}"
    if len(parts) != len(bases):
        raise SplitError(
            f"{adapter.path} holds {_told(len(parts))}; the embedding {where} has {_told(len(bases))}. Load it onto "
            "the model that it was trained on."
        )
    for part, base in zip(parts, bases, strict=True):
        _check(part, base, adapter.path, where if part is adapter else f"{where}, that of its logits,")
    splits = [_on(base, part, adapter) for part, base in zip(parts, bases, strict=True)]
    if isinstance(found, SplitEmbedding) and all(map(_is_same_but_for_rows, splits, bases)):
        return _assigned(model, found, splits)
    new = split_again(found, *splits) if isinstance(found, SplitEmbedding) else split_like(found, *splits)
    return put_split(model, found, new, {})


def _told(num_tables: int) -> str:
    return "one table" if num_tables == 1 else "two tables, as its weights are not tied"


def _found(model: Any, layer: Any) -> Any:
    """The embedding of the model: one that is split, else a plain one."""
    splits = layers_in(model, SplitEmbedding)
    named = [each for each in splits if layer is None or each is layer or each.name == layer]
    if len(named) > 1:
        names = ", ".join(repr(each.name) for each in named)
        raise SplitError(f"The SplitEmbeddings of {model.name!r} are: {names}. Say by `layer` which one to load onto.")
    return named[0] if named else find_embedding(model, layer)


def _bases(layer: Any) -> list[SplitTable]:
    """The split of the embedding, and that of the logits where weights are not tied."""
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
    """The split of the file's rows and tokens on the base's frozen rows, where they are."""
    names = adapter.vocabulary
    return base.with_parts(
        remap=part.remap, trainable=part.vectors, vocabulary=names, padding=part.padding, coverage=None
    )


def _is_same_but_for_rows(new: SplitTable, old: SplitTable) -> bool:
    return SplitSpec.of(new).tables() == SplitSpec.of(old).tables() and new.padding == old.padding


def _assigned(model: Any, layer: SplitEmbedding, splits: list[SplitTable]) -> Any:
    layers = [layer, *([] if len(splits) == 1 else [layer.reverse_embedding])]
    for each, split in zip(layers, splits, strict=True):
        if not each.built:
            each.build()
        each.trainable_rows.assign(split.trainable)
    return model
