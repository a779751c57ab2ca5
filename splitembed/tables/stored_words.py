"""Words as arrays of our files, which are decoded on first use."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import as_read_only
from splitembed.errors import VocabularyError
from splitembed.tables.fields import damaged
from splitembed.tables.fingerprints import fingerprint_packed, fingerprint_remap
from splitembed.tables.head import NUM_END_BYTES
from splitembed.tables.table_file import TableFile
from splitembed.tables.write_table import TableWriter
from splitembed.words import Packed, Words, check_offsets, pack_words


def store_words(writer: TableWriter, group: str, words: Iterable[str] | None) -> None:
    """Write words as `<group>/utf8` and `<group>/offsets`, and their fingerprint as `<group>_fingerprint`.

    Args:
        writer: of the file.
        group: "words" or "vocabulary".
        words: strings; None writes only an empty fingerprint.
    """
    fingerprint = ""
    if words is not None:
        utf8, offsets = pack_words(words)
        fingerprint = fingerprint_packed((utf8, offsets))
        writer.array(f"{group}/utf8", utf8)
        writer.array(f"{group}/offsets", offsets)
    writer.text(**{f"{group}_fingerprint": fingerprint})


def store_word_rows(writer: TableWriter, row_of: NDArray[np.int64]) -> None:
    """Write the row of each word as `words/rows`, for words that share rows.

    Args:
        writer: of the file.
        row_of: `(num_words,)`.
    """
    writer.array("words/rows", row_of.astype(np.int32))
    writer.text(word_rows_fingerprint=fingerprint_remap(row_of))


def open_word_rows(file: TableFile, num_rows: int, verify: bool) -> NDArray[np.int64] | None:
    """Read the row of each word.

    Args:
        file: the open file.
        num_rows: number of rows of the table.
        verify: also compare the fingerprint.

    Returns:
        int64 `(num_words,)`, or None where word `i` has row `i`.
    """
    if "words/rows" not in file:
        return None
    row_of: NDArray[np.int64] = file.array("words/rows", (np.dtype(np.int32),), 1)[0].astype(np.int64)
    outside = (row_of < 0) | (row_of >= num_rows)
    if outside.any():
        raise damaged(file.name, f"`words/rows` names row {row_of[outside][0]}; expected 0 to {num_rows - 1}.")
    if verify:
        file.check_fingerprint("word_rows_fingerprint", fingerprint_remap(row_of))
    return as_read_only(row_of)


def open_words(file: TableFile, group: str, num_words: int, verify: bool) -> Words | None:
    """Check the offsets of words, and return words that are decoded on first use.

    Args:
        file: the open file.
        group: "words" or "vocabulary".
        num_words: expected number of words.
        verify: also compare the fingerprint of the words now.

    Returns:
        The words, or None if the file has none. Views of a map need no file; their bytes are checked on first use.
    """
    if not file.text(f"{group}_fingerprint"):
        return None
    utf8, is_view = file.array(f"{group}/utf8", (np.dtype(np.uint8),), 1, can_map=True)
    offsets, _ = file.array(f"{group}/offsets", (np.dtype(np.uint64),), 1, can_map=True)
    file.check_length(f"{group}/offsets", len(offsets), num_words + 1)
    file.check_whole(f"{group}/offsets", offsets)
    try:
        check_offsets(offsets, len(utf8))
    except VocabularyError as error:
        raise damaged(file.name, f"`{group}/offsets`: {error}") from None
    if verify:
        file.check_fingerprint(f"{group}_fingerprint", fingerprint_packed((utf8, offsets)))

    def load() -> Packed:
        # Of so few bytes all were checked when the file was opened.
        if is_view and len(utf8) > NUM_END_BYTES:
            file.check_whole(f"{group}/utf8", utf8)
        return utf8, offsets

    return Words(num_words, load)
