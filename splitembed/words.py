"""Words as two flat arrays, of UTF-8 bytes and of offsets.

Word `i` is `utf8[offsets[i]:offsets[i + 1]]`. There are no separators, so a word can be any string: empty, or with NUL,
spaces and newlines. Bytes that are not UTF-8, which files of vectors contain, are represented in a `str` as the lone
surrogates U+DC80..U+DCFF of PEP 383 (`surrogateescape`), from which the bytes can be restored.
"""

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VocabularyError

Packed = tuple[NDArray[np.uint8], NDArray[np.uint64]]


def decode_word(raw: bytes) -> str:
    r"""Return the bytes of one word as a string; different bytes give different strings.

    >>> decode_word(b"caf\xc3\xa9"), decode_word(b"\xd0\xbf\xd1")
    ('café', 'п\udcd1')

    Args:
        raw: UTF-8 or any other bytes.

    Returns:
        The string; each byte that is not UTF-8 is one surrogate U+DC80..U+DCFF (PEP 383).
    """
    return raw.decode("utf-8", "surrogateescape")


def encode_word(word: str) -> bytes:
    r"""Return a word as bytes: the inverse of `decode_word`.

    >>> encode_word("café"), encode_word("п\udcd1")
    (b'caf\xc3\xa9', b'\xd0\xbf\xd1')

    Args:
        word: a string that `decode_word` can return, such as any string without lone surrogates.

    Returns:
        UTF-8, with escaped bytes restored.

    Raises:
        VocabularyError: `word` is not a string, or holds surrogates that cannot be restored.
    """
    try:
        return str.encode(word)
    except UnicodeEncodeError:
        return _encode_escaped(word)
    except TypeError:
        raise VocabularyError(
            f"Words must be str. Received: {word!r} of type {type(word).__name__}. Decode bytes with decode_word."
        ) from None


def _encode_escaped(word: str) -> bytes:
    try:
        raw = word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise VocabularyError(
            f"The word {word!r} holds the lone surrogate {word[error.start]!r} at character {error.start}; expected "
            "only U+DC80..U+DCFF, which represent bytes. Remove it, or join the surrogate pair that it belongs to."
        ) from None
    if decode_word(raw) != word:
        raise VocabularyError(
            f"The word {word!r} escapes bytes that are valid UTF-8, so it would be read back as {decode_word(raw)!r}. "
            "Use that string instead."
        )
    return raw


def first_indices(words: Sequence[str], wanted: Container[str] | None = None) -> dict[str, int]:
    """Return the index of each word, and of duplicate words the first one; the last word comes first.

    >>> first_indices(["a", "b", "a"]), first_indices(["a", "b", "a"], {"b"})
    ({'a': 0, 'b': 1}, {'b': 1})

    Args:
        words: any strings.
        wanted: the words to return; by default all.
    """
    listed = list(words)
    listed.reverse()
    pairs = zip(listed, range(len(listed) - 1, -1, -1), strict=True)
    return dict(pairs) if wanted is None else {word: index for word, index in pairs if word in wanted}


