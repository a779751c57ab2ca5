"""A vocabulary and pretrained vectors go in; a `SplitTable` comes out: what is known is frozen, the rest trains."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed.arrays import aligned_empty
from splitembed.coverage import TableSizes, measure_coverage
from splitembed.errors import NoMatchWarning, SplitError
from splitembed.initializers.by_name import MAX_REFERENCE_ROWS, initialize_rows
from splitembed.initializers.by_token import needs_tokens
from splitembed.matching.match import Match, find_candidates
from splitembed.split.checks import used_rows
from splitembed.split.sources import zero_row_of
from splitembed.split.table import SplitTable
from splitembed.split.which_train import chosen_tokens, rare_tokens
from splitembed.vectors import WordVectors, read_vectors
from splitembed.vectors.source import with_options
from splitembed.vocabulary import Vocabulary, align_counts, read_vocabulary

FEW_MATCHES = 0.01  # of the tokens: fewer look like a mistake
_NONE = -1  # in place of a word or a row: the token has none, or trains


def build_split(
    vocabulary: Any,
    source: Any,
    *,
    trainable_tokens: Any = (),
    train_most_frequent: int = 0,
    counts: Mapping[str, float] | ArrayLike | None = None,
    min_count: float = 1,
    fallbacks: Any = (),
    train_fallbacks: bool = False,
    oov_initializer: Any = "uniform",
    padding: int | str | None = "auto",
    unknown: int | str | None = "auto",
    extend_vocabulary: bool = False,
    frozen_dtype: str | None = None,
    seed: Any = None,
    **reading: Any,
) -> SplitTable:
    """Matches a vocabulary against pretrained vectors: tokens that have one are frozen, the others train.

    >>> split = build_split(["", "[UNK]", "the", "usr"], {"the": [1.0, 2.0]}, oov_initializer="zeros")
    >>> split
    SplitTable(num_tokens=4, dim=2, num_frozen=2, num_trainable=2)
    >>> split.lookup([0, 2]).tolist()  # padding, "the"
    [[0.0, 0.0], [1.0, 2.0]]

    A source that is a frozen.h5 is shared: no row is copied, `remap` points into it, and `save` then writes the
    trainable table alone.

    Args:
        vocabulary: whatever `read_vocabulary` reads; row i belongs to what the user's own lookup sends to i.
        source: whatever `read_vectors` reads, or a `VectorSource` with options; of a file, only the rows that can match
            are kept.
        trainable_tokens: tokens, ids or a boolean mask `(num_tokens,)`: rows that train although they have a vector,
            from which they start.
        train_most_frequent: that many of the most frequent known tokens train too (needs `counts`).
        counts: how often each token occurs: a dict token -> count, or an array `(num_tokens,)`.
        min_count: OOV tokens rarer than this, if it is above 1, share the row of `[UNK]` (needs `counts`).
        fallbacks: other spellings to try, in this order, for tokens without an exact match: names such as "lower",
            "lower+accents" or "digits-#", mappings and functions, as `find_candidates` takes them.
        train_fallbacks: tokens that matched by a fallback train, from that vector; by default they are frozen.
        oov_initializer: how OOV rows start: "uniform" (within 0.05 of zero, as Keras's Embedding), "zeros", "normal"
            (matched per dimension to the known rows), "mean", "subwords" (of a fastText .bin source), "ngrams" (ridge
            regression on the known words), or any Keras initializer. Once rows train it moves accuracy by a point at
            most.
        padding: the id whose row is zero and frozen; "auto": "" at id 0, or a word_index that starts at 1.
        unknown: the id or token that is `[UNK]`; "auto": a Keras layer's own, or "[UNK]". It trains, and never matches.
        extend_vocabulary: append every other word of the source, so that words which training never saw have their
            vectors at serving; 4 bytes a word and no new trainable row.
        frozen_dtype: store the frozen rows as "float16", "bfloat16" or "int8"; by default as the source has them. On a
            shared table another dtype means a table of one's own.
        seed: of the initializer.
        **reading: options of `read_vectors`: `dim`, `format`, `member`, `datasets`, `allow_pickle`, `strict` and
            `non_finite`.

    Returns:
        The split; its `coverage` says what was matched.

    Raises:
        VocabularyError, VectorFormatError: the vocabulary or the vectors cannot be read.
        SplitError: options that need `counts`, `[UNK]` or a zero row, without it.
        TokenIdError, UnknownTokenError: `trainable_tokens` names what the vocabulary does not hold.
    """
    tokens = read_vocabulary(vocabulary, padding=padding, unknown=unknown)
    if extend_vocabulary and not tokens.has_strings:
        raise SplitError("`extend_vocabulary` appends words, and this vocabulary is of plain ids. Pass tokens instead.")
    candidates = find_candidates(tokens, fallbacks)
    vectors = read_vectors(with_options(source, **reading), None if extend_vocabulary else candidates.words)
    match = candidates.match_vectors(vectors)
    _warn_of_few_matches(int(match.is_matched.sum()), int(tokens.is_ordinary.sum()), vectors.source)
    weights = None if counts is None else align_counts(counts, tokens)
    trains, rare = _which_train(
        tokens, match, weights, trainable_tokens, train_most_frequent, min_count, train_fallbacks
    )
    extra = _extra_words(tokens, vectors) if extend_vocabulary else {}
    words = np.concatenate([np.where(trains, _NONE, match.rows), np.fromiter(extra.values(), np.int64, len(extra))])
    frozen, remap = _frozen_part(vectors.rows(words), vectors, tokens.padding)
    remap[np.flatnonzero(trains)] = ~np.arange(np.count_nonzero(trains), dtype=np.int32)
    if rare.any():
        remap[np.flatnonzero(rare)] = remap[tokens.unknown]
    table = vectors.table
    split = SplitTable(
        frozen,
        remap,
        _trainable_part(tokens, match.rows, trains, vectors, oov_initializer, seed),
        vocabulary=[*tokens.tokens, *extra] if tokens.has_strings else None,
        padding=tokens.padding,
        scale=None if table is None else table.scale,
        frozen_dtype=None if table is None else table.dtype,
        table=table,
    )
    split = split if frozen_dtype is None else split.with_frozen_dtype(frozen_dtype)
    split.coverage = measure_coverage(tokens, match, weights, sizes=_sizes(split))
    return split


def _warn_of_few_matches(num_matched: int, num_ordinary: int, source: str) -> None:
    if num_matched > num_ordinary * FEW_MATCHES or not num_ordinary:
        return
    found = f"Only {num_matched:,}" if num_matched else "None"
    warnings.warn(
        f"{found} of the {num_ordinary:,} tokens has a vector in {source}; the others train. Look at case and spelling "
        f"(`fallbacks` tries others), at what the lines of the vocabulary hold, and at the order of arguments.",
        NoMatchWarning,
        stacklevel=3,
    )


def _which_train(
    tokens: Vocabulary,
    match: Match,
    counts: NDArray[Any] | None,
    trainable_tokens: Any,
    train_most_frequent: int,
    min_count: float,
    train_fallbacks: bool,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """`(num_tokens,)` bool, twice: tokens that have a trainable row each, and rare ones that share that of `[UNK]`."""
    is_known = match.rows != _NONE
    chosen = chosen_tokens(tokens, is_known, counts, trainable_tokens, train_most_frequent)
    rare = rare_tokens(tokens, is_known, counts, min_count) & ~chosen
    trains = ~is_known & ~rare | chosen
    if train_fallbacks:
        trains |= match.is_fallback
    if tokens.padding is not None:
        trains[tokens.padding] = False
    return trains, rare


def _extra_words(tokens: Vocabulary, vectors: WordVectors) -> dict[str, int]:
    """The words that the vocabulary lacks, with their places; the first of two equal ones counts."""
    words = list(vectors.words)
    extra = {
        word: place
        for word, place in zip(reversed(words), range(len(words) - 1, -1, -1), strict=True)
        if word not in tokens.index
    }
    if vectors.table is not None:
        extra.pop("", None)
    return dict(reversed(extra.items()))


def _frozen_part(
    rows: NDArray[np.int64], vectors: WordVectors, padding: int | None
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """The frozen rows, and a remap that is right wherever `rows` is not -1, and at the padding id."""
    if vectors.table is not None:
        remap = rows.astype(np.int32)
        if padding is not None:
            remap[padding] = zero_row_of(vectors)
        return vectors.table.vectors, remap
    used, place_of = used_rows(rows[rows != _NONE], vectors.num_rows)
    remap = np.append(place_of, _NONE)[rows].astype(np.int32)
    if len(used) == vectors.num_rows and padding is None:
        return vectors.matrix, remap
    frozen = aligned_empty((len(used) + (padding is not None), vectors.dim), np.float32)
    np.take(vectors.matrix, used, axis=0, out=frozen[: len(used)], mode="clip")  # other modes copy once more
    if padding is not None:
        frozen[-1] = 0
        remap[padding] = len(used)
    return frozen, remap


def _trainable_part(
    tokens: Vocabulary,
    known: NDArray[np.int64],
    trains: NDArray[np.bool_],
    vectors: WordVectors,
    initializer: Any,
    seed: Any,
) -> NDArray[np.float32]:
    """The trainable rows in id order: known tokens start from their vector, the others from the initializer."""
    words = known[trains]
    is_known = words != _NONE
    result = np.empty((len(words), vectors.dim), np.float32)
    result[is_known] = vectors.take(words[is_known])
    matched, _ = used_rows(known[known != _NONE], len(vectors))
    reference = vectors.take(matched[:: max(1, len(matched) // MAX_REFERENCE_ROWS)])
    oov = np.flatnonzero(trains)[~is_known]
    by_letters = tokens.is_ordinary[oov] | (not needs_tokens(initializer))  # "[UNK]" is no word to look at
    generator = np.random.default_rng(seed)
    for chosen, how in ((by_letters, initializer), (~by_letters, "uniform")):
        named = _spelled(tokens, oov[chosen])
        rows = initialize_rows(how, named, vectors.dim, reference=reference, seed=generator, known=vectors)
        result[np.flatnonzero(~is_known)[chosen]] = rows
    return result


def _spelled(tokens: Vocabulary, ids: NDArray[np.int64]) -> list[str]:
    """What tokens are called in files of vectors, for initializers that look at their letters."""
    spellings = tokens.spellings or tokens.tokens
    return [spellings[place] or tokens.tokens[place] for place in ids.tolist()]


def _sizes(split: SplitTable) -> TableSizes:
    num_bytes = split.frozen.nbytes + (0 if split.scale is None else split.scale.nbytes)
    return TableSizes(split.num_tokens, split.dim, split.num_frozen, split.num_trainable, num_bytes)
