"""Keras's lookup layers: a StringLookup, TextVectorization or IntegerLookup goes in; its tokens and slots come out."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from splitembed.errors import VocabularyError
from splitembed.vocabulary.tokens import UNKNOWN_TOKEN, SourceTokens, as_text, with_defaults


def from_layer(layer: Any) -> SourceTokens:
    """Reads a Keras lookup layer by its attributes: Keras itself need not be imported here.

    >>> from types import SimpleNamespace
    >>> layer = SimpleNamespace(num_oov_indices=2, mask_token=0, oov_token=-1, vocabulary_dtype="int64")
    >>> layer.get_vocabulary = lambda: [0, -1, -1, 42]
    >>> found = from_layer(layer)
    >>> found.tokens, found.padding, found.unknown, sorted(found.slots)
    (('0', '-1', '-1', '42'), 0, 1, [0, 1, 2])

    Raises:
        VocabularyError: no lookup layer, one without tokens, or one that sends no tokens to ids.
    """
    lookup = getattr(layer, "_lookup_layer", layer)  # TextVectorization keeps its StringLookup there
    name = type(layer).__name__
    if not all(hasattr(lookup, attribute) for attribute in ("num_oov_indices", "mask_token", "oov_token")):
        raise VocabularyError(f"{name} is no Keras lookup layer. Pass the list that its get_vocabulary() returns.")
    if getattr(lookup, "invert", False):
        raise VocabularyError(f"{name} has invert=True: it turns ids into tokens. Pass the layer that makes the ids.")
    if getattr(lookup, "output_mode", "int") != "int":
        raise VocabularyError(f'{name} must have output_mode="int". Received: output_mode={lookup.output_mode!r}.')
    first_slot = int(lookup.mask_token is not None)
    slots = range(first_slot, first_slot + lookup.num_oov_indices)
    tokens = layer.get_vocabulary()
    if len(tokens) <= slots.stop:
        raise VocabularyError(f"{name} has no tokens yet: call its adapt() or set_vocabulary() first.")
    if lookup.oov_token is None:  # then get_vocabulary() holds None in the slots
        tokens = [*tokens[:first_slot], *[UNKNOWN_TOKEN] * len(slots), *tokens[slots.stop :]]
    texts = as_text(_digits(tokens) if _holds_integers(lookup) else tokens)
    unknown = slots.start if slots else None
    return with_defaults(texts, 0 if first_slot else None, unknown, frozenset(range(slots.stop)))


def _holds_integers(lookup: Any) -> bool:
    return "int" in str(getattr(lookup, "vocabulary_dtype", "string"))


def _digits(tokens: Sequence[Any]) -> list[Any]:
    """Integers as decimal text; what is none stays, to be refused by name."""
    return [str(int(token)) if isinstance(token, (int, np.integer)) else token for token in tokens]
