"""Building a split from a vocabulary and pretrained vectors: known tokens are frozen, the others train."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed.arrays import NO_ROW
from splitembed.coverage import TableSizes, measure_coverage
from splitembed.errors import NoMatchWarning, SplitError
from splitembed.initializers.by_name import MAX_REFERENCE_ROWS, initialize_rows, make_generator
from splitembed.initializers.by_token import needs_tokens
from splitembed.matching.match import Match, find_candidates
from splitembed.split.frozen_rows import rows_of_vectors, used_rows
from splitembed.split.gaps import zero_ids
from splitembed.split.like import start_like
from splitembed.split.table import SplitTable
from splitembed.split.which_train import chosen_tokens, rare_tokens
from splitembed.vectors import WordVectors, read_vectors
from splitembed.vectors.source import with_options
from splitembed.vocabulary import Vocabulary, align_counts, read_vocabulary
from splitembed.words import first_indices

# A smaller share of matched tokens is probably a mistake.
FEW_MATCHES = 0.01


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
    like: Mapping[Any, Any] | None = None,
    padding: int | str | None = "auto",
    unknown: int | str | None = "auto",
    extend_vocabulary: bool = False,
    frozen_dtype: str | None = None,
    seed: Any = None,
    **reading: Any,
) -> SplitTable:
    """Match a vocabulary against pretrained vectors: tokens with a vector are frozen, the others train.

    >>> split = build_split(["", "[UNK]", "the", "usr"], {"the": [1.0, 2.0]}, oov_initializer="zeros")
    >>> split
    SplitTable(num_tokens=4, dim=2, num_frozen=2, num_trainable=2)
    >>> split.lookup([0, 2]).tolist()
    [[0.0, 0.0], [1.0, 2.0]]

    Ids without a token share one frozen zero row, as padding does, unless `trainable_tokens` names them.

    A frozen.h5 is shared: no row is copied, `remap` points into it, and `save` writes the trainable table alone.

    Args:
        vocabulary: anything that `read_vocabulary` reads; id i is the one that your own lookup returns for a token.
        source: anything that `read_vectors` reads, or a `VectorSource` with options; of a file, only the rows that can
            match are kept.
        trainable_tokens: tokens, ids or a boolean mask `(num_tokens,)`: rows that train although they have a vector,
            from which they start.
        train_most_frequent: that many of the most frequent known tokens train too (needs `counts`).
        counts: the frequency of each token: a dict token -> count, or an array `(num_tokens,)`.
        min_count: OOV tokens rarer than this, if it is above 1, share the row of `[UNK]` (needs `counts`).
        fallbacks: other spellings to try, in this order, for tokens without an exact match: names such as "lower",
            "lower+accents" or "digits-#", mappings and functions, as for `find_candidates`.
        train_fallbacks: train tokens that matched by a fallback, from that vector; by default they are frozen.
        oov_initializer: initial values of OOV rows: "uniform" (within 0.05 of zero, as Keras's Embedding), "zeros",
            "normal" (matched per dimension to the known rows), "mean", "subwords" (of a fastText .bin source), "ngrams"
            (ridge regression on the known words), or any Keras initializer. It changes accuracy after training by a
            point at most.
        like: for an OOV token, tokens of the vocabulary: its row starts as the mean of theirs, as in
            `like={"covfefe": ["coffee", "word"]}`.
        padding: the id whose row is zero and frozen; "auto": "" at id 0, or a word_index that starts at 1.
        unknown: the id or token that is `[UNK]`; "auto": that of a Keras layer, or "[UNK]". It trains and never
            matches.
        extend_vocabulary: append every other word of the source, so that words unseen in training have their vectors
            at serving; 4 bytes a word and no new trainable row.
        frozen_dtype: store the frozen rows as "float16", "bfloat16" or "int8"; by default as in the source. With
            another dtype than that of a shared table, the split gets a new table.
        seed: of the initializer; None follows `keras.utils.set_random_seed`.
        **reading: options of `read_vectors`, such as `dim` and `allow_pickle`.

    Returns:
        The split; its `coverage` reports what was matched.

    Raises:
        VocabularyError, VectorFormatError: the vocabulary or the vectors cannot be read.
        SplitError: an option needs `counts`, `[UNK]` or a zero row, which are missing.
        TokenIdError, UnknownTokenError: `trainable_tokens` names an id or token outside the vocabulary.
    """
    tokens = read_vocabulary(vocabulary, padding=padding, unknown=unknown)
    if extend_vocabulary and not tokens.has_strings:
        raise SplitError("`extend_vocabulary` appends words, and this vocabulary has no strings. Pass tokens instead.")
    candidates = find_candidates(tokens, fallbacks)
    vectors = read_vectors(with_options(source, **reading), None if extend_vocabulary else candidates.words)
    match = candidates.match_vectors(vectors)
    _warn_of_few_matches(int(match.is_matched.sum()), int(tokens.is_ordinary.sum()), vectors.source)
    weights = None if counts is None else align_counts(counts, tokens)
    trains, rare = _which_train(
        tokens, match, weights, trainable_tokens, train_most_frequent, min_count, train_fallbacks
    )
    gaps = np.sort(np.fromiter(tokens.gaps, np.int64))
    zeros = zero_ids(tokens.padding, gaps[~trains[gaps]])
    extra = _extra_words(tokens, vectors) if extend_vocabulary else {}
    words = np.concatenate([np.where(trains, NO_ROW, match.rows), np.fromiter(extra.values(), np.int64, len(extra))])
    remap = np.full(len(words), NO_ROW, np.int32)
    frozen = rows_of_vectors(remap, words, vectors, zeros)
    remap[np.flatnonzero(trains)] = ~np.arange(np.count_nonzero(trains), dtype=np.int32)
    if rare.any():
        remap[np.flatnonzero(rare)] = remap[tokens.unknown]
    split = SplitTable(
        remap=remap,
        trainable=_trainable_part(tokens, match.rows, trains, vectors, oov_initializer, seed),
        vocabulary=[*tokens.tokens, *extra] if tokens.has_strings else None,
        padding=tokens.padding,
        **frozen,
    )
    split = start_like(split, like)
    split = split if frozen_dtype is None else split.with_frozen_dtype(frozen_dtype)
    frozen_bytes = split.storage.table_bytes(split.num_frozen, split.dim)
    sizes = TableSizes(split.num_tokens, split.dim, split.num_frozen, split.num_trainable, frozen_bytes)
    split.coverage = measure_coverage(tokens, match, weights, sizes=sizes)
    split.lookup_layer = vocabulary if hasattr(vocabulary, "get_vocabulary") else None
    return split


def _warn_of_few_matches(num_matched: int, num_ordinary: int, source: str) -> None:
    if num_matched > num_ordinary * FEW_MATCHES or not num_ordinary:
        return
    found = f"Only {num_matched:,}" if num_matched else "None"
    warnings.warn(
        f"{found} of the {num_ordinary:,} tokens has a vector in {source}; the others train. Check case and spelling "
        f"(`fallbacks` tries other spellings), the lines of the vocabulary file, and the order of arguments.",
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
    """Return two masks `(num_tokens,)`: tokens with a trainable row each, and rare ones that share that of `[UNK]`."""
    is_known = match.rows != NO_ROW
    chosen = chosen_tokens(tokens, is_known, counts, trainable_tokens, train_most_frequent)
    rare = rare_tokens(tokens, is_known, counts, min_count) & ~chosen
    trains = ~is_known & ~rare
    trains[np.fromiter(tokens.gaps, np.int64)] = False
    trains |= chosen
    if train_fallbacks:
        trains |= match.is_fallback
    if tokens.padding is not None:
        trains[tokens.padding] = False
    return trains, rare


def _extra_words(tokens: Vocabulary, vectors: WordVectors) -> dict[str, int]:
    """Return the words that are not in the vocabulary, each with its first index among all words."""
    extra = {word: number for word, number in first_indices(vectors.words).items() if word not in tokens.index}
    if vectors.table is not None:
        extra.pop("", None)
    return dict(reversed(extra.items()))


def _trainable_part(
    tokens: Vocabulary,
    known: NDArray[np.int64],
    trains: NDArray[np.bool_],
    vectors: WordVectors,
    initializer: Any,
    seed: Any,
) -> NDArray[np.float32]:
    """Return the trainable rows in id order: the vector of known tokens, for others the initializer's values."""
    words = known[trains]
    is_known = words != NO_ROW
    result = np.empty((len(words), vectors.dim), np.float32)
    result[is_known] = vectors.take(words[is_known])
    matched, _ = used_rows(known[known != NO_ROW], len(vectors))
    reference = vectors.take(matched[:: max(1, len(matched) // MAX_REFERENCE_ROWS)])
    oov = np.flatnonzero(trains)[~is_known]
    # Reserved tokens such as "[UNK]" have no meaningful spelling.
    by_letters = tokens.is_ordinary[oov] | (not needs_tokens(initializer))
    generator = make_generator(seed)
    for chosen, how in ((by_letters, initializer), (~by_letters, "uniform")):
        named = _spelled(tokens, oov[chosen])
        rows = initialize_rows(how, named, vectors.dim, reference=reference, seed=generator, known=vectors)
        result[np.flatnonzero(~is_known)[chosen]] = rows
    return result


def _spelled(tokens: Vocabulary, ids: NDArray[np.int64]) -> list[str]:
    """Return the spellings of tokens in files of vectors, for initializers that read them."""
    spellings = tokens.spellings or tokens.tokens
    return [spellings[token_id] or tokens.tokens[token_id] for token_id in ids.tolist()]
