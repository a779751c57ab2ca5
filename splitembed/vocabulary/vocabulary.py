"""What a vocabulary is: tokens in id order, the ids that are no words, and what tokens are called in vector files."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.vocabulary.selections import resolve_ids


@dataclass(frozen=True, repr=False)
class Vocabulary:
    """The tokens in id order, and the ids that are no ordinary words.

    >>> from splitembed.vocabulary import read_vocabulary
    >>> vocabulary = read_vocabulary(["", "[UNK]", "sky", "red"])
    >>> vocabulary
    Vocabulary(num_tokens=4, padding=0, unknown=1, num_reserved=2)
    >>> vocabulary.index["red"], vocabulary.is_ordinary.tolist()
    (3, [False, False, True, True])

    A subword is looked for without its mark, and a continuation of a word is never looked for. `tokens` stay as they
    are, and are what a split stores:

    >>> read_vocabulary(["play", "##ing"], marks="wordpiece").spellings
    ('play', None)

    Args:
        tokens: the tokens; `tokens[id]` belongs to `id`.
        padding: the id whose row is zero and frozen, or None.
        reserved: ids that never match a pretrained word: padding, `[UNK]`, out-of-vocabulary slots, blank lines,
            special tokens, ids that no token has.
        unknown: the id that stands for tokens outside the vocabulary, or None.
        spellings: what each token is called in files of vectors, None for one that is no word; or None where tokens
            are called what they are.
        marks: the rule that made the spellings: "wordpiece", "metaspace", "byte-level" or "word-end"; None for none.
        has_strings: False where ids have no strings; the tokens are then the decimal digits of the ids.
    """

    tokens: tuple[str, ...]
    padding: int | None
    reserved: frozenset[int]
    unknown: int | None
    spellings: tuple[str | None, ...] | None = None
    marks: str | None = None
    has_strings: bool = True

    @property
    def num_tokens(self) -> int:
        """Number of ids: every id is in `0 <= id < num_tokens`."""
        return len(self.tokens)

    @cached_property
    def index(self) -> dict[str, int]:
        """Token to id: of ids with the same token the first ordinary one, else the first reserved one."""
        backwards = range(self.num_tokens - 1, -1, -1)
        index = dict(zip(reversed(self.tokens), backwards, strict=True))
        if len(index) < self.num_tokens:
            index.update((self.tokens[place], place) for place in backwards if place not in self.reserved)
        return index

    @cached_property
    def is_ordinary(self) -> NDArray[np.bool_]:
        """`(num_tokens,)` bool: False where the id is reserved; read-only."""
        ordinary = np.ones(self.num_tokens, bool)
        ordinary[list(self.reserved)] = False
        ordinary.flags.writeable = False
        return ordinary

    def ids(self, selection: Any) -> NDArray[np.int64]:
        """Turns tokens, ids, both mixed, or a boolean mask into ids: `resolve_ids` with this vocabulary.

        >>> from splitembed.vocabulary import read_vocabulary
        >>> read_vocabulary(["sky", "red", "blue"]).ids(["blue", 0]).tolist()
        [2, 0]
        """
        return resolve_ids(selection, self.num_tokens, self._lazy_index if self.has_strings else None)

    def _lazy_index(self) -> Mapping[str, int]:
        return self.index

    def __repr__(self) -> str:
        marks = "" if self.marks is None else f", marks={self.marks!r}"
        return (
            f"Vocabulary(num_tokens={self.num_tokens}, padding={self.padding}, unknown={self.unknown}, "
            f"num_reserved={len(self.reserved)}{marks})"
        )
