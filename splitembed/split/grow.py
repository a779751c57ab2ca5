"""A split grows: new tokens and vectors to match them against go in; a split leaves whose old ids keep their rows."""

import dataclasses
import itertools
import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from splitembed import tables
from splitembed.arrays import as_read_only
from splitembed.errors import NoMatchWarning, SplitError
from splitembed.initializers.by_name import MAX_REFERENCE_ROWS, initialize_rows
from splitembed.matching.match import find_candidates
from splitembed.split.base import SplitBase
from splitembed.split.checks import index_of
from splitembed.split.sources import NONE, is_own, own_vectors, read_source
from splitembed.split.thaw_freeze import Remap, Rows, joined, own_table
from splitembed.vectors import WordVectors
from splitembed.vocabulary import Vocabulary, read_vocabulary, resolve_ids

Split = TypeVar("Split", bound=SplitBase)
Places = NDArray[np.int64]
_WITH_REFERENCE = ("normal", "mean")  # initializers that read the known rows, which others should not have to load
_NUM_NAMED = 3  # tokens that a message names


def grow(
    split: Split,
    tokens: Any,
    source: Any,
    *,
    trainable_tokens: Any,
    fallbacks: Any,
    oov_initializer: Any,
    existing: str,
    seed: Any,
) -> Split:
    """The split with more tokens at its end; see `SplitTable.grow`."""
    new = _new_tokens(split, tokens, existing)
    if not new.num_tokens:
        return split
    candidates = find_candidates(new, fallbacks)
    vectors = own_vectors(split) if source is None else read_source(source, candidates, split.dim)
    places = candidates.match_vectors(vectors).rows
    if source is not None and new.is_ordinary.any() and (places == NONE).all():
        _warn_of_no_match(new, vectors)
    trains = (places == NONE) | _chosen(split, new, trainable_tokens)
    started = _started(split, new, places, trains, vectors, oov_initializer, seed)
    remap = np.empty(split.num_tokens + new.num_tokens, np.int32)
    remap[: split.num_tokens] = split.remap
    remap[split.num_tokens :][trains] = ~np.arange(split.num_trainable, split.num_trainable + len(started))
    return split.with_parts(
        trainable=joined(split.trainable, started),
        vocabulary=None if split.vocabulary is None else [*split.vocabulary, *new.tokens],
        coverage=None,
        **_frozen_parts(split, remap, split.num_tokens + np.flatnonzero(~trains), places[~trains], vectors),
    )


def _warn_of_no_match(new: Vocabulary, vectors: WordVectors) -> None:
    warnings.warn(
        f"None of the {new.num_tokens:,} new tokens has a vector in {vectors.source}, so the row of each trains. Look "
        "at case and spelling, of which `fallbacks` tries others.",
        NoMatchWarning,
        stacklevel=4,
    )


def _new_tokens(split: SplitBase, tokens: Any, existing: str) -> Vocabulary:
    """The tokens that the split does not have yet, with their spellings."""
    if existing not in ("error", "skip"):
        raise SplitError(f'`existing` must be "error" or "skip". Received: {existing!r}.')
    given = _listed(split, tokens)
    old = split.index
    is_new = [token not in old for token in given.tokens] if given.has_strings else [True] * given.num_tokens
    if all(is_new):
        return given
    if existing == "error":
        there = [token for token, new in zip(given.tokens, is_new, strict=True) if not new]
        raise SplitError(
            f"{named(there)} {'is' if len(there) == 1 else 'are'} in the vocabulary already. Leave out what is there, "
            'or pass existing="skip".'
        )
    return _subset(given, is_new)


def _listed(split: SplitBase, tokens: Any) -> Vocabulary:
    is_number = isinstance(tokens, (int, np.integer)) and not isinstance(tokens, bool)
    if is_number != (split.vocabulary is None) or (is_number and tokens < 0):
        expected = (
            "new tokens" if split.vocabulary is not None else "the number of new ids, as this split has no strings"
        )
        raise SplitError(f"`tokens` must be {expected}. Received: {tokens!r} (of type {type(tokens).__name__}).")
    if is_number:
        names = tuple(map(str, range(split.num_tokens, split.num_tokens + int(tokens))))
        return Vocabulary(names, None, frozenset(), None, has_strings=False)
    if isinstance(tokens, str):
        tokens = [tokens]
    if isinstance(tokens, Sequence) and not len(tokens):
        return Vocabulary((), None, frozenset(), None)
    return dataclasses.replace(read_vocabulary(tokens, padding=None), padding=None, unknown=None)


