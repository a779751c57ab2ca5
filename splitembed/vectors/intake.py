"""What every reader does with the rows it found: words and numbers enter; distinct words, finite float32 rows leave."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import is_count
from splitembed.errors import VectorFormatError, VocabularyError
from splitembed.vectors.read_warnings import DUPLICATE, NOT_UTF8, REPLACED, Doubts
from splitembed.vectors.word_vectors import Block
from splitembed.words import decode_word, encode_word

Places = Sequence[int] | NDArray[np.int64]

NON_FINITE = ("error", "zero")


class Intake:
    """The rules of one reading: which words are wanted, which dim is asked for, what is an error and what a doubt.

    >>> intake = Intake("by hand", vocabulary=["the", "of"])
    >>> block = intake.admit(["the", "the"], np.array([[1.0, 2.0], [3.0, 4.0]]), [1, 2])
    >>> block.words, block.vectors.tolist(), intake.doubts.message()[:60]
    (['the'], [[1.0, 2.0]], 'by hand: words that came again, first row kept: 1 (first: li')

    Args:
        source: what is read, for messages.
        vocabulary: the tokens whose rows are wanted; None wants all.
        dim: the dim that rows must have; None takes what is found.
        strict: doubts are errors.
        non_finite: "error", or "zero" to replace NaN and infinities, counted.

    Raises:
        VectorFormatError: an option that is none.
        VocabularyError: a vocabulary that is not an iterable of strings.
    """

    unit = "line"  # what places count; a reader of something else sets its own
    most_rows: int | None = None  # that a reader will give: set before its first block, where it can tell

    def __init__(
        self,
        source: str,
        *,
        vocabulary: Iterable[str] | None = None,
        dim: int | None = None,
        strict: bool = False,
        non_finite: str = "error",
    ) -> None:
        if non_finite not in NON_FINITE:
            raise VectorFormatError(f"`non_finite` must be one of {', '.join(NON_FINITE)}. Received: {non_finite!r}.")
        if dim is not None and not is_count(dim, 1):
            raise VectorFormatError(f"`dim` must be an integer, at least 1, or None. Received: {dim!r}.")
        self.source, self.dim, self.non_finite = source, dim, non_finite
        self.wanted = None if vocabulary is None else _tokens(vocabulary)
        self.doubts = Doubts(source, strict)
        self._seen: set[str] = set()

    @functools.cached_property
    def wanted_bytes(self) -> frozenset[bytes] | None:
        """The wanted words as a file spells them; what no file can spell is left out."""
        if self.wanted is None:
            return None
        return frozenset(raw for word in self.wanted if (raw := _encode(word)) is not None)

    def check_dim(self, found: int) -> None:
        """Refuses rows of another dim than was asked for."""
        if self.dim not in (None, found):
            raise VectorFormatError(
                f"{self.source} holds rows of dim {found}; dim={self.dim} was asked for. "
                f"Pass dim={found}, or read the right file."
            )

    def error(self, place: int, found: str, expected: str, advice: str) -> VectorFormatError:
        """Makes the error that names a place, what was found there, what was expected, and what to do."""
        return VectorFormatError(f"{self.source}, {self.unit} {place}: found {found}; expected {expected}. {advice}")

    def admit(self, words: list[str], rows: NDArray[Any], places: Places) -> Block:
        """Keeps the rows whose word comes for the first time, and makes them finite float32.

        Args:
            words: one for each row, all of them wanted.
            rows: real numbers `(num_rows, dim)`, each the nearest float64 or float32 to what stands in the source.
            places: where each stands: a line, byte or row number.

        Returns:
            The block; its rows may be `rows` itself.

        Raises:
            VectorFormatError: a value that is not finite; any doubt, when strict.
        """
        kept = self.admit_words(words, places)
        if len(kept) < len(words):
            words, rows, places = [words[i] for i in kept], rows[kept], [places[i] for i in kept]
        return Block(words, self.finite(words, rows, places))

    def admit_words(self, words: list[str], places: Places) -> Sequence[int]:
        """Finds the words that come for the first time, where words have no rows of their own.

        Args:
            words: all of them wanted.
            places: where each stands.

        Returns:
            Which of them are kept, as indices.

        Raises:
            VectorFormatError: any doubt, when strict.
        """
        kept = self._first_comers(words, places)
        if not _is_unicode("".join(words)):
            self._count_escaped([words[i] for i in kept], [places[i] for i in kept])
        return kept

    def _first_comers(self, words: list[str], places: Places) -> Sequence[int]:
        seen, num_seen = self._seen, len(self._seen)
        if seen.isdisjoint(words):  # nearly always, and nearly always the words are distinct: no loop then
            seen.update(words)
            if len(seen) == num_seen + len(words):
                return range(len(words))
            seen.difference_update(words)
        kept = []
        for index, word in enumerate(words):
            if word in seen:
                self.doubts.add(DUPLICATE, f"{self.unit} {places[index]}")
            else:
                seen.add(word)
                kept.append(index)
        return kept

    def _count_escaped(self, words: list[str], places: Places) -> None:
        for word, place in zip(words, places, strict=True):
            if not _is_unicode(word):
                self.doubts.add(NOT_UTF8, f"{self.unit} {place}")

    def finite(self, words: list[str], rows: NDArray[Any], places: Places) -> NDArray[np.float32]:
        """Makes rows finite float32.

        Args:
            words: a word of each row, for messages.
            rows: real numbers `(num_rows, dim)`.
            places: where each stands.

        Returns:
            The rows; `rows` itself where they are such already.

        Raises:
            VectorFormatError: a value that is not finite, unless such are to be replaced.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows float32 is found below
            narrow = rows.astype(np.float32, copy=False)
        finite = np.isfinite(narrow)
        if finite.all():
            return narrow
        row = int((~finite).any(axis=1).argmax())
        if self.non_finite == "error":
            value = rows[row, int(finite[row].argmin())]
            raise self.error(
                places[row],
                f"{value} in the row of {words[row]!r}",
                "values that float32 holds as finite numbers",
                'Mend the source, or pass read_vectors(source, non_finite="zero"), which replaces them.',
            )
        self.doubts.add(REPLACED, f"{self.unit} {places[row]}", int(np.count_nonzero(~finite)))
        return np.where(finite, narrow, np.float32(0))


