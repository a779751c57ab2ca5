"""Matching of a vocabulary's tokens to the words of pretrained vectors.

All candidate spellings are computed first, so that one pass over a file finds them. The match of a token depends on the
token, the rules and the words, and not on the other tokens.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import NO_ROW
from splitembed.matching.rules import EXACT, Rule, read_rules, spell_all
from splitembed.vectors import WordVectors
from splitembed.vocabulary import Vocabulary
from splitembed.words import first_indices

# The rule of a token that matches no word.
NO_RULE = -1


@dataclass(frozen=True, eq=False)
class Match:
    """The row of each token's word, and the rule that found it.

    >>> from splitembed.vocabulary import read_vocabulary
    >>> match = find_candidates(read_vocabulary(["", "The", "usr"]), ["lower"]).match(["of", "the"])
    >>> match.rows.tolist(), [match.rules[each] for each in match.rule if each >= 0]
    ([-1, 1, -1], ['lower'])
    >>> match.is_matched.tolist(), match.is_fallback.tolist()
    ([False, True, False], [False, True, False])

    Args:
        rows: int64 `(num_tokens,)`: the index of the word that the token matches, or -1.
        rule: int16 `(num_tokens,)`: the index in `rules` of the rule that found it, or -1.
        rules: the names of the rules: "exact", then the rule of the tokenizer's marks if the vocabulary has one, then
            the fallbacks.
        num_fallbacks: number of fallbacks among the rules.
    """

    rows: NDArray[np.int64]
    rule: NDArray[np.int16]
    rules: tuple[str, ...]
    num_fallbacks: int = 0

    @property
    def is_matched(self) -> NDArray[np.bool_]:
        """`(num_tokens,)` bool: whether the token has a row."""
        is_matched: NDArray[np.bool_] = self.rows != NO_ROW
        return is_matched

    @property
    def is_fallback(self) -> NDArray[np.bool_]:
        """`(num_tokens,)` bool: whether the token has a row that a fallback found."""
        is_fallback: NDArray[np.bool_] = self.rule >= len(self.rules) - self.num_fallbacks
        return is_fallback


@dataclass(frozen=True, eq=False)
class _Step:
    """The token ids and spellings that one rule looks for; spellings of one id in the order in which they are tried."""

    rule: int
    ids: NDArray[np.int64]
    spellings: list[str]


@dataclass(frozen=True, eq=False)
class Candidates:
    """All spellings that tokens can match, made by `find_candidates`."""

    num_tokens: int
    rules: tuple[str, ...]
    num_fallbacks: int
    steps: tuple[_Step, ...]

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word to look for in the source."""
        return frozenset(itertools.chain.from_iterable(step.spellings for step in self.steps))

    def match(self, words: Sequence[str]) -> Match:
        """Match each token to the first of its spellings among the words, and to the first of duplicate words.

        >>> from splitembed.vocabulary import read_vocabulary
        >>> find_candidates(read_vocabulary(["Usr", "usr"]), ["lower"]).match(["usr", "usr"]).rows.tolist()
        [0, 0]

        Args:
            words: words in the order of their rows.
        """
        return self._found(first_indices(words, self.words))

    def match_vectors(self, vectors: WordVectors) -> Match:
        """Match the tokens to the words of vectors. A row of a frozen table without a word has the word "".

        >>> from splitembed.vectors import read_vectors
        >>> from splitembed.vocabulary import read_vocabulary
        >>> find_candidates(read_vocabulary(["of", "usr"])).match_vectors(read_vectors({"usr": [1.0]})).rows.tolist()
        [-1, 0]
        """
        row_of = first_indices(vectors.words, self.words)
        if vectors.table is not None:
            row_of.pop("", None)
        return self._found(row_of)

    def _found(self, row_of: dict[str, int]) -> Match:
        rows = np.full(self.num_tokens, NO_ROW, np.int64)
        rule = np.full(self.num_tokens, NO_RULE, np.int16)
        for step in self.steps:
            candidates = map(row_of.get, step.spellings, itertools.repeat(NO_ROW))
            found = np.fromiter(candidates, np.int64, len(step.spellings))
            # Reversed, so that the first spelling of an id is assigned last.
            new = np.flatnonzero((found != NO_ROW) & (rows[step.ids] == NO_ROW))[::-1]
            rows[step.ids[new]] = found[new]
            rule[step.ids[new]] = step.rule
        return Match(rows, rule, self.rules, self.num_fallbacks)


def find_candidates(vocabulary: Vocabulary, fallbacks: Any = ()) -> Candidates:
    """Compute every word that a token of the vocabulary can match. Reserved ids have no candidates.

    >>> from splitembed.vocabulary import read_vocabulary
    >>> candidates = find_candidates(read_vocabulary(["", "[UNK]", "Café"]), ["lower", "lower+accents"])
    >>> sorted(candidates.words)
    ['Café', 'cafe', 'café']
    >>> candidates.match(["cafe", "unk", ""]).rows.tolist()
    [-1, -1, 0]

    Args:
        vocabulary: the tokens. If it has `spellings`, those are looked up in place of the tokens, also by fallbacks.
        fallbacks: rules that `read_rules` accepts, tried in their order for tokens without an exact match.

    Raises:
        SplitError: a fallback is invalid, or fails on a token.
    """
    rules = read_rules(fallbacks)
    marks = _marks(vocabulary)
    ids, names = _names(vocabulary)
    is_exact = _is_exact(vocabulary, ids, names) if marks else np.ones(len(ids), bool)
    steps = [_Step(0, ids[is_exact], list(itertools.compress(names, is_exact.tolist())))]
    if marks:
        steps.append(_Step(1, ids[~is_exact], list(itertools.compress(names, (~is_exact).tolist()))))
    for number, rule in enumerate(rules, len(steps)):
        steps.append(_step(number, rule, ids, names))
    named = (EXACT, *marks, *(rule.name for rule in rules))
    return Candidates(vocabulary.num_tokens, named, len(rules), tuple(steps))


def _marks(vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the name of the rule that spells a tokenizer's tokens as words, if there is one."""
    return () if vocabulary.spellings is None else (vocabulary.marks or "spelling",)


def _names(vocabulary: Vocabulary) -> tuple[NDArray[np.int64], list[str]]:
    """Return the ids that can match, and the spelling of each in files of vectors."""
    spellings, has_name = vocabulary.spellings, vocabulary.is_ordinary
    if spellings is None:
        return np.flatnonzero(has_name), list(itertools.compress(vocabulary.tokens, has_name.tolist()))
    has_name = has_name & np.fromiter(map(bool, spellings), bool, vocabulary.num_tokens)
    return np.flatnonzero(has_name), [spellings[token_id] or "" for token_id in np.flatnonzero(has_name).tolist()]


def _is_exact(vocabulary: Vocabulary, ids: NDArray[np.int64], names: list[str]) -> NDArray[np.bool_]:
    """Return for each id whether its spelling is the token itself."""
    tokens = map(vocabulary.tokens.__getitem__, ids.tolist())
    return np.fromiter(map(str.__eq__, tokens, names), bool, len(ids))


def _step(number: int, rule: Rule, ids: NDArray[np.int64], names: list[str]) -> _Step:
    positions, spellings = spell_all(rule, names)
    return _Step(number, ids[np.array(positions, np.int64)], spellings)
