"""Growing a split by new tokens, which are matched against its own words or another source of vectors."""

import dataclasses
import itertools
import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from splitembed import tables
from splitembed.arrays import NO_ROW, as_read_only
from splitembed.errors import NoMatchWarning, SplitError, shortened
from splitembed.initializers.by_name import MAX_REFERENCE_ROWS, initialize_rows
from splitembed.matching.match import Candidates, find_candidates
from splitembed.split.frozen_rows import joined, own_rows
from splitembed.split.gaps import gap_ids, zero_ids
from splitembed.split.protocol import Ids, Mask, Remap, Rows, Split
from splitembed.vectors import WordVectors, read_vectors
from splitembed.vectors.source import with_options
from splitembed.vocabulary import Vocabulary, read_vocabulary, resolve_ids
from splitembed.words import first_indices

AnySplit = TypeVar("AnySplit", bound=Split)
_NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
# Initializers that read the known rows, which need not be loaded for the others.
_WITH_REFERENCE = ("normal", "mean")


def grow(
    split: AnySplit,
    tokens: Any,
    source: Any,
    *,
    trainable_tokens: Any,
    fallbacks: Any,
    oov_initializer: Any,
    existing: str,
    seed: Any,
    reading: Mapping[str, Any],
) -> AnySplit:
    """Return the split with new tokens at its end; see `SplitTable.grow`."""
    new = _new_tokens(split, tokens, existing)
    if not new.num_tokens:
        return split
    candidates = find_candidates(new, fallbacks)
    if source is None and reading:
        raise SplitError(
            f"`{next(iter(reading))}` is an option for reading `source`. Pass `source` too, or leave it out."
        )
    vectors = own_vectors(split) if source is None else read_source(source, candidates, split.dim, reading)
    words = candidates.match_vectors(vectors).rows
    if source is not None and new.is_ordinary.any() and (words == NO_ROW).all():
        _warn_of_no_match(new, vectors)
    chosen = _chosen(split, new, trainable_tokens)
    zeros = zero_ids(split.padding, gap_ids(split))
    # Without a zero row in the split, new ids without a token train.
    is_gap = _gaps(new) & ~chosen & (len(zeros) > 0)
    trains = ((words == NO_ROW) | chosen) & ~is_gap
    initial = _initial_rows(split, new, words, trains, vectors, oov_initializer, seed)
    remap = np.empty(split.num_tokens + new.num_tokens, np.int32)
    remap[: split.num_tokens] = split.remap
    remap[split.num_tokens :][is_gap] = split.remap[zeros[0]] if len(zeros) else NO_ROW
    remap[split.num_tokens :][trains] = ~np.arange(split.num_trainable, split.num_trainable + len(initial))
    frozen = ~trains & ~is_gap
    return split.with_parts(
        trainable=joined(split.trainable, initial),
        vocabulary=None if split.vocabulary is None else [*split.vocabulary, *new.tokens],
        coverage=None,
        **_frozen_parts(split, remap, split.num_tokens + np.flatnonzero(frozen), words[frozen], vectors),
    )


def read_source(source: Any, candidates: Candidates, dim: int, reading: Mapping[str, Any] = _NO_OPTIONS) -> WordVectors:
    """Read the pretrained vectors that tokens can match.

    Args:
        source: as for `read_vectors`.
        candidates: the spellings to look for.
        dim: the expected length of a row.
        reading: options of `read_vectors`.

    Raises:
        VectorFormatError: rows of another length, or an error of `read_vectors`.
    """
    request = with_options(source, **reading)
    return read_vectors(dataclasses.replace(request, dim=request.dim or dim), candidates.words)


def own_vectors(split: Split) -> WordVectors:
    """Return the frozen rows of a split without a copy, with the words of its table, else its frozen tokens.

    There are no words where ids have no strings, as the word "7" of a table does not mean id 7.

    >>> from splitembed import SplitTable
    >>> split = SplitTable([[1.0], [2.0]], [1, ~0], [[3.0]], vocabulary=["the", "usr"])
    >>> own_vectors(split).take([0]).tolist()
    [[2.0]]
    """
    table = split.table
    if split.vocabulary is not None and table is not None and table.words is not None:
        return WordVectors(table.words, None, str(table.path or "the frozen table"), table, row_of=table.row_of)
    ids = np.flatnonzero(_has_word(split)) if split.vocabulary is not None else np.empty(0, np.int64)
    words = [] if split.vocabulary is None else list(map(split.vocabulary.__getitem__, ids.tolist()))
    rows = tables.FrozenTable(split.frozen, "", scale=split.scale)
    return WordVectors(words, None, "the split", rows, row_of=split.remap[ids].astype(np.int64))


def _has_word(split: Split) -> Mask:
    """Return a mask `(num_tokens,)` of the frozen ids other than padding and ids without a token."""
    has_word: Mask = split.remap >= 0
    has_word[zero_ids(split.padding, gap_ids(split))] = False
    return has_word


