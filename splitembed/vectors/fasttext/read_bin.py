"""fastText .bin: a model enters; blocks of words leave, each with the vector that fastText itself gives the word.

That is the mean of the word's own row and the rows of its n-grams. A plain file is mapped and read word by word; any
other is read once from front to back, and of its rows only sums for the wanted words are kept. Source of the method:
Bojanowski et al., "Enriching Word Vectors with Subword Information", 2017; fastText 0.9.2, `FastText::getWordVector`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from splitembed.vectors.fasttext.model import Model
from splitembed.vectors.layouts import Layout
from splitembed.vectors.read_checks import ReadChecks, decode_words
from splitembed.vectors.streams.opening import Stream
from splitembed.vectors.word_vectors import Block


def fasttext_blocks(stream: Stream, layout: Layout, checks: ReadChecks) -> Iterator[Block]:
    """Reads the words of a model; its labels are none.

    Args:
        stream: the file, at its first byte.
        layout: as `find_layout` found it; the model tells all by itself.
        checks: what is wanted, and what becomes of doubts. Its places are the bytes at which the words stand.

    Yields:
        At least one block. Rows differ from fastText's own, which prints 5 digits, and from gensim's by rounding in
        float32 alone.

    Raises:
        VectorFormatError: the model is cut short, quantized, pruned, or its parts do not fit each other.
    """
    with open_model(stream, checks) as model:
        words = model.find_words(checks.wanted_bytes)
        checks.most_rows = len(words.raw)
        start = 0
        for rows in model.iter_means(words.raw, words.rows):
            part = slice(start, start + len(rows))
            yield checks.accept(decode_words(words.raw[part]), rows, words.places[part])
            start += len(rows)


@contextmanager
def open_model(stream: Stream, checks: ReadChecks) -> Iterator[Model]:
    """Opens the model that a stream holds: the file itself once more, which can be mapped, where it is a plain one.

    Raises:
        VectorFormatError: the header is damaged, of an unknown version, or has another dim than was asked for.
    """
    checks.unit = "byte"
    if not _is_plain(stream):
        yield Model(stream.reader, checks, None)
        return
    with open(stream.path, "rb") as file:
        is_same = file.read(len(stream.head)) == stream.head  # a name may stand for a part of a file, or another one
        file.seek(0)
        yield Model(file, checks, stream.size) if is_same else Model(stream.reader, checks, None)


def _is_plain(stream: Stream) -> bool:
    return stream.size is not None and os.path.isfile(stream.path) and os.path.getsize(stream.path) == stream.size
