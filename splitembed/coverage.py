"""What of a vocabulary has a pretrained vector, what has not, and what it weighs: tokens and words in, numbers out."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import SplitError
from splitembed.vectors import iter_vectors
from splitembed.vocabulary import Vocabulary, align_counts, read_vocabulary

TOP = 20  # out-of-vocabulary tokens that a report lists
LABEL_WIDTH = 40  # characters of a token that the table shows

Number = int | float


@dataclass(frozen=True)
class Coverage:
    """How much of a vocabulary the pretrained vectors cover; reserved ids (padding, `[UNK]`) count nowhere.

    >>> found = Coverage(num_tokens=4, num_matched=3, running_tokens=50, running_matched=45, oov=(("zzz", 5),))
    >>> found.type_share, found.running_share, found.num_oov_types
    (0.75, 0.9, 1)
    >>> print(found)
                      matched  of   share
    types                   3   4  75.0 %
    running tokens         45  50  90.0 %
    out of vocabulary: 1 type
    zzz                     5

    Args:
        num_tokens: number of tokens in the vocabulary ("types").
        num_matched: how many of them have a pretrained vector.
        running_tokens: sum of the counts of all tokens; None where there were no counts.
        running_matched: sum of the counts of the matched tokens; None where there were no counts.
        oov: tokens without a pretrained vector and their counts, the heaviest first, equal ones in id order; without
            counts the first in id order, with None.
    """

    num_tokens: int
    num_matched: int
    running_tokens: Number | None
    running_matched: Number | None
    oov: tuple[tuple[str, Number | None], ...]

    @property
    def num_oov_types(self) -> int:
        """Number of tokens without a pretrained vector, those that `oov` does not list included."""
        return self.num_tokens - self.num_matched

    @property
    def type_share(self) -> float:
        """Share of the tokens that are matched, from 0 to 1; NaN where there are no tokens."""
        return _share(self.num_matched, self.num_tokens)

    @property
    def running_share(self) -> float | None:
        """Share of the running tokens that are matched, from 0 to 1; NaN where none run, None without counts."""
        if self.running_tokens is None or self.running_matched is None:
            return None
        return _share(self.running_matched, self.running_tokens)

    def __str__(self) -> str:
        rows = [("", "matched", "of", "share"), _row("types", self.num_matched, self.num_tokens, self.type_share)]
        if self.running_share is not None:
            rows.append(_row("running tokens", self.running_matched, self.running_tokens, self.running_share))
        head = len(rows)
        lines = _aligned(rows + [(_printable(token), _number(count), "", "") for token, count in self.oov])
        return "\n".join([*lines[:head], *self._oov_title(), *lines[head:]])

    def _oov_title(self) -> list[str]:
        if not self.num_oov_types:
            return []
        which = "" if len(self.oov) == self.num_oov_types else f", {len(self.oov)} of them shown"
        return [f"out of vocabulary: {self.num_oov_types:,} type{'s' * (self.num_oov_types != 1)}{which}"]


def _share(part: Number, whole: Number) -> float:
    return part / whole if whole else math.nan


def _row(label: str, part: Number | None, whole: Number | None, share: float) -> tuple[str, str, str, str]:
    return label, _number(part), _number(whole), f"{100 * share:.1f} %"


def _number(value: Number | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _printable(token: str) -> str:
    """The token as a terminal can show it: odd characters escaped, the end of a long one left out."""
    shown = token if token.isprintable() and token.strip() == token != "" else ascii(token)
    return shown if len(shown) <= LABEL_WIDTH else shown[: LABEL_WIDTH - 3] + "..."


def _aligned(rows: list[tuple[str, str, str, str]]) -> list[str]:
    label, *numbers = (max(map(len, column)) for column in zip(*rows, strict=True))
    layout = "  ".join([f"{{:<{label}}}", *(f"{{:>{width}}}" for width in numbers)])
    return [layout.format(*row).rstrip() for row in rows]


def measure_coverage(
    vocabulary: Vocabulary, matched: NDArray[np.bool_], counts: Any = None, top: int = TOP
) -> Coverage:
    """Counts what was matched and lists the heaviest of what was not.

    >>> vocabulary = read_vocabulary(["", "[UNK]", "the", "zzz", "qqq"])
    >>> measure_coverage(vocabulary, np.array([0, 0, 1, 0, 0], bool), counts={"the": 8, "zzz": 1, "qqq": 3}).oov
    (('qqq', 3), ('zzz', 1))

    Args:
        vocabulary: the tokens.
        matched: bool `(num_tokens,)`: whether the id has a pretrained vector; what it says of reserved ids is ignored.
        counts: how often each token occurs, as `align_counts` takes them, or None.
        top: how many out-of-vocabulary tokens to list.

    Raises:
        SplitError: `matched` has another shape or dtype, or `top` is negative.
        VocabularyError: counts that are none.
    """
    if matched.dtype != bool or matched.shape != (vocabulary.num_tokens,):
        raise SplitError(
            f"`matched` must be bool of shape ({vocabulary.num_tokens},). Received: {matched.dtype}, {matched.shape}."
        )
    if top < 0:
        raise SplitError(f"`top` must be 0 or more. Received: {top}.")
    known = vocabulary.is_ordinary & matched
    missing = np.flatnonzero(vocabulary.is_ordinary & ~matched)
    weights = None if counts is None else align_counts(counts, vocabulary)
    return Coverage(
        num_tokens=int(vocabulary.is_ordinary.sum()),
        num_matched=int(known.sum()),
        running_tokens=None if weights is None else weights[vocabulary.is_ordinary].sum().item(),
        running_matched=None if weights is None else weights[known].sum().item(),
        oov=_heaviest(vocabulary, missing, weights, top),
    )


def _heaviest(
    vocabulary: Vocabulary, missing: NDArray[np.int64], weights: NDArray[Any] | None, top: int
) -> tuple[tuple[str, Number | None], ...]:
    if weights is None:
        return tuple((vocabulary.tokens[place], None) for place in missing[:top].tolist())
    first = missing[np.argsort(-weights[missing], kind="stable")[:top]]
    return tuple((vocabulary.tokens[place], weights[place].item()) for place in first.tolist())


def match_tokens(vocabulary: Vocabulary, words: Iterable[str]) -> NDArray[np.bool_]:
    """Marks the tokens that are among the words, by exact match; reserved ids never are.

    >>> match_tokens(read_vocabulary(["", "the", "The"]), ["The", ""]).tolist()
    [False, False, True]

    Args:
        vocabulary: the tokens.
        words: the words that have a pretrained vector, in any order.

    Returns:
        bool `(num_tokens,)`.
    """
    found = words if isinstance(words, (set, frozenset)) else set(words)
    matched = np.fromiter((token in found for token in vocabulary.tokens), bool, vocabulary.num_tokens)
    return matched & vocabulary.is_ordinary


def coverage(vocabulary: Any, source: Any, counts: Any = None, top: int = TOP) -> Coverage:
    """Says how much of a vocabulary the pretrained vectors cover, without building anything.

    >>> vectors = {"the": [0.1, 0.2], "of": [0.3, 0.4]}
    >>> print(coverage(["the", "zzz", "of"], vectors, counts={"the": 6, "of": 3, "zzz": 1}))
                      matched  of   share
    types                   2   3  66.7 %
    running tokens          9  10  90.0 %
    out of vocabulary: 1 type
    zzz                     1

    Args:
        vocabulary: whatever `read_vocabulary` takes.
        source: whatever `read_vectors` takes; read once, and only the rows whose word is in the vocabulary are kept.
        counts: how often each token occurs: a dict token -> count, or an array in id order; None if unknown.
        top: how many out-of-vocabulary tokens to list.

    Raises:
        VocabularyError: a vocabulary or counts that cannot be used.
        VectorFormatError: a file that holds no vectors.
    """
    tokens = read_vocabulary(vocabulary)
    words = {word for block in iter_vectors(source, tokens.tokens) for word in block.words}
    return measure_coverage(tokens, match_tokens(tokens, words), counts, top)
