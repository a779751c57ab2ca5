"""The `Vocabulary`: tokens in id order, reserved ids, and the spellings of tokens in vector files."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.vocabulary.selections import resolve_ids
from splitembed.words import first_indices


@dataclass(frozen=True, repr=False)
class Vocabulary:
    """The tokens in id order, the reserved ids, and the spellings of tokens in vector files.

    >>> from splitembed.vocabulary import read_vocabulary
    >>> vocabulary = read_vocabulary(["", "[UNK]", "sky", "red"])
    >>> vocabulary
    Vocabulary(num_tokens=4, padding=0, unknown=1, num_reserved=2)
    >>> vocabulary.index["red"], vocabulary.is_ordinary.tolist()
    (3, [False, False, True, True])

    A subword is matched without its mark, and a continuation of a word is never matched. `tokens` are unchanged, and a
    split stores them:

    >>> read_vocabulary(["play", "##ing"], marks="wordpiece").spellings
    ('play', None)

    Args:
        tokens: the tokens; `tokens[id]` belongs to `id`.
        padding: the id whose row is zero and frozen, or None.
        reserved: ids that never match a pretrained word: padding, `[UNK]`, out-of-vocabulary slots, blank lines,
            special tokens, ids without a token.
        unknown: the id of tokens outside the vocabulary (OOV), or None.
        spellings: the spelling of each token in vector files, None for a token that is not a word; None instead of a
            tuple where all tokens are spelled as they are.
        marks: the rule of the spellings: "wordpiece", "metaspace", "byte-level" or "word-end"; None without marks.
        has_strings: False for ids without strings, whose tokens are the decimal digits of the ids.
        gaps: the reserved ids without a token, whose `tokens` are placeholders; a split gives them one zero row.
    """

    tokens: tuple[str, ...]
    padding: int | None
    reserved: frozenset[int]
    unknown: int | None
    spellings: tuple[str | None, ...] | None = None
    marks: str | None = None
    has_strings: bool = True
    gaps: frozenset[int] = frozenset()

    @property
    def num_tokens(self) -> int:
        """Number of ids: every id is in `0 <= id < num_tokens`."""
        return len(self.tokens)

    @cached_property
    def index(self) -> dict[str, int]:
        """The id of each token: of ids with the same token the first ordinary one, else the first reserved one."""
        index = first_indices(self.tokens)
        if len(index) < self.num_tokens:
            backwards = range(self.num_tokens - 1, -1, -1)
            index.update((self.tokens[token_id], token_id) for token_id in backwards if token_id not in self.reserved)
        return index

    @cached_property
    def is_ordinary(self) -> NDArray[np.bool_]:
        """`(num_tokens,)` bool: False where the id is reserved; read-only."""
        ordinary = np.ones(self.num_tokens, bool)
        ordinary[list(self.reserved)] = False
        ordinary.flags.writeable = False
        return ordinary

    def ids(self, selection: Any) -> NDArray[np.int64]:
        """Return the ids of a selection: tokens, ids, both mixed, or a boolean mask. See `resolve_ids`.

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
