"""How rows start that depend on what their tokens are called: an initializer, tokens and known words enter; rows leave.

Such an initializer is the name "subwords" or "ngrams", or an object with `make_rows`.
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
    """Makes rows from tokens, as `SubwordVectors` and `NgramRidge` do."""

    def make_rows(self, tokens: Sequence[str], known: WordVectors, generator: np.random.Generator) -> Any:
        """Makes `(num_tokens, dim)` numbers from tokens, the known words with their rows, and a source of chance."""


def looks_at_tokens(initializer: Any) -> bool:
    """Says whether an initializer is such a name or object.

    >>> looks_at_tokens("ngrams"), looks_at_tokens(NgramRidge()), looks_at_tokens("zeros")
    (True, True, False)
    """
    if isinstance(initializer, str):
        return initializer in TOKEN_NAMES
    return hasattr(initializer, "make_rows") and not inspect.isclass(initializer)


def make_token_rows(
    initializer: Any, tokens: Sequence[str] | int, known: WordVectors | None, generator: np.random.Generator
) -> Any:
    """Has an initializer make the rows of tokens.

    >>> class Lengths:
    ...     def make_rows(self, tokens, known, generator):
    ...         return np.array([[len(token)] for token in tokens])
    >>> make_token_rows(Lengths(), ["a", "the"], None, np.random.default_rng(0)).tolist()
    [[1], [3]]

    Args:
        initializer: for which `looks_at_tokens` is true.
        tokens: the tokens.
        known: words that have vectors; None where there are none.
        generator: what an initializer draws from.

    Returns:
        What the initializer gave, unchecked.

    Raises:
        SplitError: the tokens' number in place of the tokens; no known words, or none from a fastText model, where the
            initializer needs them.
    """
    if not isinstance(tokens, Sequence):
        raise SplitError(
            f"The initializer {initializer!r} looks at the tokens. Received: their number, {tokens!r}. Pass a sequence "
            "of tokens."
        )
    if known is None and isinstance(initializer, str):
        raise SplitError(f'The initializer "{initializer}" needs known words, and there are none. Use "uniform".')
    return _maker(initializer, known).make_rows(list(tokens), known, generator)


def _maker(initializer: Any, known: WordVectors | None) -> Any:
    if not isinstance(initializer, str):
        return initializer
    if initializer == "ngrams":
        return NgramRidge()
    assert known is not None
    if known.subwords is None:
        raise SplitError(
            f'The initializer "subwords" needs a fastText .bin model; found the vectors of {known.source}, which come '
            'without. Pass the model itself as the initializer, SubwordVectors("model.bin"), or read vectors from it.'
        )
    return known.subwords
