"""The 64-bit keys by which spaCy names strings.

A key is MurmurHash64A of the UTF-8 bytes with seed 1 (Appleby, MurmurHash2, 2008; spaCy, `strings.pyx`). A few hundred
symbols of spaCy, such as "root" and "number", have small numbers instead (`symbols.pyx`).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_FLAGS = """
    IS_ALPHA IS_ASCII IS_DIGIT IS_LOWER IS_PUNCT IS_SPACE IS_TITLE IS_UPPER LIKE_URL LIKE_NUM LIKE_EMAIL IS_STOP
    IS_OOV_DEPRECATED IS_BRACKET IS_QUOTE IS_LEFT_PUNCT IS_RIGHT_PUNCT IS_CURRENCY
"""
_ATTRIBUTES = """
    ID ORTH LOWER NORM SHAPE PREFIX SUFFIX LENGTH CLUSTER LEMMA POS TAG DEP ENT_IOB ENT_TYPE HEAD SENT_START SPACY PROB
    LANG ADJ ADP ADV AUX CONJ CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X EOL SPACE
"""
_LABELS = """
    PERSON NORP FACILITY ORG GPE LOC PRODUCT EVENT WORK_OF_ART LANGUAGE LAW DATE TIME PERCENT MONEY QUANTITY ORDINAL
    CARDINAL acomp advcl advmod agent amod appos attr aux auxpass cc ccomp complm conj cop csubj csubjpass dep det dobj
    expl hmod hyph infmod intj iobj mark meta neg nmod nn npadvmod nsubj nsubjpass num number oprd obj obl parataxis
    partmod pcomp pobj poss possessive preconj prep prt punct quantmod relcl rcmod root xcomp acl ENT_KB_ID MORPH ENT_ID
    IDX _
"""
# The index of each is its key.
SYMBOLS = (
    *("", *_FLAGS.split(), *(f"FLAG{number}" for number in range(19, 64))),
    *(*_ATTRIBUTES.split(), *(f"DEPRECATED{number:03}" for number in range(1, 277))),
    *_LABELS.split(),
)
_KEY_OF_SYMBOL = {symbol: key for key, symbol in enumerate(SYMBOLS)}

_SEED = 1
_FACTOR = np.uint64(0xC6A4A7935BD1E995)
_SHIFT = np.uint64(47)


def keys_of(strings: Sequence[str]) -> NDArray[np.uint64]:
    """Return the keys of strings.

    >>> keys_of(["the", "root", ""]).tolist()
    [7425985699627899538, 449, 0]

    Args:
        strings: any.

    Returns:
        uint64 `(num_strings,)`.
    """
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    raw = b"".join(encoded)
    starts = np.cumsum(lengths) - lengths
    keys = np.empty(len(encoded), np.uint64)
    # Strings of one length are hashed together.
    for length in np.unique(lengths).tolist():
        indices = np.flatnonzero(lengths == length)
        keys[indices] = _hash(raw, starts[indices], length)
    for index, string in enumerate(strings):
        if string in _KEY_OF_SYMBOL:
            keys[index] = _KEY_OF_SYMBOL[string]
    return keys


def _hash(raw: bytes, starts: NDArray[np.int64], length: int) -> NDArray[np.uint64]:
    """Return MurmurHash64A of the `length` bytes from each start."""
    words = _words(raw, starts, length)
    num_whole = length // 8
    hashes = np.full(len(starts), _SEED ^ (length * int(_FACTOR) & 0xFFFFFFFFFFFFFFFF), np.uint64)
    for index in range(words.shape[1]):
        if index < num_whole:
            mixed = words[:, index] * _FACTOR
            hashes ^= (mixed ^ (mixed >> _SHIFT)) * _FACTOR
        else:
            # The last one to seven bytes.
            hashes ^= words[:, index]
        hashes *= _FACTOR
    hashes = (hashes ^ (hashes >> _SHIFT)) * _FACTOR
    return hashes ^ (hashes >> _SHIFT)


def _words(raw: bytes, starts: NDArray[np.int64], length: int) -> NDArray[np.uint64]:
    """Return the bytes as little-endian words of eight, the last one padded with zeros."""
    padded = np.zeros((len(starts), -(-length // 8) * 8), np.uint8)
    if length:
        windows: NDArray[np.void] = np.ndarray((len(raw) - length + 1,), f"V{length}", raw, strides=(1,))
        padded[:, :length] = windows[starts].view(np.uint8).reshape(-1, length)
    words: NDArray[np.uint64] = padded.view("<u8").astype(np.uint64, copy=False)
    return words
