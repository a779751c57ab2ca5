"""Read the words of a fastText .bin model, with the vectors that fastText gives them, block by block.

A word's vector is the mean of its own row and the rows of its n-grams. A plain file is mapped, and only the rows that
are needed are read. A stream is read once from front to back, with sums of rows for the wanted words. Source:
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
    """Read the words of a model, without its labels.

    Args:
        stream: the file, positioned at its first byte.
        layout: unused, because the model has its own header.
        checks: the wanted words, and the rules for errors and warnings. Positions are bytes.

    Yields:
        At least one block. Rows differ from those of fastText, which prints 5 digits, and of gensim only by rounding
        in float32.

    Raises:
        VectorFormatError: the model is cut short, quantized, pruned, or inconsistent.
    """
    with open_model(stream, checks) as model:
        words = model.find_words(checks.wanted_bytes)
        checks.most_rows = len(words.raw)
        start = 0
        for rows in model.iter_means(words.raw, words.rows):
            part = slice(start, start + len(rows))
            yield checks.accept(decode_words(words.raw[part]), rows, words.positions[part])
            start += len(rows)


@contextmanager
def open_model(stream: Stream, checks: ReadChecks) -> Iterator[Model]:
    """Open the model in a stream. A plain file is opened a second time, so that it can be mapped.

    Raises:
        VectorFormatError: the header is damaged, of an unknown version, or has another dim than the requested one.
    """
    checks.unit = "byte"
    if not _is_plain(stream):
        yield Model(stream.reader, checks, None)
        return
    with open(stream.path, "rb") as file:
        # The name of an open file may belong to another file by now, or the stream may start inside the file.
        is_same = file.read(len(stream.head)) == stream.head
        file.seek(0)
        yield Model(file, checks, stream.size) if is_same else Model(stream.reader, checks, None)


def _is_plain(stream: Stream) -> bool:
    return stream.size is not None and os.path.isfile(stream.path) and os.path.getsize(stream.path) == stream.size
