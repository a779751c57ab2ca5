"""Words inside our files: words enter and two datasets leave; a file enters and words leave that load on first use."""

import functools
from collections.abc import Iterable
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from splitembed.errors import TableFormatError
from splitembed.tables.atomic_files import reading
from splitembed.tables.fields import check_fingerprint, check_length, damaged, dataset, store_text, text_attribute
from splitembed.tables.fingerprints import fingerprint_packed, fingerprint_remap, little_endian
from splitembed.words import Packed, Words, check_offsets, pack_words


def store_words(file: h5py.File, group: str, words: Iterable[str] | None) -> str:
    """Writes words as `<group>/utf8` and `<group>/offsets`, and their fingerprint as `<group>_fingerprint`.

    Args:
        file: open for writing.
        group: "words" or "vocabulary".
        words: strings; None writes no group and an empty fingerprint.

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
    """Writes which row each word has, as `words/rows`, for words that share rows.

    Args:
        file: open for writing.
        row_of: `(num_words,)`.
    """
    file.create_dataset("words/rows", data=little_endian(row_of.astype(np.int32)))
    store_text(file, word_rows_fingerprint=fingerprint_remap(row_of))


def open_word_rows(file: h5py.File, num_rows: int, verify: bool) -> NDArray[np.int64] | None:
    """Reads which row each word has.

    Args:
        file: the open file.
        num_rows: of the table; every word's row must be one of them.
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
    """Checks the offsets of words and returns the words, which are read and decoded when first used.

    Args:
        file: the open file.
        group: "words" or "vocabulary".
        num_words: how many there must be.
        verify: also read them now and compare their fingerprint.

    Returns:
        The words, or None where the file holds none.
    """
    fingerprint = text_attribute(file, f"{group}_fingerprint")
    if not fingerprint:
        return None
    utf8, offsets = _datasets(file, group)
    check_length(file, f"{group}/offsets", len(offsets), num_words + 1)
    check_offsets(offsets[:], len(utf8))
    if verify:
        check_fingerprint(file, f"{group}_fingerprint", fingerprint_packed(_packed(file, group)))
    where = Path(file.filename).absolute()  # the working folder may be another one by then
    return Words(num_words, functools.partial(_load, where, text_attribute(file, "format"), group, fingerprint))


def _load(path: Path, format_name: str, group: str, fingerprint: str) -> Packed:
    with reading(path, format_name) as file:
        now = text_attribute(file, f"{group}_fingerprint")
        if now != fingerprint:
            raise TableFormatError(
                f"{path} was replaced after it had been opened: its {group} had the fingerprint {fingerprint}, now "
                f"{now or 'none'}. Open the table again."
            )
        return _packed(file, group)


def _packed(file: h5py.File, group: str) -> Packed:
    utf8, offsets = _datasets(file, group)
    return utf8[:], offsets[:].astype(np.uint64, copy=False)


def _datasets(file: h5py.File, group: str) -> tuple[h5py.Dataset, h5py.Dataset]:
    utf8 = dataset(file, f"{group}/utf8", (np.dtype(np.uint8),), 1)
    return utf8, dataset(file, f"{group}/offsets", (np.dtype(np.uint64),), 1)
