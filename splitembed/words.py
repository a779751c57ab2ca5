"""Words as two flat arrays: strings enter; UTF-8 bytes and offsets leave, and come back as the same strings.

Word `i` is `utf8[offsets[i]:offsets[i + 1]]`. Nothing separates or ends a word, so any string fits: empty ones, NUL,
spaces, newlines. Bytes that are not UTF-8 (files of vectors hold such words) stand in a `str` as the lone surrogates
U+DC80..U+DCFF of PEP 383 (`surrogateescape`) and come back as the bytes they were.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VocabularyError

Packed = tuple[NDArray[np.uint8], NDArray[np.uint64]]


def decode_word(raw: bytes) -> str:
    r"""Turns the bytes of one word into a string, any bytes into a string of their own.

    >>> decode_word(b"caf\xc3\xa9"), decode_word(b"\xd0\xbf\xd1")
    ('café', 'п\udcd1')

    Args:
        raw: UTF-8, or anything else.

    Returns:
        The string; each byte that is not UTF-8 is one surrogate U+DC80..U+DCFF (PEP 383).
    """
    return raw.decode("utf-8", "surrogateescape")


def encode_word(word: str) -> bytes:
    r"""Turns a word into bytes that `decode_word` turns back into the same word.

    >>> encode_word("café"), encode_word("п\udcd1")
    (b'caf\xc3\xa9', b'\xd0\xbf\xd1')

    Args:
        word: any string that `decode_word` can return, so every string without lone surrogates.

    Returns:
        UTF-8, with escaped bytes as they were.

    Raises:
        VocabularyError: `word` is not a string, or holds surrogates that would not come back the same.
    """
    try:
        return str.encode(word)
    except UnicodeEncodeError:
        return _encode_escaped(word)
    except TypeError:
        raise VocabularyError(
            f"A word must be a str; found {word!r} of type {type(word).__name__}. Decode bytes with decode_word."
        ) from None


def _encode_escaped(word: str) -> bytes:
    try:
        raw = word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise VocabularyError(
            f"The word {word!r} holds the lone surrogate {word[error.start]!r} at character {error.start}; only "
            "U+DC80..U+DCFF, which stand for bytes, can be stored. Remove it, or join the surrogate pair it came from."
        ) from None
    if decode_word(raw) != word:
        raise VocabularyError(
            f"The word {word!r} escapes bytes that are valid UTF-8, so it would come back as {decode_word(raw)!r}. "
            "Use that string instead."
        )
    return raw


def pack_words(words: Iterable[str]) -> Packed:
    r"""Joins words into one array of bytes and the offsets of their ends.

    >>> utf8, offsets = pack_words(["the", "", "é"])
    >>> utf8.tobytes(), offsets.tolist()
    (b'the\xc3\xa9', [0, 3, 3, 5])

    Args:
        words: strings; a `Words` that was not used yet is not decoded.

    Returns:
        `utf8`, uint8 `(num_bytes,)`, and `offsets`, uint64 `(num_words + 1,)`.

    Raises:
        VocabularyError: something that is not a string, or a string that would not come back the same.
    """
    if isinstance(words, Words):
        return words.packed()
    if isinstance(words, (str, bytes)):
        raise VocabularyError(f"Words must be a sequence of strings; found one {type(words).__name__}: {words[:40]!r}.")
    encoded = _encode_words(list(words))
    offsets = np.zeros(len(encoded) + 1, np.uint64)
    np.cumsum(np.fromiter(map(len, encoded), np.uint64, len(encoded)), out=offsets[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


def _encode_words(words: list[str]) -> list[bytes]:
    try:
        return list(map(str.encode, words))  # twice as fast as one call of `encode_word` after another
    except (UnicodeEncodeError, TypeError):
        return list(map(encode_word, words))


def unpack_words(utf8: NDArray[Any], offsets: NDArray[Any]) -> list[str]:
    """Cuts bytes into words: the inverse of `pack_words`.

    >>> unpack_words(np.frombuffer(b"theof", np.uint8), np.array([0, 3, 3, 5], np.uint64))
    ['the', '', 'of']

    Args:
        utf8: uint8 `(num_bytes,)`.
        offsets: uint64 `(num_words + 1,)`, from 0 to `num_bytes`, never falling.

    Returns:
        `num_words` strings.

    Raises:
        VocabularyError: the offsets are not such.
    """
    check_offsets(offsets, len(utf8))
    raw, ends = utf8.tobytes(), offsets.tolist()
    return [raw[start:end].decode("utf-8", "surrogateescape") for start, end in itertools.pairwise(ends)]


def check_offsets(offsets: NDArray[Any], num_bytes: int) -> None:
    """Refuses offsets that do not cut `num_bytes` bytes into words.

    >>> check_offsets(np.array([0, 4, 2, 5]), 5)
    Traceback (most recent call last):
    splitembed.errors.VocabularyError: Offsets of words must never fall; word 1 goes from 4 to 2.

    Args:
        offsets: integers `(num_words + 1,)`.
        num_bytes: number of bytes they cut.

    Raises:
        VocabularyError: they are empty, do not start at 0, fall, or do not end at `num_bytes`.
    """
    if not len(offsets) or offsets[0] != 0:
        raise VocabularyError(f"Offsets of words must start with 0; found {offsets[:1].tolist()}.")
    falls = offsets[1:] < offsets[:-1]
    if falls.any():
        word = int(falls.argmax())
        raise VocabularyError(
            f"Offsets of words must never fall; word {word} goes from {offsets[word]} to {offsets[word + 1]}."
        )
    if int(offsets[-1]) != num_bytes:
        raise VocabularyError(f"Offsets of words must end at the {num_bytes} bytes there are; found {offsets[-1]}.")


class Words(Sequence[str]):
    """Words that cost nothing until one is asked for: then all are decoded to a list, which is kept.

    >>> words = Words.from_arrays(*pack_words(["the", "of", "and"]))
    >>> len(words), words[1], words[-2:], "and" in words
    (3, 'of', ['of', 'and'], True)

    Args:
        num_words: how many there are; `len` answers this without loading.
        load: called on first use; returns `(utf8, offsets)` as `pack_words` does.
    """

    def __init__(self, num_words: int, load: Callable[[], Packed]) -> None:
        self._num_words = num_words
        self._load: Callable[[], Packed] | None = load
        self._decoded: list[str] | None = None

    @classmethod
    def from_arrays(cls, utf8: NDArray[np.uint8], offsets: NDArray[np.uint64]) -> "Words":
        """Makes words over arrays in memory.

        >>> list(Words.from_arrays(np.frombuffer(b"ab", np.uint8), np.array([0, 1, 2], np.uint64)))
        ['a', 'b']

        Args:
            utf8: uint8 `(num_bytes,)`.
            offsets: uint64 `(num_words + 1,)`.

        Returns:
            The words; nothing is copied or decoded yet.
        """
        return cls(len(offsets) - 1, lambda: (utf8, offsets))

    @classmethod
    def from_list(cls, words: Iterable[str]) -> "Words":
        """Makes words of strings that are there already.

        >>> Words.from_list(["the", "of"])
        <Words: 2, decoded>

        Args:
            words: strings; their list is copied.

        Returns:
            The words.
        """
        decoded = list(words)
        self = cls(len(decoded), lambda: pack_words(decoded))
        self._decoded, self._load = decoded, None
        return self

    def packed(self) -> Packed:
        """Returns `(utf8, offsets)` as `pack_words` of the list would, without decoding what is not decoded yet.

        >>> Words.from_list(["a", "bc"]).packed()[1].tolist()
        [0, 1, 3]
        """
        load = self._load
        return pack_words(self._list()) if load is None else load()

    def _list(self) -> list[str]:
        load = self._load  # read first: another thread may finish decoding in between
        if load is not None:
            decoded = unpack_words(*load())
            if len(decoded) != self._num_words:
                raise VocabularyError(f"{self._num_words} words were promised; {len(decoded)} were found.")
            self._decoded, self._load = decoded, None  # the list replaces the arrays: both would cost twice
        assert self._decoded is not None
        return self._decoded

    def __reduce__(self) -> tuple[Any, ...]:
        return Words.from_arrays, self.packed()  # a loader cannot travel to another process

    def __len__(self) -> int:
        return self._num_words

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self._list()[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._list())

    def __contains__(self, word: object) -> bool:
        return word in self._list()

    def index(self, value: str, *limits: int) -> int:
        """Returns the first place of a word, as `list.index` does.

        >>> Words.from_arrays(*pack_words(["a", "b"])).index("b")
        1
        """
        return self._list().index(value, *limits)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Words, list, tuple)):
            return NotImplemented
        return len(self) == len(other) and self._list() == list(other)

    __hash__ = None  # type: ignore[assignment]  # equal to a list, so as unhashable as one

    def __repr__(self) -> str:
        return f"<Words: {self._num_words}{'' if self._decoded is None else ', decoded'}>"