def pack_words(words: Iterable[str]) -> Packed:
    r"""Return words as one array of bytes and an array of offsets.

    >>> utf8, offsets = pack_words(["the", "", "é"])
    >>> utf8.tobytes(), offsets.tolist()
    (b'the\xc3\xa9', [0, 3, 3, 5])

    Args:
        words: strings; `Words` that are not decoded yet stay so.

    Returns:
        `utf8`, uint8 `(num_bytes,)`, and `offsets`, uint64 `(num_words + 1,)`.

    Raises:
        VocabularyError: not a string, or a string that cannot be restored.
    """
    if isinstance(words, Words):
        return words.packed()
    if isinstance(words, (str, bytes)):
        raise VocabularyError(
            f"`words` must be a sequence of strings. Received: {type(words).__name__} {words[:40]!r}."
        )
    encoded = _encode_words(list(words))
    offsets = np.zeros(len(encoded) + 1, np.uint64)
    np.cumsum(np.fromiter(map(len, encoded), np.uint64, len(encoded)), out=offsets[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


def _encode_words(words: list[str]) -> list[bytes]:
    try:
        # Twice as fast as calling `encode_word` for each word.
        return list(map(str.encode, words))
    except (UnicodeEncodeError, TypeError):
        return list(map(encode_word, words))


def unpack_words(utf8: NDArray[Any], offsets: NDArray[Any]) -> list[str]:
    """Return packed words as strings: the inverse of `pack_words`.

    >>> unpack_words(np.frombuffer(b"theof", np.uint8), np.array([0, 3, 3, 5], np.uint64))
    ['the', '', 'of']

    Args:
        utf8: uint8 `(num_bytes,)`.
        offsets: uint64 `(num_words + 1,)`, from 0 to `num_bytes`, never decreasing.

    Returns:
        `num_words` strings.

    Raises:
        VocabularyError: other offsets.
    """
    check_offsets(offsets, len(utf8))
    raw, ends = utf8.tobytes(), offsets.tolist()
    return [raw[start:end].decode("utf-8", "surrogateescape") for start, end in itertools.pairwise(ends)]


def check_offsets(offsets: NDArray[Any], num_bytes: int) -> None:
    """Refuse offsets that do not divide `num_bytes` bytes into words.

    >>> check_offsets(np.array([0, 4, 2, 5]), 5)
    Traceback (most recent call last):
    splitembed.errors.VocabularyError: Offsets of words must not decrease. Received: word 1 from 4 to 2.

    Args:
        offsets: integers `(num_words + 1,)`.
        num_bytes: number of bytes of all words.

    Raises:
        VocabularyError: they are empty, do not start at 0, decrease, or do not end at `num_bytes`.
    """
    if not len(offsets) or offsets[0] != 0:
        raise VocabularyError(f"Offsets of words must start with 0. Received: {offsets[:1].tolist()}.")
    decreases = offsets[1:] < offsets[:-1]
    if decreases.any():
        word = int(decreases.argmax())
        raise VocabularyError(
            f"Offsets of words must not decrease. Received: word {word} from {offsets[word]} to {offsets[word + 1]}."
        )
    if int(offsets[-1]) != num_bytes:
        raise VocabularyError(f"Offsets of words must end at the {num_bytes} bytes. Received: {offsets[-1]}.")


class Words(Sequence[str]):
    """A sequence of words that is loaded and decoded on first use.

    >>> words = Words.from_arrays(*pack_words(["the", "of", "and"]))
    >>> len(words), words[1], words[-2:], "and" in words
    (3, 'of', ['of', 'and'], True)

    Args:
        num_words: number of words, which `len` returns without loading.
        load: returns `(utf8, offsets)` as `pack_words` does.
    """

    def __init__(self, num_words: int, load: Callable[[], Packed]) -> None:
        self._num_words = num_words
        self._load: Callable[[], Packed] | None = load
        self._decoded: list[str] | None = None

    @classmethod
    def from_arrays(cls, utf8: NDArray[np.uint8], offsets: NDArray[np.uint64]) -> "Words":
        """Make words of packed arrays.

        >>> list(Words.from_arrays(np.frombuffer(b"ab", np.uint8), np.array([0, 1, 2], np.uint64)))
        ['a', 'b']

        Args:
            utf8: uint8 `(num_bytes,)`.
            offsets: uint64 `(num_words + 1,)`.

        Returns:
            The words; the arrays are neither copied nor decoded.
        """
        return cls(len(offsets) - 1, lambda: (utf8, offsets))

    @classmethod
    def from_list(cls, words: Iterable[str]) -> "Words":
        """Make words of strings.

        >>> Words.from_list(["the", "of"])
        <Words: 2, decoded>

        Args:
            words: strings, which are copied into a list.

        Returns:
            The words.
        """
        decoded = list(words)
        self = cls(len(decoded), lambda: pack_words(decoded))
        self._decoded, self._load = decoded, None
        return self

    def packed(self) -> Packed:
        """Return `(utf8, offsets)` as `pack_words` does, without decoding the words.

        >>> Words.from_list(["a", "bc"]).packed()[1].tolist()
        [0, 1, 3]
        """
        load = self._load
        return pack_words(self._list()) if load is None else load()

    def _list(self) -> list[str]:
        # Read once, because another thread may finish decoding in between.
        load = self._load
        if load is not None:
            decoded = unpack_words(*load())
            if len(decoded) != self._num_words:
                raise VocabularyError(f"Loading returned {len(decoded)} words; expected {self._num_words}.")
            # The arrays are released.
            self._decoded, self._load = decoded, None
        assert self._decoded is not None
        return self._decoded

    def __reduce__(self) -> tuple[Any, ...]:
        # A loader cannot be pickled.
        return Words.from_arrays, self.packed()

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
        """Return the first index of a word, as `list.index` does.

        >>> Words.from_arrays(*pack_words(["a", "b"])).index("b")
        1
        """
        return self._list().index(value, *limits)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Words, list, tuple)):
            return NotImplemented
        return len(self) == len(other) and self._list() == list(other)

    # Equal to a list, so not hashable either.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Words: {self._num_words}{'' if self._decoded is None else ', decoded'}>"