def shares_rows(split: Split, vectors: WordVectors) -> bool:
    """Return whether the rows of the vectors are the frozen rows of the split, with the same numbers."""
    table = vectors.table
    if table is None:
        return False
    return table.vectors is split.frozen or (split.table is not None and split.table.fingerprint == table.fingerprint)


def _warn_of_no_match(new: Vocabulary, vectors: WordVectors) -> None:
    warnings.warn(
        f"None of the {new.num_tokens:,} new tokens has a vector in {vectors.source}, so all of their rows train. "
        "Check case and spelling; `fallbacks` tries other spellings.",
        NoMatchWarning,
        stacklevel=4,
    )


def _new_tokens(split: Split, tokens: Any, existing: str) -> Vocabulary:
    """Return the tokens that the split does not have yet, with their spellings."""
    if existing not in ("error", "skip"):
        raise SplitError(f'`existing` must be "error" or "skip". Received: {existing!r}.')
    given = _read_tokens(split, tokens)
    old = split.index
    is_new = [token not in old for token in given.tokens] if given.has_strings else [True] * given.num_tokens
    if all(is_new):
        return given
    if existing == "error":
        known = [token for token, new in zip(given.tokens, is_new, strict=True) if not new]
        raise SplitError(
            f"{shortened(known)} {'is' if len(known) == 1 else 'are'} in the vocabulary already. Leave out known "
            'tokens, or pass existing="skip".'
        )
    return _subset(given, is_new)


def _read_tokens(split: Split, tokens: Any) -> Vocabulary:
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


def _gaps(new: Vocabulary) -> Mask:
    is_gap = np.zeros(new.num_tokens, bool)
    is_gap[list(new.gaps)] = True
    return is_gap


def _subset(given: Vocabulary, is_kept: list[bool]) -> Vocabulary:
    new_id = {old: new for new, old in enumerate(itertools.compress(range(given.num_tokens), is_kept))}
    return dataclasses.replace(
        given,
        tokens=tuple(itertools.compress(given.tokens, is_kept)),
        reserved=frozenset(new_id[old] for old in given.reserved if old in new_id),
        spellings=None if given.spellings is None else tuple(itertools.compress(given.spellings, is_kept)),
        gaps=frozenset(new_id[old] for old in given.gaps if old in new_id),
    )


def _chosen(split: Split, new: Vocabulary, trainable_tokens: Any) -> Mask:
    """Return a mask `(num_new,)` of the new tokens that `trainable_tokens` names."""
    first, total = split.num_tokens, split.num_tokens + new.num_tokens

    def index() -> dict[str, int]:
        return {**split.index, **{token: first + number for token, number in first_indices(new.tokens).items()}}

    ids = resolve_ids(trainable_tokens, total, index if new.has_strings else None)
    if (ids < first).any():
        raise SplitError(
            f"`trainable_tokens` must be new tokens. Received: {split.name_of(ids[ids < first][0])}. Use `thaw` for it."
        )
    chosen = np.zeros(new.num_tokens, bool)
    chosen[ids - first] = True
    return chosen


def _initial_rows(
    split: Split, new: Vocabulary, words: Ids, trains: Mask, vectors: WordVectors, initializer: Any, seed: Any
) -> Rows:
    """Return the new trainable rows in id order: the vector of known tokens, for others the initializer's values."""
    known = words[trains]
    is_known = known != NO_ROW
    rows = np.empty((len(known), split.dim), np.float32)
    rows[is_known] = vectors.take(known[is_known])
    oov = list(itertools.compress(new.tokens, (trains & (words == NO_ROW)).tolist()))
    reference = None
    if oov and isinstance(initializer, str) and initializer in _WITH_REFERENCE:
        reference = _reference(split, words[words != NO_ROW], vectors)
    rows[~is_known] = initialize_rows(initializer, oov, split.dim, reference=reference, seed=seed, known=vectors)
    return rows


def _reference(split: Split, words: Ids, vectors: WordVectors) -> Rows:
    """Return known rows, evenly spaced: those of the split's words, and the matched rows of the vectors."""
    ids = np.flatnonzero(_has_word(split))
    ids = ids[np.unique(split.remap[ids], return_index=True)[1]]
    step = max(1, (len(ids) + len(words)) // MAX_REFERENCE_ROWS)
    return np.concatenate([split.lookup(ids[::step]), vectors.take(words[::step])])


def _frozen_parts(split: Split, remap: Remap, ids: Ids, words: Ids, vectors: WordVectors) -> dict[str, Any]:
    """Return the remap with the rows of new frozen ids, and a new frozen table unless the present one has them."""
    rows = vectors.rows(words)
    if shares_rows(split, vectors) or not len(rows):
        remap[ids] = rows
        return {"remap": as_read_only(remap)}
    _, first, number = np.unique(rows, return_index=True, return_inverse=True)
    remap[ids] = split.num_frozen + number
    return own_rows(split, remap, tables.encode_rows(vectors.take(words[first]), split.frozen_dtype))
