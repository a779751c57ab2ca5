"""The dictionary of a model: wanted words with their rows and positions, across chunks; invalid entries are errors."""

import io
import struct

import pytest

from splitembed.errors import VectorFormatError
from splitembed.vectors.fasttext.cursor import Cursor
from splitembed.vectors.fasttext.dictionary import read_words
from splitembed.vectors.fasttext.header import Header
from splitembed.vectors.read_checks import ReadChecks
from splitembed.vectors.streams import compressions
from splitembed.vectors.text.lines import MAX_WORD_BYTES


def entry(word, entry_type=0):
    return word + b"\0" + struct.pack("<qb", 256, entry_type)


def read(content, num_words, num_labels=0, wanted=None):
    checks = ReadChecks("model.bin")
    checks.unit = "byte"
    cursor = Cursor(io.BytesIO(content), checks)
    header = Header(True, 2, 0, 0, 0, num_words, num_labels, 0)
    return read_words(cursor, header, wanted), cursor


CONTENT = entry(b"the") + entry(b"\xff of") + entry(b"") + entry(b"__label__x", 1)


@pytest.mark.parametrize("chunk", [1, 5, 13, 1000])
@pytest.mark.parametrize(
    ("wanted", "raw", "rows", "positions"),
    [
        (None, [b"the", b"\xff of", b""], [0, 1, 2], [0, 13, 27]),
        (frozenset([b"\xff of", b"usr", b"__label__x"]), [b"\xff of"], [1], [13]),
        (frozenset(), [], [], []),
    ],
)
def test_wanted_words_have_their_rows_and_positions(monkeypatch, chunk, wanted, raw, rows, positions):
    monkeypatch.setattr(compressions, "CHUNK_BYTES", chunk)
    found, cursor = read(CONTENT + b"matrix", 3, 1, wanted)
    assert (found.raw, found.rows.tolist(), found.positions.tolist()) == (raw, rows, positions)
    assert (cursor.position, cursor.take(6, "the matrix")) == (len(CONTENT), b"matrix")


def test_an_empty_dictionary_reads_nothing():
    found, cursor = read(b"matrix", 0)
    assert (found.raw, found.rows.tolist(), cursor.position) == ([], [], 0)


@pytest.mark.parametrize("types", [(0, 1, 0), (1, 0, 0), (0, 0, 1), (0, 0, 2)])
def test_a_label_among_the_words_is_an_error(types):
    content = b"".join(entry(b"word", each) for each in types)
    first = next(index for index, each in enumerate(types) if each)
    message = f"byte {14 * first}: found entry {first} of type {types[first]}; expected 3 words, type 0, then labels, 1"
    with pytest.raises(VectorFormatError, match=message):
        read(content, 3)


def test_a_word_among_the_labels_is_an_error():
    with pytest.raises(VectorFormatError, match="byte 12: found entry 1 of type 0; expected 1 words"):
        read(entry(b"of") + entry(b"the"), 1, 1)


def test_a_dictionary_that_is_cut_short_is_an_error():
    with pytest.raises(VectorFormatError, match="byte 13: found 1 of 2 entries, then 13 other bytes"):
        read((entry(b"the") + entry(b"then"))[:-1], 2)


def test_a_word_of_more_than_a_mebibyte_is_an_error():
    with pytest.raises(VectorFormatError, match="byte 0: found 0 of 1 entries"):
        read(b"x" * (3 * MAX_WORD_BYTES), 1)
