"""Find the rows of the n-grams of words, with fastText's hash.

A word is enclosed in "<" and ">". A character starts at every byte that is not a continuation byte of UTF-8, so words
that are not UTF-8 have n-grams, too. Source: fastText 0.9.2, `Dictionary::computeSubwords` and `Dictionary::hash`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitembed.vectors.fasttext.header import END_OF_SENTENCE, Header

# FNV-1a of 32 bits.
FNV_START, FNV_PRIME = np.uint32(2166136261), np.uint32(16777619)


class Runs(NamedTuple):
    """Rows of the input matrix in consecutive runs, one run for each word. A word's vector is the mean of its run.

    Args:
        rows: `(num_occurrences,)`, the rows of all runs.
        counts: `(num_words,)`, the length of each run.
    """

    rows: NDArray[np.int64]
    counts: NDArray[np.int64]


def runs_of_words(words: Sequence[bytes], own_rows: NDArray[np.int64], header: Header) -> Runs:
    """Find the rows whose mean is a word's vector: its own row, if any, and those of its n-grams, in fastText's order.

    The runs of this example are: own row, <a, ab, b>; <b, b>.

    >>> header = Header(True, dim=2, bucket=10, minn=2, maxn=2, num_words=1, num_labels=0, position=0)
    >>> runs_of_words([b"ab", b"b"], np.array([0, -1]), header)
    Runs(rows=array([0, 1, 7, 2, 2, 2]), counts=array([4, 2]))

    Args:
        words: their bytes.
        own_rows: int64 `(num_words,)`, -1 for a word outside the dictionary.
        header: the model's header.

    Returns:
        The runs, in the order of the words.
    """
    ngrams = _ngram_runs(words, header) if header.has_subwords and words else _empty_runs(len(words))
    has_own = own_rows >= 0
    starts = np.cumsum(ngrams.counts) - ngrams.counts
    return Runs(np.insert(ngrams.rows, starts[has_own], own_rows[has_own]), ngrams.counts + has_own)


def _empty_runs(num_words: int) -> Runs:
    return Runs(np.zeros(0, np.int64), np.zeros(num_words, np.int64))


def _ngram_runs(words: Sequence[bytes], header: Header) -> Runs:
    text = np.frombuffer(b"<" + b"><".join(words) + b">", np.uint8)
    is_character = (text & 0xC0) != 0x80
    characters = np.flatnonzero(is_character)
    lengths = np.fromiter(map(len, words), np.int64, len(words)) + 2
    # The index of each word's "<" among the characters.
    first = np.cumsum(is_character)[np.cumsum(lengths) - lengths] - 1
    num_characters = np.diff(first, append=len(characters))
    num_to_end = np.repeat(first + num_characters, num_characters) - np.arange(len(characters))
    longest = min(header.maxn, int(num_characters.max()))
    shortest = max(header.minn, 1)
    if longest < shortest:
        return _empty_runs(len(words))
    buckets, is_ngram = _hash_all(text, characters, num_to_end, shortest, longest, header.bucket)
    # "<" and ">" alone are not n-grams.
    if shortest == 1:
        is_ngram[first, 0] = is_ngram[first + num_characters - 1, 0] = False
    # The first versions of fastText give this word n-grams, too.
    if header.has_magic:
        is_ngram[np.repeat([word == END_OF_SENTENCE for word in words], num_characters)] = False
    counts = np.add.reduceat(is_ngram.sum(axis=1, dtype=np.int64), first)
    return Runs(buckets[is_ngram] + np.int64(header.num_words), counts)


def _hash_all(
    text: NDArray[np.uint8],
    characters: NDArray[np.int64],
    num_to_end: NDArray[np.int64],
    shortest: int,
    longest: int,
    num_buckets: int,
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Return the bucket of the n-gram at each character, and whether it exists: `(num_characters, num_lengths)`."""
    # fastText hashes signed bytes.
    signed = text.view(np.int8).astype(np.int32).view(np.uint32)
    num_bytes = np.diff(characters, append=len(text))
    shape = len(characters), longest - shortest + 1
    buckets, is_ngram = np.zeros(shape, np.uint32), np.zeros(shape, bool)
    starts, hashes = np.arange(len(characters)), np.full(len(characters), FNV_START)
    for length in range(1, longest + 1):
        long_enough = num_to_end[starts] >= length
        starts, hashes = starts[long_enough], hashes[long_enough]
        last = starts + length - 1
        _hash_characters(hashes, signed, characters[last], num_bytes[last])
        if length >= shortest:
            buckets[starts, length - shortest] = hashes % np.uint32(num_buckets)
            is_ngram[starts, length - shortest] = True
    return buckets, is_ngram


def _hash_characters(
    hashes: NDArray[np.uint32], signed: NDArray[np.uint32], positions: NDArray[np.int64], num_bytes: NDArray[np.int64]
) -> None:
    """Update each hash with one more character, of one or more bytes."""
    hashes ^= signed[positions]
    hashes *= FNV_PRIME
    longer, byte = np.flatnonzero(num_bytes > 1), 1
    while len(longer):
        hashes[longer] = (hashes[longer] ^ signed[positions[longer] + byte]) * FNV_PRIME
        byte += 1
        longer = longer[num_bytes[longer] > byte]
