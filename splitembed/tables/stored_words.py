"""Words as datasets of our files, which are read on first use."""

import functools
from collections.abc import Iterable
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from splitembed.errors import TableFormatError
from splitembed.tables.atomic_files import reading
from splitembed.tables.datasets import check_length, dataset
from splitembed.tables.fields import check_fingerprint, damaged, store_text, text_attribute
from splitembed.tables.fingerprints import fingerprint_packed, fingerprint_remap, little_endian
from splitembed.words import Packed, Words, check_offsets, pack_words


def store_words(file: h5py.File, group: str, words: Iterable[str] | None) -> str:
    """Write words as `<group>/utf8` and `<group>/offsets`, and their fingerprint as `<group>_fingerprint`.

    Args:
        file: open for writing.
        group: "words" or "vocabulary".
        words: strings; None writes only an empty fingerprint.

    Returns:
        The fingerprint.
    """
    fingerprint = ""
    if words is not None:
        utf8, offsets = pack_words(words)
        fingerprint = fingerprint_packed((utf8, offsets))
        file.create_dataset(f"{group}/utf8", data=utf8)
        file.create_dataset(f"{group}/offsets", data=offsets, dtype="<u8")
    store_text(file, **{f"{group}_fingerprint": fingerprint})
    return fingerprint


def store_word_rows(file: h5py.File, row_of: NDArray[np.int64]) -> None:
    """Write the row of each word as `words/rows`, for words that share rows.

    Args:
        file: open for writing.
        row_of: `(num_words,)`.
    """
    file.create_dataset("words/rows", data=little_endian(row_of.astype(np.int32)))
    store_text(file, word_rows_fingerprint=fingerprint_remap(row_of))


def open_word_rows(file: h5py.File, num_rows: int, verify: bool) -> NDArray[np.int64] | None:
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
    row_of: NDArray[np.int64] = dataset(file, "words/rows", (np.dtype(np.int32),), 1)[:].astype(np.int64)
    outside = (row_of < 0) | (row_of >= num_rows)
    if outside.any():
        raise damaged(file, f"`words/rows` names row {row_of[outside][0]}; expected 0 to {num_rows - 1}.")
    if verify:
        check_fingerprint(file, "word_rows_fingerprint", fingerprint_remap(row_of))
    return row_of


def open_words(file: h5py.File, group: str, num_words: int, verify: bool) -> Words | None:
    """Check the offsets of words, and return words that are read and decoded on first use.

    Args:
        file: the open file.
        group: "words" or "vocabulary".
        num_words: expected number of words.
        verify: also read the words now and compare their fingerprint.

    Returns:
        The words, or None if the file has none.
    """
    fingerprint = text_attribute(file, f"{group}_fingerprint")
    if not fingerprint:
        return None
    utf8, offsets = _datasets(file, group)
    check_length(file, f"{group}/offsets", len(offsets), num_words + 1)
    check_offsets(offsets[:], len(utf8))
    if verify:
        check_fingerprint(file, f"{group}_fingerprint", fingerprint_packed(_packed(file, group)))
    # Absolute, because the working folder may change before the words are read.
    path = Path(file.filename).absolute()
    return Words(num_words, functools.partial(_load, path, text_attribute(file, "format"), group, fingerprint))


def _load(path: Path, format_name: str, group: str, fingerprint: str) -> Packed:
    with reading(path, format_name) as file:
        now = text_attribute(file, f"{group}_fingerprint")
        if now != fingerprint:
            raise TableFormatError(
                f"{path} was replaced after it had been opened: the fingerprint of `{group}` is {now or 'empty'}; "
                f"expected {fingerprint}. Open the table again."
            )
        return _packed(file, group)


def _packed(file: h5py.File, group: str) -> Packed:
    utf8, offsets = _datasets(file, group)
    return utf8[:], offsets[:].astype(np.uint64, copy=False)


def _datasets(file: h5py.File, group: str) -> tuple[h5py.Dataset, h5py.Dataset]:
    utf8 = dataset(file, f"{group}/utf8", (np.dtype(np.uint8),), 1)
    return utf8, dataset(file, f"{group}/offsets", (np.dtype(np.uint64),), 1)
