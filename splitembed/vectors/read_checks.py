"""Checks that every reader makes on the words and rows it finds: wanted, distinct, finite float32."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import is_count
from splitembed.errors import VectorFormatError, VocabularyError
from splitembed.vectors.read_warnings import DUPLICATE, NOT_UTF8, NUMBERS, REPLACED, SKIPPED, ReadWarnings
from splitembed.vectors.word_vectors import Block
from splitembed.words import decode_word, encode_word

Positions = Sequence[int] | NDArray[np.int64]

NON_FINITE = ("error", "zero")


class ReadChecks:
    """Checks of the words and rows of one reading.

    >>> checks = ReadChecks("by hand", vocabulary=["the", "of"])
    >>> block = checks.accept(["the", "the"], np.array([[1.0, 2.0], [3.0, 4.0]]), [1, 2])
    >>> block.words, block.vectors.tolist(), checks.warnings.message()[:57]
    (['the'], [[1.0, 2.0]], 'by hand: duplicate words, first row kept: 1 (first: line ')

    Args:
        source: the name of the source, for messages.
        vocabulary: the tokens whose rows are wanted; None wants all.
        dim: the dim that rows must have; None takes any.
        strict: raise an error instead of each warning.
        non_finite: "error", or "zero" to replace NaN and infinities, which gives a warning.
        skip_bad_lines: count invalid lines of a text instead of raising an error, unless `strict`.
        numbers_are_words: accept words that are all decimal numbers.
        refuses_numbers_as_words: raise an error instead of the warning about them, also without `strict`.

    Raises:
        VectorFormatError: an invalid option.
        VocabularyError: `vocabulary` is not an iterable of strings.
    """

    # The unit of positions. A reader that counts rows or bytes sets its own.
    unit = "line"
    # The most rows that the reader can return. A reader sets it before its first block, if it knows.
    most_rows: int | None = None

    def __init__(
        self,
        source: str,
        *,
        vocabulary: Iterable[str] | None = None,
        dim: int | None = None,
        strict: bool = False,
        non_finite: str = "error",
        skip_bad_lines: bool = False,
        numbers_are_words: bool = False,
        refuses_numbers_as_words: bool = False,
    ) -> None:
        if non_finite not in NON_FINITE:
            raise VectorFormatError(f"`non_finite` must be one of {', '.join(NON_FINITE)}. Received: {non_finite!r}.")
        if dim is not None and not is_count(dim, 1):
            raise VectorFormatError(f"`dim` must be an integer, at least 1, or None. Received: {dim!r}.")
        self.source, self.dim, self.non_finite = source, dim, non_finite
        self.skips_bad_lines = skip_bad_lines and not strict
        self._numbers_are_words, self._refuses_numbers = numbers_are_words, refuses_numbers_as_words or strict
        self.wanted = None if vocabulary is None else _tokens(vocabulary)
        self.warnings = ReadWarnings(source, strict)
        self._seen: set[str] = set()

    @functools.cached_property
    def wanted_bytes(self) -> frozenset[bytes] | None:
        """The wanted words as bytes, without those that no file can spell."""
        if self.wanted is None:
            return None
        return frozenset(raw for word in self.wanted if (raw := _encode(word)) is not None)

    def check_dim(self, found: int) -> None:
        """Raise an error if the requested dim is not the one found.

        Raises:
            VectorFormatError: the dims differ.
        """
        if self.dim not in (None, found):
            raise VectorFormatError(
                f"{self.source}: found rows of dim {found}; expected dim={self.dim}. Pass dim={found}, or read the "
                "right file."
            )

    def error(self, position: int, found: str, expected: str, advice: str) -> VectorFormatError:
        """Return the error for invalid content at a position."""
        return VectorFormatError(f"{self.source}, {self.unit} {position}: found {found}; expected {expected}. {advice}")

    def skip_line(self, line: int, error: VectorFormatError) -> None:
        """Count an invalid line, if such lines are skipped.

        Raises:
            VectorFormatError: the given error, if they are not.
        """
        if not self.skips_bad_lines:
            raise error
        self.warnings.add(SKIPPED, f"line {line}", num_shown=3)

    def check_numbers_as_words(self, line: int, row: bytes, is_certain: bool) -> None:
        """Count a text whose words are all decimal numbers, as in a matrix without words.

        Args:
            line: the line number of a row.
            row: the row.
            is_certain: whether the rows differ in length, so that they cannot be read.

        Raises:
            VectorFormatError: such a text is refused.
        """
        if self._numbers_are_words:
            return
        if is_certain or self._refuses_numbers:
            raise self.error(
                line,
                f"rows that start with decimal numbers, such as {row[:60]!r}",
                "a word at the start of each row",
                "Pass (words, path) to give the words of a matrix. If these numbers are words, set "
                "`numbers_are_words`.",
            )
        self.warnings.add(NUMBERS, f"line {line}", None)

    def accept(self, words: list[str], rows: NDArray[Any], positions: Positions) -> Block:
        """Return the rows of the words that were not read before, as finite float32.

        Args:
            words: one for each row, all of them wanted.
            rows: real numbers `(num_rows, dim)`, each the float64 or float32 nearest to the number in the source.
            positions: the position of each row: its line, byte or row number.

        Returns:
            The block; its rows may be `rows` itself.

        Raises:
            VectorFormatError: a value that is not finite; any suspicious content, when strict.
        """
        kept = self.accept_words(words, positions)
        if len(kept) < len(words):
            words, rows, positions = [words[i] for i in kept], rows[kept], [positions[i] for i in kept]
        return Block(words, self.finite(words, rows, positions))

    def accept_words(self, words: list[str], positions: Positions) -> Sequence[int]:
        """Return the indices of the words that were not read before.

        Args:
            words: all of them wanted.
            positions: the position of each.

        Returns:
            The indices to keep.

        Raises:
            VectorFormatError: any suspicious content, when strict.
        """
        kept = self._new_words(words, positions)
        if not _is_unicode("".join(words)):
            self._count_escaped([words[i] for i in kept], [positions[i] for i in kept])
        return kept

    def _new_words(self, words: list[str], positions: Positions) -> Sequence[int]:
        seen, num_seen = self._seen, len(self._seen)
        # Nearly all blocks hold new, distinct words: no loop over them then.
        if seen.isdisjoint(words):
            seen.update(words)
            if len(seen) == num_seen + len(words):
                return range(len(words))
            seen.difference_update(words)
        kept = []
        for index, word in enumerate(words):
            if word in seen:
                self.warnings.add(DUPLICATE, f"{self.unit} {positions[index]}")
            else:
                seen.add(word)
                kept.append(index)
        return kept

    def _count_escaped(self, words: list[str], positions: Positions) -> None:
        for word, position in zip(words, positions, strict=True):
            if not _is_unicode(word):
                self.warnings.add(NOT_UTF8, f"{self.unit} {position}")

    def finite(self, words: list[str], rows: NDArray[Any], positions: Positions) -> NDArray[np.float32]:
        """Return rows as finite float32.

        Args:
            words: a word of each row, for messages.
            rows: real numbers `(num_rows, dim)`.
            positions: the position of each.

        Returns:
            The rows; `rows` itself if it is finite float32 already.

        Raises:
            VectorFormatError: a value that is not finite, unless `non_finite` is "zero".
        """
        # Values that overflow float32 are found below.
        with np.errstate(over="ignore", invalid="ignore"):
            narrow = rows.astype(np.float32, copy=False)
        finite = np.isfinite(narrow)
        if finite.all():
            return narrow
        row = int((~finite).any(axis=1).argmax())
        if self.non_finite == "error":
            value = rows[row, int(finite[row].argmin())]
            raise self.error(
                positions[row],
                f"{value} in the row of {words[row]!r}",
                "values that are finite in float32",
                'Fix the source, or pass read_vectors(source, non_finite="zero"), which replaces them.',
            )
        self.warnings.add(REPLACED, f"{self.unit} {positions[row]}", int(np.count_nonzero(~finite)))
        return np.where(finite, narrow, np.float32(0))


def all_strings(words: Iterable[Any]) -> bool:
    """Return whether all words are strings, in half the time of a loop over them.

    >>> all_strings(["the", np.str_("of")]), all_strings(["the", b"of"])
    (True, False)
    """
    return all(issubclass(kind, str) for kind in set(map(type, words)))


def decode_words(words: Sequence[bytes]) -> list[str]:
    r"""Decode words as `decode_word` does, faster if all are UTF-8.

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
        position, token = next((index, token) for index, token in enumerate(tokens) if not isinstance(token, str))
        raise VocabularyError(
            f"`vocabulary` must hold strings. Received: token {position} is {token!r} of type {type(token).__name__}."
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
