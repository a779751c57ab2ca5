"""spaCy's keys: against literals from spaCy 3.8, a plain MurmurHash64A, and spaCy if it is installed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.vectors.pairs.spacy_keys import SYMBOLS, keys_of

GOLDEN = {
    "": 0,
    "the": 7425985699627899538,
    "IS_ALPHA": 1,
    "FLAG63": 63,
    "ID": 64,
    "SPACE": 103,
    "PERSON": 380,
    "root": 449,
    "_": 456,
    "case": 8110129090154140942,
}


def murmur_hash(raw: bytes) -> int:
    """Return MurmurHash64A with seed 1, byte by byte as in the paper."""
    factor, mask = 0xC6A4A7935BD1E995, (1 << 64) - 1
    result = 1 ^ (len(raw) * factor & mask)
    for start in range(0, len(raw) - 7, 8):
        word = int.from_bytes(raw[start : start + 8], "little") * factor & mask
        result = (result ^ ((word ^ (word >> 47)) * factor & mask)) * factor & mask
    if len(raw) % 8:
        result = (result ^ int.from_bytes(raw[len(raw) // 8 * 8 :], "little")) * factor & mask
    result = (result ^ (result >> 47)) * factor & mask
    return result ^ (result >> 47)


def test_golden_keys():
    assert dict(zip(GOLDEN, keys_of(list(GOLDEN)).tolist(), strict=True)) == GOLDEN
    assert keys_of([]).shape == (0,)


@given(st.lists(st.text(max_size=40), max_size=10))
def test_any_strings(strings):
    expected = [SYMBOLS.index(string) if string in SYMBOLS else murmur_hash(string.encode()) for string in strings]
    assert keys_of(strings).tolist() == expected


def test_symbols_are_spacys():
    symbols = pytest.importorskip("spacy.symbols")
    assert list(SYMBOLS) == symbols.NAMES
    strings = ["the", "root", "", "naïve", "x" * 100, "\0", "😀" * 9]
    spacy = pytest.importorskip("spacy.strings")
    assert keys_of(strings).tolist() == [spacy.StringStore()[string] for string in strings]


def test_lone_surrogates_have_a_key_of_their_own():
    assert len(np.unique(keys_of(["\ud800", "\udcff", "?"]))) == 3
