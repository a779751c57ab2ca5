"""A warning for lookup layers that still have the vocabulary of the split before."""

import warnings
from collections.abc import Sequence
from typing import Any

import keras

from splitembed.errors import VocabularyError, VocabularyWarning
from splitembed.keras_compat import all_layers
from splitembed.models.find_embedding import holds
from splitembed.split.table import SplitTable
from splitembed.vocabulary import read_vocabulary


def warn_of_stale_lookups(models: Sequence[Any], old: SplitTable, new: SplitTable) -> None:
    """Warn of lookup layers whose vocabulary is the old one, so that they do not return the new split's ids.

    Args:
        models: models whose layers are searched.
        old: the split before; also the layer that it or `new` was built from is checked.
        new: the split after.
    """
    if old.vocabulary is None or new.vocabulary is None or old.vocabulary is new.vocabulary:
        return
    before, after = tuple(old.vocabulary), tuple(new.vocabulary)
    if before == after:
        return
    stale = [layer for layer in _lookups(models, old, new) if _is_stale(layer, before, after)]
    if stale:
        names = ", ".join(repr(getattr(layer, "name", type(layer).__name__)) for layer in stale)
        warnings.warn(
            f"These lookup layers still have the old vocabulary: {names}. `new_split` has {len(after)} "
            f"tokens, the old one {len(before)}. Call new_split.update_lookup(layer) before replace_split, or "
            "its ids are not those of the new split.",
            VocabularyWarning,
            stacklevel=3,
        )


def _lookups(models: Sequence[Any], *splits: SplitTable) -> list[Any]:
    """Return the lookup layers in models and those that splits were built from, each once, without inner ones."""
    layers = [layer for model in models if isinstance(model, keras.Layer) for layer in all_layers(model)]
    found = [*layers, *(split.lookup_layer for split in splits)]
    lookups = list({id(layer): layer for layer in found if hasattr(layer, "get_vocabulary")}.values())
    # A TextVectorization holds a StringLookup.
    return [each for each in lookups if not any(each is not other and holds(other, each) for other in lookups)]


def _is_stale(layer: Any, before: tuple[str, ...], after: tuple[str, ...]) -> bool:
    try:
        tokens = read_vocabulary(layer).tokens
    # A layer for another purpose, such as one that maps ids to tokens.
    except VocabularyError:
        return False
    return tokens == before[: len(tokens)] and tokens != after
