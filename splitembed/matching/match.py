"""Which row of the pretrained vectors belongs to which token: a vocabulary and words enter; a `Match` leaves.

Everything that may be looked for is worked out beforehand, so that one pass over a file finds it all. What a token
matches depends on the token, the rules and the words alone, never on other tokens.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.matching.rules import EXACT, Rule, read_rules, spell_all
from splitembed.vectors import WordVectors
from splitembed.vocabulary import Vocabulary

_NONE = -1  # in place of a row, or of a rule


@dataclass(frozen=True, eq=False)
class Match:
    """Where each token was found, and by which rule.

    >>> from splitembed.vocabulary import read_vocabulary
    >>> match = find_candidates(read_vocabulary(["", "The", "usr"]), ["lower"]).match(["of", "the"])
    >>> match.rows.tolist(), [match.rules[each] for each in match.rule if each >= 0]
    ([-1, 1, -1], ['lower'])
    >>> match.is_matched.tolist(), match.is_fallback.tolist()
    ([False, True, False], [False, True, False])

    Args:
        rows: int64 `(num_tokens,)`: the place among the words of the word that the token matches, or -1.
        rule: int16 `(num_tokens,)`: the place among `rules` of the rule that found it, or -1.
        rules: names: "exact", then the rule of a tokenizer's marks where the vocabulary has one, then the fallbacks.
        num_fallbacks: how many of the rules, at the end, are fallbacks.
    """

    rows: NDArray[np.int64]
    rule: NDArray[np.int16]
    rules: tuple[str, ...]
    num_fallbacks: int = 0

    @property
    def is_matched(self) -> NDArray[np.bool_]:
        """`(num_tokens,)` bool: whether the token has a row."""
        is_matched: NDArray[np.bool_] = self.rows != _NONE
        return is_matched

    @property
    def is_fallback(self) -> NDArray[np.bool_]:
        """`(num_tokens,)` bool: whether the token has a row by a spelling that is not its own."""
        is_fallback: NDArray[np.bool_] = self.rule >= len(self.rules) - self.num_fallbacks
        return is_fallback


@dataclass(frozen=True, eq=False)
class _Step:
    """What one rule looks for: the tokens' ids and their spellings; those of one id in the order of trying."""

    rule: int
    ids: NDArray[np.int64]
    spellings: list[str]


@dataclass(frozen=True, eq=False)
class Candidates:
    """All that tokens can match, by rules in the order of trying; `find_candidates` makes it."""

    num_tokens: int
    rules: tuple[str, ...]
    num_fallbacks: int
    steps: tuple[_Step, ...]

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word to look for in the source."""
        return frozenset(itertools.chain.from_iterable(step.spellings for step in self.steps))

    def match(self, words: Sequence[str]) -> Match:
        """Matches the tokens to words: each to the first of its spellings that there is, and of equal words the first.

        >>> from splitembed.vocabulary import read_vocabulary
        >>> find_candidates(read_vocabulary(["Usr", "usr"]), ["lower"]).match(["usr", "usr"]).rows.tolist()
        [0, 0]

        Args:
            words: those that have a row, in any order.
        """
        return self._found(_places(words, self.words))

    def match_vectors(self, vectors: WordVectors) -> Match:
        """Matches the tokens to the words of vectors; in a frozen table "" is the word of rows that have none.

        >>> from splitembed.vectors import read_vectors
        >>> from splitembed.vocabulary import read_vocabulary
        >>> find_candidates(read_vocabulary(["of", "usr"])).match_vectors(read_vectors({"usr": [1.0]})).rows.tolist()
        [-1, 0]
        """
        place_of = _places(vectors.words, self.words)
        if vectors.table is not None:
            place_of.pop("", None)
        return self._found(place_of)

    def _found(self, place_of: dict[str, int]) -> Match:
        rows = np.full(self.num_tokens, _NONE, np.int64)
        rule = np.full(self.num_tokens, _NONE, np.int16)
        for step in self.steps:
            places = map(place_of.get, step.spellings, itertools.repeat(_NONE))
            found = np.fromiter(places, np.int64, len(step.spellings))
            new = np.flatnonzero((found != _NONE) & (rows[step.ids] == _NONE))[::-1]  # of one id the first comes last
            rows[step.ids[new]] = found[new]
            rule[step.ids[new]] = step.rule
        return Match(rows, rule, self.rules, self.num_fallbacks)


def find_candidates(vocabulary: Vocabulary, fallbacks: Any = ()) -> Candidates:
    """Works out every word that a token of the vocabulary can match; reserved ids match none.

    >>> from splitembed.vocabulary import read_vocabulary
    >>> candidates = find_candidates(read_vocabulary(["", "[UNK]", "Café"]), ["lower", "lower+accents"])
    >>> sorted(candidates.words)
    ['Café', 'cafe', 'café']
    >>> candidates.match(["cafe", "unk", ""]).rows.tolist()
    [-1, -1, 0]

    Args:
        vocabulary: the tokens. Where it says how tokens are spelled in files of vectors, they are looked for that way
            alone, and fallbacks start from there.
        fallbacks: as `read_rules` takes them, tried in their order where the token itself is not found.

    Raises:
        SplitError: a fallback that is none, or that fails on a token.
    """
    rules = read_rules(fallbacks)
    marks = _marks(vocabulary)
    ids, names = _names(vocabulary)
    is_own = _is_own(vocabulary, ids, names) if marks else np.ones(len(ids), bool)
    steps = [_Step(0, ids[is_own], list(itertools.compress(names, is_own.tolist())))]
    if marks:
        steps.append(_Step(1, ids[~is_own], list(itertools.compress(names, (~is_own).tolist()))))
    for number, rule in enumerate(rules, len(steps)):
        steps.append(_step(number, rule, ids, names))
    named = (EXACT, *marks, *(rule.name for rule in rules))
    return Candidates(vocabulary.num_tokens, named, len(rules), tuple(steps))


def _marks(vocabulary: Vocabulary) -> tuple[str, ...]:
    """The name of the rule by which a tokenizer's tokens are spelled in files of vectors, if there is one."""
    return () if vocabulary.spellings is None else (vocabulary.marks or "spelling",)


def _names(vocabulary: Vocabulary) -> tuple[NDArray[np.int64], list[str]]:
    """The ids that can match, and what each is called in files of vectors."""
    spellings, has_name = vocabulary.spellings, vocabulary.is_ordinary
    if spellings is None:
        return np.flatnonzero(has_name), list(itertools.compress(vocabulary.tokens, has_name.tolist()))
    has_name = has_name & np.fromiter(map(bool, spellings), bool, vocabulary.num_tokens)
    return np.flatnonzero(has_name), [spellings[place] or "" for place in np.flatnonzero(has_name).tolist()]


def _is_own(vocabulary: Vocabulary, ids: NDArray[np.int64], names: list[str]) -> NDArray[np.bool_]:
    tokens = map(vocabulary.tokens.__getitem__, ids.tolist())
    return np.fromiter(map(str.__eq__, tokens, names), bool, len(ids))


def _step(number: int, rule: Rule, ids: NDArray[np.int64], names: list[str]) -> _Step:
    places, spellings = spell_all(rule, names)
    return _Step(number, ids[np.array(places, np.int64)], spellings)


def _places(words: Sequence[str], wanted: frozenset[str]) -> dict[str, int]:
    """The wanted words and their places, of equal ones the first."""
    backwards = range(len(words) - 1, -1, -1)
    listed = list(words)
    listed.reverse()
    return {word: place for word, place in zip(listed, backwards, strict=True) if word in wanted}
