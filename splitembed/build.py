"""A vocabulary and pretrained vectors go in; a `SplitTable` comes out: what is known is frozen, the rest trains."""

import itertools
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed.arrays import aligned_empty
from splitembed.coverage import measure_coverage
from splitembed.errors import NoMatchWarning, SplitError
from splitembed.initializers import MAX_REFERENCE_ROWS, initialize_rows
from splitembed.split import SplitTable
from splitembed.vectors import WordVectors, read_vectors
from splitembed.vocabulary import Vocabulary, align_counts, read_vocabulary

_NO_ROW = -1  # in place of a row of the vectors: the token has none, or trains


def build_split(
    vocabulary: Any,
    source: Any,
    *,
    trainable_tokens: Any = (),
    train_most_frequent: int = 0,
    counts: Mapping[str, float] | ArrayLike | None = None,
    min_count: float = 1,
    oov_initializer: Any = "uniform",
    padding: int | str | None = "auto",
    unknown: int | str | None = "auto",
    extend_vocabulary: bool = False,
    frozen_dtype: str | None = None,
    seed: Any = None,
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
        source: whatever `read_vectors` reads; of a file, only the rows that can match are kept.
        trainable_tokens: tokens, ids or a boolean mask `(num_tokens,)`: rows that train although they have a vector,
            from which they start.
        train_most_frequent: that many of the most frequent known tokens train too (needs `counts`).
        counts: how often each token occurs: a dict token -> count, or an array `(num_tokens,)`.
        min_count: OOV tokens rarer than this, if it is above 1, share the row of `[UNK]` (needs `counts`).
        oov_initializer: how OOV rows start: "uniform" (within 0.05 of zero, as Keras's Embedding), "zeros", "normal"
            (matched per dimension to the known rows), "mean", or any Keras initializer.
        padding: the id whose row is zero and frozen; "auto": "" at id 0, or a word_index that starts at 1.
        unknown: the id or token that is `[UNK]`; "auto": a Keras layer's own, or "[UNK]". It trains, and never matches.
        extend_vocabulary: append every other word of the source, so that words which training never saw have their
            vectors at serving; 4 bytes a word and no new trainable row.
        frozen_dtype: store the frozen rows as "float16", "bfloat16" or "int8"; by default as the source has them. On a
            shared table another dtype means a table of one's own.
        seed: of the initializer.

    Returns:
        The split; its `coverage` says what was matched.

    Raises:
        VocabularyError, VectorFormatError: the vocabulary or the vectors cannot be read.
        SplitError: options that need `counts`, `[UNK]` or a zero row, without it.
        TokenIdError, UnknownTokenError: `trainable_tokens` names what the vocabulary does not hold.
    """
    tokens = read_vocabulary(vocabulary, padding=padding, unknown=unknown)
    matchable = list(itertools.compress(tokens.tokens, tokens.is_ordinary.tolist()))
    vectors = read_vectors(source, None if extend_vocabulary else matchable)
    known = _match(tokens, vectors)
    if matchable and (known == _NO_ROW).all():
        warnings.warn(
            f"None of the {len(matchable):,} tokens has a vector in {vectors.source}, so every row trains. "
            "Matching is exact: look at case and spelling, and at the order of arguments.",
            NoMatchWarning,
            stacklevel=2,
        )
    weights = None if counts is None else align_counts(counts, tokens)
    chosen = _chosen(tokens, known, weights, trainable_tokens, train_most_frequent)
    rare = _rare(tokens, known, weights, min_count) & ~chosen
    trains = (known == _NO_ROW) & ~rare | chosen
    if tokens.padding is not None:
        trains[tokens.padding] = False
    extra_words, extra_rows = _extra(tokens, vectors) if extend_vocabulary else ([], [])
    rows = np.concatenate([np.where(trains, _NO_ROW, known), np.asarray(extra_rows, np.int64)])
    frozen, remap = _frozen_part(rows, vectors, tokens.padding)
    table = vectors.table
    remap[np.flatnonzero(trains)] = ~np.arange(np.count_nonzero(trains), dtype=np.int32)
    if rare.any():
        remap[np.flatnonzero(rare)] = remap[tokens.unknown]
    split = SplitTable(
        frozen,
        remap,
        _trainable_part(known, trains, vectors, oov_initializer, seed),
        vocabulary=[*tokens.tokens, *extra_words],
        padding=tokens.padding,
        scale=None if table is None else table.scale,
        frozen_dtype=None if table is None else table.dtype,
        table=table,
        coverage=measure_coverage(tokens, known != _NO_ROW, weights),
    )
    return split if frozen_dtype is None else split.with_frozen_dtype(frozen_dtype)


def _rows_of_words(vectors: WordVectors) -> dict[str, int]:
    """The words with their rows, last row first; in a frozen table "" is the word of rows that have none."""
    words = list(vectors.words)
    row_of = dict(zip(reversed(words), range(len(words) - 1, -1, -1), strict=True))  # the first of two rows counts
    if vectors.table is not None:
        row_of.pop("", None)
    return row_of


def _match(tokens: Vocabulary, vectors: WordVectors) -> NDArray[np.int64]:
    """`(num_tokens,)`: the vectors' row of each token, or -1; reserved ids never match."""
    row_of = _rows_of_words(vectors)
    known = np.fromiter(map(row_of.get, tokens.tokens, itertools.repeat(_NO_ROW)), np.int64, tokens.num_tokens)
    known[~tokens.is_ordinary] = _NO_ROW
    return known


def _extra(tokens: Vocabulary, vectors: WordVectors) -> tuple[list[str], list[int]]:
    """The words that the vocabulary lacks, and their rows."""
    extra = {word: row for word, row in _rows_of_words(vectors).items() if word not in tokens.index}
    return list(reversed(extra)), list(reversed(extra.values()))


def _chosen(
    tokens: Vocabulary, known: NDArray[np.int64], counts: NDArray[Any] | None, trainable_tokens: Any, most_frequent: int
) -> NDArray[np.bool_]:
    """`(num_tokens,)` bool: the tokens that were asked to train."""
    chosen = np.zeros(tokens.num_tokens, bool)
    chosen[tokens.ids(trainable_tokens)] = True
    if tokens.padding is not None and chosen[tokens.padding]:
        raise SplitError(f"`trainable_tokens` names the padding id {tokens.padding}, whose row is zero and frozen.")
    if most_frequent < 0:
        raise SplitError(f"`train_most_frequent` must be 0 or more. Received: {most_frequent}.")
    if most_frequent:
        candidates = np.flatnonzero(known != _NO_ROW)
        order = np.argsort(-_needed(counts, "train_most_frequent")[candidates], kind="stable")
        chosen[candidates[order[:most_frequent]]] = True
    return chosen


def _rare(
    tokens: Vocabulary, known: NDArray[np.int64], counts: NDArray[Any] | None, min_count: float
) -> NDArray[np.bool_]:
    """`(num_tokens,)` bool: OOV tokens that are to share the row of `[UNK]`."""
    if min_count <= 1:
        return np.zeros(tokens.num_tokens, bool)
    rare: NDArray[np.bool_] = (known == _NO_ROW) & tokens.is_ordinary & (_needed(counts, "min_count") < min_count)
    if rare.any() and tokens.unknown is None:
        raise SplitError(
            f"`min_count`={min_count} makes {np.count_nonzero(rare)} rare tokens share the row of [UNK], but the "
            f"vocabulary has none: add it, or name the token that plays its part with `unknown`."
        )
    return rare


def _needed(counts: NDArray[Any] | None, option: str) -> NDArray[Any]:
    if counts is None:
        raise SplitError(f"`{option}` needs `counts`: how often each token occurs.")
    return counts


def _frozen_part(
    rows: NDArray[np.int64], vectors: WordVectors, padding: int | None
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """The frozen rows, and a remap that is right wherever `rows` is not -1, and at the padding id."""
    if vectors.table is not None:
        remap = rows.astype(np.int32)
        if padding is not None:
            remap[padding] = _zero_row(vectors)
        return vectors.table.vectors, remap
    used, place_of = _used_rows(rows, len(vectors))
    remap = place_of[rows].astype(np.int32)
    if len(used) == len(vectors) and padding is None:
        return vectors.vectors, remap
    frozen = aligned_empty((len(used) + (padding is not None), vectors.dim), np.float32)
    np.take(vectors.vectors, used, axis=0, out=frozen[: len(used)], mode="clip")  # other modes copy once more
    if padding is not None:
        frozen[-1] = 0
        remap[padding] = len(used)
    return frozen, remap


def _used_rows(rows: NDArray[np.int64], num_rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows that occur, in order; and for each row its place among them, or garbage if it does not occur."""
    is_used = np.zeros(num_rows + 1, bool)
    is_used[rows] = True  # the last one stands for -1
    return np.flatnonzero(is_used[:-1]), np.cumsum(is_used) - 1


def _zero_row(vectors: WordVectors) -> int:
    assert vectors.table is not None
    if vectors.table.zero_row is None:
        raise SplitError(
            f"{vectors.source} has no zero row for the padding id, and a shared table cannot be added to. Convert the "
            f"vectors with `save_frozen`, which adds one, or build with padding=None."
        )
    return vectors.table.zero_row


def _trainable_part(
    known: NDArray[np.int64], trains: NDArray[np.bool_], vectors: WordVectors, initializer: Any, seed: Any
) -> NDArray[np.float32]:
    """The trainable rows in id order: known tokens start from their vector, the others from the initializer."""
    rows = known[trains]
    is_known = rows != _NO_ROW
    result = np.empty((len(rows), vectors.dim), np.float32)
    result[is_known] = vectors.take(rows[is_known])
    matched, _ = _used_rows(known, len(vectors))
    reference = vectors.take(matched[:: max(1, len(matched) // MAX_REFERENCE_ROWS)])
    num_oov = int(np.count_nonzero(~is_known))
    result[~is_known] = initialize_rows(initializer, num_oov, result.shape[1], reference=reference, seed=seed)
    return result