def all_strings(words: Iterable[Any]) -> bool:
    """Says whether all are strings, in half the time of looking at each.

    >>> all_strings(["the", np.str_("of")]), all_strings(["the", b"of"])
    (True, False)
    """
    return all(issubclass(kind, str) for kind in set(map(type, words)))


def decode_words(words: Sequence[bytes]) -> list[str]:
    r"""Turns bytes into strings as `decode_word` does, all at once where all are UTF-8.

    >>> decode_words([b"the", b"caf\xc3\xa9", b"\xff"])
    ['the', 'café', '\udcff']
    """
    try:
        return list(map(bytes.decode, words))
    except UnicodeDecodeError:
        return list(map(decode_word, words))


def _tokens(vocabulary: Iterable[str]) -> frozenset[str]:
    if isinstance(vocabulary, (str, bytes)) or not isinstance(vocabulary, Iterable):
        raise VocabularyError(f"`vocabulary` must be an iterable of tokens. Received: {vocabulary!r}.")
    tokens: tuple[Any, ...] = tuple(vocabulary)
    if not all_strings(tokens):
        place, token = next((place, token) for place, token in enumerate(tokens) if not isinstance(token, str))
        raise VocabularyError(
            f"`vocabulary` must hold strings; token {place} is {token!r} of type {type(token).__name__}."
        )
    return frozenset(tokens)


def _encode(word: str) -> bytes | None:
    try:
        return encode_word(word)
    except VocabularyError:
        return None


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
