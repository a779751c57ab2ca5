"""The n-grams of words as fastText hashes them: bytes of words enter; rows of the input matrix leave, a run for each.

A word stands between "<" and ">"; a character begins at every byte that UTF-8 does not call a continuation, so bytes
that are not UTF-8 have n-grams too. Source: fastText 0.9.2, `Dictionary::computeSubwords` and `Dictionary::hash`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitembed.vectors.fasttext.header import END_OF_SENTENCE, Header

FNV_START, FNV_PRIME = np.uint32(2166136261), np.uint32(16777619)  # FNV-1a of 32 bits


class Runs(NamedTuple):
    """Rows of the input matrix, one run after the other, a run for each word; a word's row is the mean of its run."""

    rows: NDArray[np.int64]  # (num_occurrences,)
    counts: NDArray[np.int64]  # (num_words,)


def runs_of_words(words: Sequence[bytes], own_rows: NDArray[np.int64], header: Header) -> Runs:
    """Finds the rows whose mean is a word's: its own, where it has one, and those of its n-grams, in fastText's order.

    >>> header = Header(True, dim=2, bucket=10, minn=2, maxn=2, num_words=1, num_labels=0, place=0)
    >>> runs_of_words([b"ab", b"b"], np.array([0, -1]), header)  # own, <a, ab, b>; <b, b>
    Runs(rows=array([0, 1, 7, 2, 2, 2]), counts=array([4, 2]))

    Args:
        words: their bytes.
        own_rows: int64 `(num_words,)`, -1 for a word that the dictionary lacks.
        header: of the model.

    Returns:
        The runs, in the order of the words.
    """
    ngrams = _ngram_runs(words, header) if header.has_subwords and words else _no_runs(len(words))
    has_own = own_rows >= 0
    starts = np.cumsum(ngrams.counts) - ngrams.counts
    return Runs(np.insert(ngrams.rows, starts[has_own], own_rows[has_own]), ngrams.counts + has_own)


def _no_runs(num_words: int) -> Runs:
    return Runs(np.zeros(0, np.int64), np.zeros(num_words, np.int64))


def _ngram_runs(words: Sequence[bytes], header: Header) -> Runs:
    text = np.frombuffer(b"<" + b"><".join(words) + b">", np.uint8)
    is_character = (text & 0xC0) != 0x80
    characters = np.flatnonzero(is_character)
    lengths = np.fromiter(map(len, words), np.int64, len(words)) + 2
    first = np.cumsum(is_character)[np.cumsum(lengths) - lengths] - 1  # each word's "<" among the characters
    num_characters = np.diff(first, append=len(characters))
    left = np.repeat(first + num_characters, num_characters) - np.arange(len(characters))  # up to the word's end
    longest = min(header.maxn, int(num_characters.max()))
    shortest = max(header.minn, 1)
    if longest < shortest:
        return _no_runs(len(words))
    buckets, is_ngram = _hash_all(text, characters, left, shortest, longest, header.bucket)
    if shortest == 1:  # "<" and ">" by themselves are none
        is_ngram[first, 0] = is_ngram[first + num_characters - 1, 0] = False
    if header.has_magic:  # the first versions made no exception
        is_ngram[np.repeat([word == END_OF_SENTENCE for word in words], num_characters)] = False
    counts = np.add.reduceat(is_ngram.sum(axis=1, dtype=np.int64), first)
    return Runs(buckets[is_ngram] + np.int64(header.num_words), counts)


def _hash_all(
    text: NDArray[np.uint8],
    characters: NDArray[np.int64],
    left: NDArray[np.int64],
    shortest: int,
    longest: int,
    num_buckets: int,
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """The bucket of the n-gram at each character, and whether there is one: `(num_characters, num_lengths)`."""
    signed = text.view(np.int8).astype(np.int32).view(np.uint32)  # fastText hashes signed bytes
    num_bytes = np.diff(characters, append=len(text))
    shape = len(characters), longest - shortest + 1
    buckets, is_ngram = np.zeros(shape, np.uint32), np.zeros(shape, bool)
    starts, hashes = np.arange(len(characters)), np.full(len(characters), FNV_START)
    for length in range(1, longest + 1):
        long_enough = left[starts] >= length
        starts, hashes = starts[long_enough], hashes[long_enough]
        last = starts + length - 1
        _hash_characters(hashes, signed, characters[last], num_bytes[last])
        if length >= shortest:
            buckets[starts, length - shortest] = hashes % np.uint32(num_buckets)
            is_ngram[starts, length - shortest] = True
    return buckets, is_ngram


def _hash_characters(
    hashes: NDArray[np.uint32], signed: NDArray[np.uint32], places: NDArray[np.int64], num_bytes: NDArray[np.int64]
) -> None:
    """Takes one more character, of one or more bytes, into each hash."""
    hashes ^= signed[places]
    hashes *= FNV_PRIME
    longer, byte = np.flatnonzero(num_bytes > 1), 1
    while len(longer):
        hashes[longer] = (hashes[longer] ^ signed[places[longer] + byte]) * FNV_PRIME
        byte += 1
        longer = longer[num_bytes[longer] > byte]
