"""Read and set the vocabulary of a Keras lookup layer: StringLookup, IntegerLookup or TextVectorization."""

from collections.abc import Mapping, Sequence
from typing import Any

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
    slots, has_mask = _slots(layer)
    name, tokens = type(layer).__name__, layer.get_vocabulary()
    if len(tokens) <= len(slots):
        raise VocabularyError(f"{name} has no tokens yet. Call its adapt() or set_vocabulary() first.")
    texts = as_text([*slots, *tokens[len(slots) :]])
    unknown = int(has_mask) if len(slots) > has_mask else None
    return with_defaults(texts, 0 if has_mask else None, unknown, frozenset(range(len(slots))))


def _slots(layer: Any) -> tuple[tuple[str, ...], bool]:
    """Return the tokens of a layer's mask and OOV slots, and whether it has a mask token.

    Raises:
        VocabularyError: the layer is not a lookup layer, or does not map tokens to ids.
    """
    name, options = type(layer).__name__, _options(layer)
    if not _TEXT_VECTORIZATION.keys() <= options.keys():
        raise VocabularyError(f"{name} is not a Keras lookup layer. Pass the list that its get_vocabulary() returns.")
    if options.get("invert"):
        raise VocabularyError(f"{name} has invert=True: it maps ids to tokens. Pass the layer that maps tokens to ids.")
    if options.get("output_mode", "int") != "int":
        raise VocabularyError(f'{name} must have output_mode="int". Received: output_mode={options["output_mode"]!r}.')
    # Without an OOV token, get_vocabulary() holds None in the slots.
    unknown = UNKNOWN_TOKEN if options["oov_token"] is None else options["oov_token"]
    mask = [] if options["mask_token"] is None else [options["mask_token"]]
    return as_text([*mask, *[unknown] * options["num_oov_indices"]]), bool(mask)


def update_layer(layer: Any, tokens: Sequence[str]) -> None:
    """Set the vocabulary of a Keras lookup layer to tokens in id order, which start with its mask and OOV tokens.

    Raises:
        VocabularyError: the layer is not a lookup layer, has other mask or OOV tokens, has too small `max_tokens`, is a
            TextVectorization that was made with `vocabulary`, or cannot hold a token.
    """
    (slots, _), name, options = _slots(layer), type(layer).__name__, _options(layer)
    if tuple(tokens[: len(slots)]) != slots:
        raise VocabularyError(
            f"{name} has the mask and OOV tokens {list(slots)}; expected those of the split: "
            f"{list(tokens[: len(slots)])}. Make a layer with these mask_token, oov_token and num_oov_indices."
        )
    limit = options.get("max_tokens")
    if limit is not None and limit < len(tokens):
        raise _needs_new_layer(
            f"{name} has max_tokens={limit}, but the split has {len(tokens)} tokens", "max_tokens=None"
        )
    is_made_with_tokens = options.get("vocabulary") is not None
    if is_made_with_tokens and not hasattr(layer, "input_vocabulary"):
        raise _needs_new_layer(
            f"{name} was made with `vocabulary`, which its saved config would restore", "the new one"
        )
    is_integer = "int" in str(options.get("vocabulary_dtype"))
    try:
        words = [int(token) for token in tokens[len(slots) :]] if is_integer else list(tokens[len(slots) :])
        layer.set_vocabulary(words)
    except ValueError as error:
        raise VocabularyError(f"{name} cannot have the vocabulary of the split: {error}") from error
    if is_made_with_tokens:
        # The config saves these in place of the vocabulary that is set later.
        layer.input_vocabulary = words


def _needs_new_layer(reason: str, change: str) -> VocabularyError:
    return VocabularyError(
        f"{reason}. Make a new layer with the same options, but {change}: from_config() of its class, with a changed "
        "get_config()."
    )


def _options(layer: Any) -> Mapping[str, Any]:
    config = layer.get_config() if hasattr(layer, "get_config") else {}
    return {**_TEXT_VECTORIZATION, **config} if "standardize" in config else config
