"""n-grams of words: against fastText's algorithm in plain Python, and fast."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.vectors.fasttext.header import Header
from splitembed.vectors.fasttext.ngrams import runs_of_words
from tests.helpers.fasttext_models import hash_bytes, ngrams_of, options_of_ngrams, raw_words, run_of


def header_of(minn, maxn, bucket, num_words=0, has_magic=True):
    return Header(has_magic, 1, bucket, minn, maxn, num_words, 0, 0)


@given(st.lists(raw_words, max_size=8), st.lists(raw_words, max_size=4, unique=True), options_of_ngrams, st.booleans())
def test_the_rows_of_any_words_in_the_order_of_fasttext(words, dictionary, options, has_magic):
    own_rows = np.array([dictionary.index(word) if word in dictionary else -1 for word in words], np.int64)
    runs = runs_of_words(words, own_rows, header_of(**options, num_words=len(dictionary), has_magic=has_magic))
    expected = [run_of(word, dictionary, **options, first_format=not has_magic) for word in words]
    assert runs.counts.tolist() == list(map(len, expected))
    assert runs.rows.tolist() == list(itertools.chain(*expected))


def test_the_reference_implementation():
    # Values of FNV-1a from its specification, and the signed bytes that only fastText takes: by hand.
    assert (hash_bytes(b""), hash_bytes(b"a"), hash_bytes(b"foobar")) == (0x811C9DC5, 0xE40C292C, 0xBF9CF968)
    assert hash_bytes(b"\xff") == ((0x811C9DC5 ^ 0xFFFFFFFF) * 16777619) % 2**32
    assert ngrams_of("où".encode(), 1, 3) == [b"<o", "<où".encode(), b"o", "où".encode(), "où>".encode(), *(
        "ù".encode(), "ù>".encode())]  # fmt: skip


@pytest.mark.parametrize(("minn", "maxn"), [(3, 0), (0, 0), (4, 3), (1, -1), (30, 60)])
def test_a_model_without_ngrams_has_only_own_rows(minn, maxn):
    runs = runs_of_words([b"the", b"of", b"usr"], np.array([7, 2, -1]), header_of(minn, maxn, 5))
    assert (runs.rows.tolist(), runs.counts.tolist()) == ([7, 2], [1, 1, 0])


def test_a_character_of_very_many_bytes():
    word = b"a" + b"\x80" * 5000
    runs = runs_of_words([word, b"b"], np.array([-1, -1]), header_of(2, 3, 997))
    assert runs.rows.tolist() == run_of(word, [], bucket=997, minn=2, maxn=3) + run_of(
        b"b", [], bucket=997, minn=2, maxn=3
    )


def test_a_hundred_thousand_words_are_hashed_without_a_python_loop():
    words = [f"word{number}".encode() for number in range(100_000)]
    started = time.perf_counter()
    runs = runs_of_words(words, np.arange(len(words)), header_of(3, 6, 2_000_000, len(words)))
    # Measured: 0.2 s; a loop over the 3 million n-grams takes far longer.
    assert time.perf_counter() - started < 5
    assert runs.counts.sum() == len(runs.rows) > 2_000_000