def _subset(given: Vocabulary, is_kept: list[bool]) -> Vocabulary:
    place_of = {old: new for new, old in enumerate(itertools.compress(range(given.num_tokens), is_kept))}
    return dataclasses.replace(
        given,
        tokens=tuple(itertools.compress(given.tokens, is_kept)),
        reserved=frozenset(place_of[old] for old in given.reserved if old in place_of),
        spellings=None if given.spellings is None else tuple(itertools.compress(given.spellings, is_kept)),
    )


def named(tokens: Sequence[str]) -> str:
    """Names a few tokens, and counts the others.

    >>> named(["usr"]), named(["a", "b", "c", "d", "e"])
    ("'usr'", "'a', 'b', 'c' and 2 more")
    """
    shown = ", ".join(map(repr, tokens[:_NUM_NAMED]))
    return shown if len(tokens) <= _NUM_NAMED else f"{shown} and {len(tokens) - _NUM_NAMED} more"


def _chosen(split: SplitBase, new: Vocabulary, trainable_tokens: Any) -> NDArray[np.bool_]:
    """`(num_new,)` bool: the new tokens that `trainable_tokens` names."""
    first, total = split.num_tokens, split.num_tokens + new.num_tokens

    def index() -> dict[str, int]:
        return {**split.index, **{token: first + place for token, place in index_of(new.tokens).items()}}

    ids = resolve_ids(trainable_tokens, total, index if new.has_strings else None)
    if (ids < first).any():
        raise SplitError(
            f"`trainable_tokens` names {split.name_of(ids[ids < first][0])}, which is not new. Use `thaw` for it."
        )
    chosen = np.zeros(new.num_tokens, bool)
    chosen[ids - first] = True
    return chosen


def _started(
    split: SplitBase,
    new: Vocabulary,
    places: Places,
    trains: NDArray[np.bool_],
    vectors: WordVectors,
    initializer: Any,
    seed: Any,
) -> Rows:
    """The new trainable rows in id order: known tokens start from their vector, the others from the initializer."""
    starts = places[trains]
    is_known = starts != NONE
    rows = np.empty((len(starts), split.dim), np.float32)
    rows[is_known] = vectors.take(starts[is_known])
    oov = list(itertools.compress(new.tokens, (trains & (places == NONE)).tolist()))
    reference = None
    if oov and isinstance(initializer, str) and initializer in _WITH_REFERENCE:
        reference = _reference(split, places[places != NONE], vectors)
    rows[~is_known] = initialize_rows(initializer, oov, split.dim, reference=reference, seed=seed, known=vectors)
    return rows


def _reference(split: SplitBase, places: Places, vectors: WordVectors) -> Rows:
    """Rows that are known: of the split those that words use, and of the vectors those that matched; evenly spaced."""
    is_word = split.remap >= 0
    if split.padding is not None:
        is_word[split.padding] = False
    _, ids = np.unique(split.remap[is_word], return_index=True)
    ids = np.flatnonzero(is_word)[ids]
    step = max(1, (len(ids) + len(places)) // MAX_REFERENCE_ROWS)
    return np.concatenate([split.lookup(ids[::step]), vectors.take(places[::step])])


def _frozen_parts(split: SplitBase, remap: Remap, ids: Places, places: Places, vectors: WordVectors) -> dict[str, Any]:
    """The remap with the rows of new frozen ids, and the frozen table where it is another one then."""
    rows = vectors.rows(places)
    if is_own(split, vectors) or not len(rows):
        remap[ids] = rows
        return {"remap": as_read_only(remap)}
    _, first, row = np.unique(rows, return_index=True, return_inverse=True)
    remap[ids] = split.num_frozen + row
    return own_table(split, remap, tables.encode_rows(vectors.take(places[first]), split.frozen_dtype))
