"""A slow and simple parser of text, written from the rules, as a reference for the readers, and strategies for both."""

import re
import struct

import numpy as np
from hypothesis import strategies as st


def parse_text(content: bytes, dim: int) -> dict[str, list[np.float32]]:
    """Return the rows of a text without header: words in order, the first of duplicates kept."""
    rows = {}
    for line in content.removesuffix(b"\n").split(b"\n"):
        word, values = line.rstrip(b"\r \t"), []
        for _ in range(dim):
            cut = max(word.rfind(b" "), word.rfind(b"\t"))
            values.insert(0, np.float32(float(word[cut + 1 :].decode("ascii"))))
            # Several separators before a number are one.
            word = word[:cut].rstrip(b" \t")
        rows.setdefault(word.decode("utf-8", "surrogateescape"), values)
    return rows


def f(*values: float) -> bytes:
    """Return numbers as little-endian float32."""
    return struct.pack(f"<{len(values)}f", *values)


def table_of(vectors) -> dict[str, list[float]]:
    """Return words and rows as plain Python objects."""
    assert vectors.vectors.dtype == np.float32 and vectors.vectors.shape[0] == len(vectors.words)
    return dict(zip(vectors.words, vectors.vectors.tolist(), strict=True))


def same_table(vectors, expected: dict[str, list[np.float32]], dim: int) -> bool:
    """Return whether words, their order and the bits of every value are equal."""
    rows = np.array(list(expected.values()), np.float32).reshape(-1, dim)
    return list(vectors.words) == list(expected) and vectors.vectors.tobytes() == rows.tobytes()


number_texts = st.one_of(
    st.floats(-1e38, 1e38, allow_nan=False).map(repr),
    st.floats(-10, 10, width=32).map(str),
    st.floats(-100, 100).map("{:.6f}".format),
    st.floats(-1, 1).map("{:.5g}".format),
    st.floats(-1, 1).map("{:.18e}".format),
    st.integers(-(10**12), 10**12).map(str),
    st.from_regex(r"[+-]?([0-9]{1,9}\.[0-9]{0,18}|\.[0-9]{1,18})([eE][+-]?[0-9])?", fullmatch=True).filter(str.isascii),
).map(str.encode)

# Any bytes but LF, which ends a row; many are separators, other line ends, or look like numbers.
words = st.one_of(
    st.binary(max_size=12).map(lambda raw: raw.replace(b"\n", b"")),
    st.text(max_size=6).map(lambda text: text.encode().replace(b"\n", b"")),
    st.sampled_from(
        [b"", b" ", b"\t", b"\r", b"a b", b"a 0.5", b"0.5", b"2 2", b"nan", b"\xc2\xa0", b"\xe2\x80\xa8", b"."]
    ),
)
separators = st.sampled_from([b" ", b" ", b" ", b"\t", b"  ", b"\t "])
row_ends = st.sampled_from([b"\n", b"\n", b"\r\n", b" \n", b"\t\r\n"])


@st.composite
def texts(draw, dim: int):
    """Draw the content of a text without header, with or without the end of its last line."""
    lines = []
    for word in draw(st.lists(words, min_size=1, max_size=8)):
        numbers = draw(st.lists(number_texts, min_size=dim, max_size=dim))
        lines.append(word + b"".join(draw(separators) + number for number in numbers) + draw(row_ends))
    content = b"".join(lines)
    return content if draw(st.booleans()) else re.sub(rb"[ \t]*\r?\n\Z", b"", content)
