"""fastText .bin models made of byte literals, and a slow and simple reader of them, after fastText's sources."""

import shutil
import struct
import subprocess

import numpy as np
import pytest
from hypothesis import strategies as st

MAGIC = b"\xba\x16\x4f\x2f"
SUPERVISED = 3


def model_bytes(
    words,
    rows,
    *,
    bucket,
    minn,
    maxn,
    labels=(),
    version=12,
    kind=2,
    size=None,
    pruned=-1,
    quantized=False,
    shape=None,
    output=None,
):
    """Return the bytes of a model whose `rows` are those of words, then of buckets. `version=0` is the first format."""
    rows = np.asarray(rows, "<f4").reshape(len(words) + bucket, -1)
    output = rows[: len(words)] if output is None else output
    dim, old = rows.shape[1], version == 0
    content = b"" if old else MAGIC + struct.pack("<i", version)
    content += struct.pack("<12id", dim, 5, 5, 1, 5, 1, 2, kind, bucket, minn, maxn, 100, 1e-4)
    size = len(words) + len(labels) if size is None else size
    content += struct.pack("<3iq", size, len(words), len(labels), 99) + (b"" if old else struct.pack("<q", pruned))
    for entries, entry_type in ((words, 0), (labels, 1)):
        content += b"".join(entry + b"\0" + struct.pack("<qb", 256, entry_type) for entry in entries)
    content += b"" if old else bytes([quantized])
    content += struct.pack("<2q", *(rows.shape if shape is None else shape)) + rows.tobytes()
    return content + (b"" if old else b"\0") + struct.pack("<2q", len(output), dim) + output.tobytes()


def hash_bytes(raw: bytes) -> int:
    """Return FNV-1a over signed bytes: `Dictionary::hash`."""
    state = 2166136261
    for byte in raw:
        signed = byte - 256 if byte > 127 else byte
        state = ((state ^ (signed & 0xFFFFFFFF)) * 16777619) & 0xFFFFFFFF
    return state


def ngrams_of(word: bytes, minn: int, maxn: int) -> list[bytes]:
    """Return the n-grams of a word: `Dictionary::computeSubwords`, line by line."""
    word, found = b"<" + word + b">", []
    for i in range(len(word)):
        if word[i] & 0xC0 == 0x80:
            continue
        j, n = i, 1
        while j < len(word) and n <= maxn:
            j += 1
            while j < len(word) and word[j] & 0xC0 == 0x80:
                j += 1
            if n >= minn and not (n == 1 and (i == 0 or j == len(word))):
                found.append(word[i:j])
            n += 1
    return found


def run_of(word: bytes, words, *, bucket, minn, maxn, first_format=False) -> list[int]:
    """Return the rows whose mean is the word's vector: `Dictionary::getSubwords`."""
    own = [words.index(word)] if word in words else []
    if word == b"</s>" and not first_format:
        return own
    return own + [len(words) + hash_bytes(ngram) % bucket for ngram in ngrams_of(word, minn, maxn)]


def vector_of(word: bytes, words, rows, **options) -> np.ndarray:
    """Return a word's vector in float64: `FastText::getWordVector`."""
    run = run_of(word, words, **options)
    return rows[run].mean(axis=0, dtype=np.float64) if run else np.zeros(rows.shape[1])


# Any bytes but NUL; many with several bytes a character, or with stray continuation bytes.
raw_words = st.one_of(
    st.binary(max_size=12).map(lambda raw: raw.replace(b"\0", b"")),
    st.text(max_size=8).map(lambda text: text.replace("\0", "").encode()),
    st.sampled_from([b"", b"a", b"</s>", b"<>", b"\x80", b"\x80\xff", b"\xd0\xbf\xd1", "naïve".encode(), b"a b"]),
)
options_of_ngrams = st.fixed_dictionaries(
    {"minn": st.integers(0, 4), "maxn": st.integers(0, 7), "bucket": st.integers(1, 50)}
)


def fasttext_command(*arguments, stdin: str = "") -> str:
    """Run the command `fasttext`, or skip the test where it is not installed."""
    if shutil.which("fasttext") is None:
        pytest.skip("the command fasttext is not installed (Debian and Ubuntu: apt-get install fasttext)")
    done = subprocess.run(["fasttext", *map(str, arguments)], input=stdin, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed_vectors(path, words) -> np.ndarray:
    """Return the vectors that `fasttext print-word-vectors` prints, 5 digits of each number."""
    lines = fasttext_command("print-word-vectors", path, stdin="".join(f"{word}\n" for word in words)).splitlines()
    assert [line.split(" ")[0] for line in lines] == list(words)
    return np.array([line.split(" ")[1:-1] for line in lines], float)
