"""Replacing the pretrained vectors of a split, and a report of what changed."""

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from splitembed.arrays import NO_ROW
from splitembed.errors import SplitError, shortened
from splitembed.matching.match import find_candidates
from splitembed.split.frozen_rows import rows_of_vectors, without_unused
from splitembed.split.gaps import gap_ids, zero_ids
from splitembed.split.grow import read_source
from splitembed.split.protocol import Mask, Split
from splitembed.split.thaw_freeze import thaw
from splitembed.vocabulary import UNKNOWN_TOKEN, Vocabulary, read_vocabulary

AnySplit = TypeVar("AnySplit", bound=Split)
_MISSING_RULES, _NEWLY_FOUND_RULES = ("train", "keep", "error"), ("keep", "freeze")


@dataclass(frozen=True)
class VectorChange:
    """The tokens that pretrained vectors lack, and those that only they have, compared with the vectors before.

    >>> print(VectorChange("glove.txt", num_found=2, missing=("zzz",), newly_found=("usr", "lol")))
    frozen tokens with a vector in glove.txt: 2 of 3
    missing: 1 (train): 'zzz'
    newly found: 2 (keep): 'usr', 'lol'

    Args:
        source: name of the new vectors.
        num_found: number of tokens that were frozen and have a vector in the source.
        missing: frozen tokens without a vector in the source, in id order.
        newly_found: tokens that trained for want of a vector and have one in the source, in id order.
        missing_rule: "train": they train from the old vector; "keep": they keep it.
        newly_found_rule: "keep": they train on; "freeze": the new vector replaced their trained row.
    """

    source: str
    num_found: int
    missing: tuple[str, ...]
    newly_found: tuple[str, ...]
    missing_rule: str = "train"
    newly_found_rule: str = "keep"

    def __str__(self) -> str:
        total = self.num_found + len(self.missing)
        lines = [f"frozen tokens with a vector in {self.source}: {self.num_found:,} of {total:,}"]
        groups = (
            ("missing", self.missing, self.missing_rule),
            ("newly found", self.newly_found, self.newly_found_rule),
        )
        for name, tokens, rule in groups:
            lines.append(f"{name}: {len(tokens):,} ({rule})" + (f": {shortened(tokens)}" if tokens else ""))
        return "\n".join(lines)


def with_frozen(
    split: AnySplit,
    source: Any,
    *,
    missing: str,
    newly_found: str,
    fallbacks: Any,
    vocabulary: Any,
    reading: Mapping[str, Any],
) -> tuple[AnySplit, VectorChange]:
    """Return the split on other vectors, and what that changed; see `SplitTable.with_frozen`."""
    if missing not in _MISSING_RULES or newly_found not in _NEWLY_FOUND_RULES:
        raise SplitError(
            f"`missing` must be one of {', '.join(_MISSING_RULES)}, and `newly_found` one of "
            f"{', '.join(_NEWLY_FOUND_RULES)}. Received: missing={missing!r}, newly_found={newly_found!r}."
        )
    tokens = _tokens(split, vocabulary)
    candidates = find_candidates(tokens, fallbacks)
    vectors = read_source(source, candidates, split.dim, reading)
    words, gaps = candidates.match_vectors(vectors).rows, gap_ids(split)
    zeros = zero_ids(split.padding, gaps)
    words[gaps] = NO_ROW
    is_found = words != NO_ROW
    is_missing = (split.remap >= 0) & ~is_found
    is_missing[zeros] = False
    is_new = _is_newly_found(split, tokens, is_found)
    num_found = int(np.count_nonzero((split.remap >= 0) & is_found))
    names = _names(tokens, is_missing), _names(tokens, is_new)
    change = VectorChange(vectors.source, num_found, *names, missing, newly_found)
    if missing == "error" and change.missing:
        raise SplitError(
            f"{vectors.source} has no vector for {len(change.missing)} frozen tokens: {shortened(change.missing)}. "
            'Pass missing="train" to train them from their old vector, or missing="keep" to keep it.'
        )
    thawed = thaw(split, np.flatnonzero(is_missing)) if missing == "train" else split
    kept = np.flatnonzero(is_missing) if missing == "keep" else np.empty(0, np.int64)
    is_frozen = (thawed.remap >= 0) | is_new if newly_found == "freeze" else thawed.remap >= 0
    remap = thawed.remap.copy()
    frozen = rows_of_vectors(remap, np.where(is_frozen, words, NO_ROW), vectors, zeros, split=thawed, kept=kept)
    remap, trainable = without_unused(remap, thawed.trainable)
    return thawed.with_parts(remap=remap, trainable=trainable, coverage=None, **frozen), change


def _names(tokens: Vocabulary, chosen: Mask) -> tuple[str, ...]:
    return tuple(itertools.compress(tokens.tokens, chosen.tolist()))


def _tokens(split: Split, vocabulary: Any) -> Vocabulary:
    """Return the tokens of the split for matching, with "" and `[UNK]` reserved."""
    if vocabulary is not None:
        return _checked_tokens(split, read_vocabulary(vocabulary))
    if split.vocabulary is None:
        raise SplitError("Vectors are matched by token, and the ids of this split have no strings. Pass `vocabulary`.")
    tokens = tuple(split.vocabulary)
    reserved = {token_id for token_id, token in enumerate(tokens) if token in ("", UNKNOWN_TOKEN)}
    return Vocabulary(tokens, split.padding, frozenset(reserved | _padding_of(split)), None)


def _padding_of(split: Split) -> set[int]:
    return set() if split.padding is None else {split.padding}


def _checked_tokens(split: Split, given: Vocabulary) -> Vocabulary:
    """Return a given vocabulary of the split, extended by the words that were appended to the split."""
    tokens = given.tokens if split.vocabulary is None else tuple(split.vocabulary)
    if len(tokens) != split.num_tokens or tokens[: given.num_tokens] != given.tokens:
        raise SplitError(
            f"`vocabulary` must hold the {split.num_tokens} tokens of the split, or the first of them, at the same "
            f"ids. Received: {given.num_tokens} tokens, which differ."
        )
    spellings = None if given.spellings is None else (*given.spellings, *tokens[given.num_tokens :])
    reserved = given.reserved | _padding_of(split)
    return dataclasses.replace(given, tokens=tokens, spellings=spellings, padding=split.padding, reserved=reserved)


def _is_newly_found(split: Split, tokens: Vocabulary, is_found: Mask) -> Mask:
    """Return a mask `(num_tokens,)` of tokens that train, have a vector, and are not among the old table's words."""
    is_new: Mask = (split.remap < 0) & is_found
    table = split.table
    if table is not None and table.words is not None and is_new.any():
        old, names = set(table.words), tokens.spellings or tokens.tokens
        is_new[[token_id for token_id in np.flatnonzero(is_new).tolist() if names[token_id] in old]] = False
    return is_new
