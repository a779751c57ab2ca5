"""Initializers that compute a row from the spelling of its token.

Such an initializer is the name "subwords" or "ngrams", or an object with a method `make_rows`.
"""

import inspect
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from splitembed.errors import SplitError
from splitembed.initializers.ngrams import NgramRidge
from splitembed.vectors import WordVectors

TOKEN_NAMES = ("subwords", "ngrams")


class TokenInitializer(Protocol):
    """An object that makes rows from tokens, such as `SubwordVectors` and `NgramRidge`."""

    def make_rows(self, tokens: Sequence[str], known: WordVectors, generator: np.random.Generator) -> Any:
        """Return `(num_tokens, dim)` numbers for tokens, from the known words and a random generator."""


def needs_tokens(initializer: Any) -> bool:
    """Return whether an initializer computes rows from the tokens themselves.

    >>> needs_tokens("ngrams"), needs_tokens(NgramRidge()), needs_tokens("zeros")
    (True, True, False)
    """
    if isinstance(initializer, str):
        return initializer in TOKEN_NAMES
    return hasattr(initializer, "make_rows") and not inspect.isclass(initializer)


def make_token_rows(
    initializer: Any, tokens: Sequence[str] | int, known: WordVectors | None, generator: np.random.Generator
) -> Any:
    """Return the rows that an initializer makes from tokens.

    >>> class Lengths:
    ...     def make_rows(self, tokens, known, generator):
    ...         return np.array([[len(token)] for token in tokens])
    >>> make_token_rows(Lengths(), ["a", "the"], None, np.random.default_rng(0)).tolist()
    [[1], [3]]

    Args:
        initializer: an initializer for which `needs_tokens` is true.
        tokens: the tokens.
        known: pretrained words with their vectors, or None.
        generator: the random generator of the initializer.

    Returns:
        The unchecked result of the initializer.

    Raises:
        SplitError: `tokens` is only their number, or the named initializer needs known words, or known words of a
            fastText model.
    """
    if not isinstance(tokens, Sequence):
        raise SplitError(
            f"`tokens` must be a sequence of tokens for the initializer {initializer!r}. Received: their number, "
            f"{tokens!r}."
        )
    if known is None and isinstance(initializer, str):
        raise SplitError(f'The initializer "{initializer}" needs `known` words. Received: None. Use "uniform".')
    return _resolved(initializer, known).make_rows(list(tokens), known, generator)


def _resolved(initializer: Any, known: WordVectors | None) -> Any:
    """Return the object that a name stands for."""
    if not isinstance(initializer, str):
        return initializer
    if initializer == "ngrams":
        return NgramRidge()
    assert known is not None
    if known.subwords is None:
        raise SplitError(
            'The initializer "subwords" needs vectors of a fastText .bin model. Received: vectors of '
            f"{known.source}, which come without subwords. "
            'Pass SubwordVectors("model.bin") as the initializer, or read the vectors from the model.'
        )
    return known.subwords
