"""Unusual words and rows, and Hypothesis strategies for more of them."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

# CASES P1 and the kinds around it: empty, NUL, separators, line ends, odd spaces, bytes that are not UTF-8, astral.
ODD_WORDS = [
    "the", "é", "\u2028", "", "\0", "a\0b", "a b", " ", "\t", "\n", "\r\n", "a\nb", "\xa0", "\u3000", "\u2029", "\x85",
    "/", ".", "..", "words/utf8", b"\xd0\xbf\xd1".decode("utf-8", "surrogateescape"), "\udcff", "\udc80\udc80", "😀",
    "\U0010ffff", "\ufeff", "e\u0301", "x" * 70_000,
]  # fmt: skip

any_word = st.one_of(
    st.sampled_from(ODD_WORDS[:-1]),
    st.text(max_size=8),
    st.binary(max_size=8).map(lambda raw: raw.decode("utf-8", "surrogateescape")),
)
word_lists = st.lists(any_word, max_size=12)


def float32_rows(num_rows: int | st.SearchStrategy[int], dim: int | st.SearchStrategy[int]) -> st.SearchStrategy:
    """Return a strategy for matrices of any bits: NaN payloads, -0.0, subnormal numbers, infinities."""
    return npst.arrays(np.uint32, st.tuples(_strategy(num_rows), _strategy(dim))).map(
        lambda bits: bits.view(np.float32)
    )


def _strategy(value):
    return st.just(value) if isinstance(value, int) else value
