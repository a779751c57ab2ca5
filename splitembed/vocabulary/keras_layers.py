"""Read the vocabulary of a Keras lookup layer: StringLookup, IntegerLookup or TextVectorization."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from splitembed.errors import VocabularyError
from splitembed.vocabulary.tokens import UNKNOWN_TOKEN, SourceTokens, as_text, with_defaults

# The options of the StringLookup inside a TextVectorization, which its config does not name.
_TEXT_VECTORIZATION = {"num_oov_indices": 1, "mask_token": "", "oov_token": UNKNOWN_TOKEN}


def from_layer(layer: Any) -> SourceTokens:
    """Read a Keras lookup layer by its config and `get_vocabulary`, without importing Keras.

    >>> from types import SimpleNamespace
    >>> config = dict(num_oov_indices=2, mask_token=0, oov_token=-1, vocabulary_dtype="int64")
    >>> layer = SimpleNamespace(get_config=lambda: config, get_vocabulary=lambda: [0, -1, -1, 42])
    >>> found = from_layer(layer)
    >>> found.tokens, found.padding, found.unknown, sorted(found.slots)
    (('0', '-1', '-1', '42'), 0, 1, [0, 1, 2])

    Raises:
        VocabularyError: the layer is not a lookup layer, has no tokens, or does not map tokens to ids.
    """
    name, options = type(layer).__name__, _options(layer)
    if not _TEXT_VECTORIZATION.keys() <= options.keys():
        raise VocabularyError(f"{name} is not a Keras lookup layer. Pass the list that its get_vocabulary() returns.")
    if options.get("invert"):
        raise VocabularyError(f"{name} has invert=True: it maps ids to tokens. Pass the layer that maps tokens to ids.")
    if options.get("output_mode", "int") != "int":
        raise VocabularyError(f'{name} must have output_mode="int". Received: output_mode={options["output_mode"]!r}.')
    first_slot = int(options["mask_token"] is not None)
    slots = range(first_slot, first_slot + options["num_oov_indices"])
    tokens = layer.get_vocabulary()
    if len(tokens) <= slots.stop:
        raise VocabularyError(f"{name} has no tokens yet. Call its adapt() or set_vocabulary() first.")
    # Without an OOV token, get_vocabulary() holds None in the slots.
    if options["oov_token"] is None:
        tokens = [*tokens[:first_slot], *[UNKNOWN_TOKEN] * len(slots), *tokens[slots.stop :]]
    texts = as_text(_digits(tokens) if "int" in str(options.get("vocabulary_dtype")) else tokens)
    unknown = slots.start if slots else None
    return with_defaults(texts, 0 if first_slot else None, unknown, frozenset(range(slots.stop)))


def _options(layer: Any) -> Mapping[str, Any]:
    config = layer.get_config() if hasattr(layer, "get_config") else {}
    return {**_TEXT_VECTORIZATION, **config} if "standardize" in config else config


def _digits(tokens: Sequence[Any]) -> list[Any]:
    """Return integers as decimal text; other items are unchanged, so that an error can name them."""
    return [str(int(token)) if isinstance(token, (int, np.integer)) else token for token in tokens]
