"""Words of the rows of a matrix, from a list, an array, a file or a vocabulary."""

import errno
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VectorFormatError
from splitembed.paths import holds_bytes, local_source, name_source
from splitembed.vectors.pairs.npy import MAGIC, map_npy
from splitembed.vectors.read_checks import decode_words
from splitembed.vectors.streams.opening import open_stream
from splitembed.vectors.unreadable import BINARY, name_foreign
from splitembed.vocabulary import Vocabulary, read_vocabulary

BOM = b"\xef\xbb\xbf"
# `read_vocabulary` tells JSON from words by the same start.
_JSON_OBJECT = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"')
# Attributes of vocabularies of Keras, tokenizers and gensim.
_VOCABULARIES = ("get_vocabulary", "get_vocab", "token2id", "word_index")


class WordList(NamedTuple):
    """Words of a matrix.

    Args:
        words: strings; any object with a length that gives slices.
        num_rows: the number of rows that the matrix must have.
        row_of: int64 `(num_words,)`, the row of each word; None where word `i` has row `i`.
    """

    words: Any
    num_rows: int
    row_of: NDArray[np.int64] | None = None


class PackedWords:
    """Words in one bytes object, decoded slice by slice: each costs its bytes and 16 more.

    >>> words = PackedWords(b"the of", np.array([0, 4]), np.array([3, 6]))
    >>> len(words), words[1:2]
    (2, ['of'])

    Args:
        raw: the bytes.
        starts: int64 `(num_words,)` where each word starts.
        ends: int64 `(num_words,)` where it ends.
    """

    def __init__(self, raw: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        self._raw, self._starts, self._ends = raw, starts, ends

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, positions: slice) -> list[str]:
        bounds = zip(self._starts[positions].tolist(), self._ends[positions].tolist(), strict=True)
        return decode_words([self._raw[start:end] for start, end in bounds])


class ArrayWords:
    """Words of a NumPy array, mapped or not, converted to strings slice by slice.

    >>> ArrayWords(np.array([b"the", b"of"]))[0:2], ArrayWords(np.array([7, 8]))[1:2]
    (['the', 'of'], ['8'])

    Args:
        array: `(num_words,)` of strings, of UTF-8 bytes, or of integers, which are spelled as decimal digits.
    """

    def __init__(self, array: Any) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, positions: slice) -> list[Any]:
        words: list[Any] = self._array[positions].tolist()
        if words and all(isinstance(word, bytes) for word in words):
            return decode_words(words)
        return list(map(str, words)) if self._array.dtype.kind in "iu" else words


def spell_integers(words: Sequence[Any]) -> Sequence[Any]:
    """Return words that are all integers as decimal digits, so that ids match tokens; other words unchanged.

    >>> spell_integers([7, 12]), spell_integers(["7", 12])
    (['7', '12'], ['7', 12])
    """
    kinds = set(map(type, words))
    if kinds and all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in kinds):
        return [str(int(word)) for word in words]
    return words


def as_word_list(words: Any, allow_pickle: bool = False) -> WordList:
    """Return the words of a list, an array, a file or a vocabulary.

    Reserved ids of a vocabulary (padding, `[UNK]`, OOV slots) and pieces that continue a word are left out.

    >>> as_word_list(["the", "of"])
    WordList(words=['the', 'of'], num_rows=2, row_of=None)
    >>> as_word_list({"red": 1, "sky": 2})
    WordList(words=['red', 'sky'], num_rows=3, row_of=array([1, 2]))

    Args:
        words: strings or integers in the order of the rows, as a sequence or an array; a text file with one word a
            line, plain or compressed: its path, "-" or the open file; the path of a .npy file; or what
            `read_vocabulary` reads: a Keras lookup layer, a dict word -> id, a tokenizer, a file with the JSON of
            either, a gensim Dictionary, a `Vocabulary`.
        allow_pickle: whether a .npy file may hold a pickle.

    Raises:
        VectorFormatError: an object or a file that is not a list of words.
        VocabularyError: a vocabulary that cannot be read.
    """
    if holds_bytes(words):
        return _from_bytes(local_source(words), allow_pickle)
    if isinstance(words, (Vocabulary, Mapping)) or any(hasattr(words, name) for name in _VOCABULARIES):
        return _from_vocabulary(read_vocabulary(words))
    if isinstance(words, np.ndarray) and words.ndim == 1 and words.dtype.kind in "iuU":
        return WordList(ArrayWords(words), len(words))
    # The order of a set changes from run to run.
    has_order = not isinstance(words, (set, frozenset, bytes))
    if isinstance(words, Iterable) and has_order:
        listed = spell_integers(words if isinstance(words, Sequence) else list(words))
        return WordList(listed, len(listed))
    raise VectorFormatError(
        "The words of (words, matrix) must be strings in the order of the rows, the path of a list of words, or a "
        f"vocabulary. Received: {words!r} of type {type(words).__name__}."
    )


def _from_vocabulary(vocabulary: Vocabulary) -> WordList:
    spellings = vocabulary.tokens if vocabulary.spellings is None else vocabulary.spellings
    is_word = np.array([spelling is not None for spelling in spellings]) & vocabulary.is_ordinary
    ids = np.flatnonzero(is_word)
    return WordList([spellings[token_id] for token_id in ids.tolist()], vocabulary.num_tokens, ids)


def _from_bytes(source: Any, allow_pickle: bool) -> WordList:
    path = source if isinstance(source, Path) else None
    if path is not None and not path.exists():
        message = "No such list of words. The words of (words, matrix) are a list, or a path of one word a line"
        raise FileNotFoundError(errno.ENOENT, message, os.fspath(path))
    with open_stream(source, progress=False) as stream:
        name, head = name_source(source), stream.head
        if path is not None and head.startswith(MAGIC):
            return _from_array(path, map_npy(path, allow_pickle))
        if _JSON_OBJECT.match(head):
            return _from_vocabulary(read_vocabulary(path or io.BytesIO(stream.reader.read())))
        foreign = name_foreign(head, BINARY)
        if foreign:
            raise VectorFormatError(f"{name}: found {foreign.name}; expected one word a line. {foreign.advice}")
        return _from_lines(name, stream.reader.read())


def _from_array(path: Path, array: NDArray[Any]) -> WordList:
    if array.ndim != 1 or array.dtype.kind not in "iuUSO":
        raise VectorFormatError(
            f"{path}: found shape {array.shape} and dtype {array.dtype}; expected words, (num_words,) strings. "
            "Pass (words, matrix) in this order."
        )
    return WordList(ArrayWords(array), len(array))


def _from_lines(name: str, raw: bytes) -> WordList:
    """Cut lines as in a vocabulary file: at LF or CRLF alone, nothing stripped; a blank first line is padding."""
    if raw and not raw.endswith(b"\n"):
        raw += b"\n"
    codes = np.frombuffer(raw, np.uint8)
    ends = np.flatnonzero(codes == ord("\n"))
    starts = np.concatenate(([0], ends + 1))[: len(ends)]
    if raw.startswith(BOM):
        starts[0] = len(BOM)
    ends = ends - ((ends > starts) & (codes[ends - 1] == ord("\r")))
    is_blank = starts == ends
    if is_blank[1:].any():
        raise VectorFormatError(
            f"{name}, line {int(is_blank[1:].argmax()) + 2}: found a blank line; expected one word a line, one for "
            "each row. Remove it, or pass the words as a list."
        )
    first = int(is_blank[:1].any())
    row_of = np.arange(1, len(starts)) if first else None
    return WordList(PackedWords(raw, starts[first:], ends[first:]), len(starts), row_of)
