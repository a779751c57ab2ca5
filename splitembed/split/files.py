"""A split and its files: one is saved as frozen.h5 and trainable.h5, opened again, and kept apart from them or on them.

How the frozen rows are held in memory belongs here too: their precision, and whether splits share them.
"""

import copy
import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from splitembed import tables
from splitembed.arrays import as_aligned
from splitembed.errors import FingerprintError, SplitError
from splitembed.split.base import SplitBase
from splitembed.words import Words

if TYPE_CHECKING:
    from typing_extensions import Self


class StoredSplit(SplitBase):
    """A `SplitTable`, as far as files and memory go.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     StoredSplit([[1.0]], [0, ~0], [[2.0]]).save(folder)
    ...     StoredSplit.open(folder).combine().tolist()
    [[1.0], [2.0]]
    """

    @classmethod
    def open(
        cls, directory: str | os.PathLike[str], frozen: Any = None, *, verify: bool = False, memory_map: bool = True
    ) -> "Self":
        """Opens what `save` wrote; the frozen rows are memory-mapped where the file allows it.

        Args:
            directory: the folder that holds trainable.h5, or the path of the trainable table itself.
            frozen: the frozen table's path, or an opened one that several splits share; by default the frozen.h5
                beside the trainable table, else the file that the trainable table names, else the one of its
                fingerprint in a folder that the environment variable SPLITEMBED_PATH lists.
            verify: recompute the fingerprints of everything read.
            memory_map: False reads the frozen rows into memory.

        Raises:
            TableFormatError: a file is foreign, cut short, damaged or too new.
            FingerprintError: the two tables do not belong together.
            FileNotFoundError: a table is not there.
        """
        trainable, table = tables.open_pair(directory, frozen, verify=verify, memory_map=memory_map)
        return cls(
            table.vectors,
            trainable.remap,
            trainable.vectors,
            scale=table.scale,
            frozen_dtype=table.dtype,
            vocabulary=trainable.vocabulary,
            padding=trainable.padding,
            table=table,
        )

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes trainable.h5 into the folder, and frozen.h5 beside it unless the split stands on an existing one.

        Each file is replaced as a whole: a reader sees the old one or the new one, never half.

        Args:
            directory: the folder, made if it is not there.

        Raises:
            SplitError: the path is a file's, or the folder's frozen.h5 is another table that stands there by itself.
        """
        folder = Path(directory)
        if folder.is_file():
            raise SplitError(f"`directory` must be a folder for frozen.h5 and trainable.h5. Received a file: {folder}.")
        folder.mkdir(parents=True, exist_ok=True)
        frozen = folder / tables.FROZEN_NAME
        if self.frozen_file() is not None:
            self.save_trainable(folder / tables.TRAINABLE_NAME)
            return
        is_ours = (folder / tables.TRAINABLE_NAME).exists() or tables.is_frozen(frozen, self.fingerprint)
        if frozen.exists() and not is_ours:
            raise SplitError(
                f"{frozen} is a table by itself, which other models may stand on, and not the one of this split. Save "
                f"the split in another folder, or move that file."
            )
        self.save_frozen(frozen)
        self.detached().save_trainable(folder / tables.TRAINABLE_NAME)

    def frozen_file(self) -> Path | None:
        """Returns the file that the frozen rows were opened from, if it is still there and still holds them."""
        path = None if self.table is None else self.table.path
        return path if path is not None and tables.is_frozen(path, self.fingerprint) else None

    def save_frozen(self, path: str | os.PathLike[str]) -> None:
        """Writes the frozen rows and their words as a frozen.h5, streamed in bounded memory.

        Raises:
            FingerprintError: the rows were changed in place, in memory or in the file that they are mapped from.
        """
        if self.table is None:
            words, source, row_of = self._frozen_words(), "", None
            zero_row = None if self.padding is None else int(self.remap[self.padding])
        else:
            words, source, zero_row = self.table.words, self.table.source, self.table.zero_row
            row_of = self.table.row_of
        tables.write_frozen(
            path,
            self.frozen,
            words=words,
            source=source,
            zero_row=zero_row,
            scale=self.scale,
            fingerprint=self.fingerprint,
            row_of=row_of,
        )

    def save_trainable(
        self,
        path: str | os.PathLike[str],
        *,
        frozen_path: str | None = None,
        reverse: "StoredSplit | None" = None,
    ) -> None:
        """Writes the trainable rows, the remap and the vocabulary as a trainable.h5.

        Args:
            path: the file to make or replace.
            frozen_path: where it is to say that the frozen table is, absolute or relative to its own folder; by
                default where that table was opened.
            reverse: the split of the logits, where weights are not tied; the file then holds its rows and remap too.

        Raises:
            SplitError: `reverse` is for other tokens, or has another dim.
        """
        if frozen_path is None:
            frozen_path = "" if self.table is None or self.table.path is None else str(self.table.path)
        if reverse is not None and reverse.vocabulary_fingerprint not in ("", self.vocabulary_fingerprint):
            raise SplitError("The split of the logits has another vocabulary than the embedding's: one file has one.")
        table = None if reverse is None else reverse._trainable_table()
        tables.write_trainable(
            path,
            self.trainable,
            self.remap,
            vocabulary=self.vocabulary,
            padding=self.padding,
            frozen_fingerprint=self.fingerprint,
            frozen_path=frozen_path,
            reverse=table,
        )

    def _trainable_table(self) -> tables.TrainableTable:
        return tables.TrainableTable(self.trainable, self.remap, self.fingerprint, padding=self.padding)

    def with_frozen_dtype(self, dtype: str) -> "Self":
        """Returns the split with its frozen rows stored in another precision; they are widened as they are read.

        >>> split = StoredSplit([[0.5, 1.0]], [0], []).with_frozen_dtype("float16")
        >>> split.frozen.dtype.name, split.lookup([0]).tolist()
        ('float16', [[0.5, 1.0]])

        Args:
            dtype: "float32"; "float16" or "bfloat16", half the bytes; "int8" with a float32 scale a row, a quarter.

        Raises:
            SplitError: a value that the dtype cannot hold, named by its row.
        """
        if dtype == self.frozen_dtype:
            return self
        rows, scale = tables.encode_rows(tables.decode_rows(self._frozen, self.scale), dtype)
        return self.with_parts(frozen=as_aligned(rows), scale=scale, frozen_dtype=dtype)

    def detached(self, *, keep_table: bool = False) -> "Self":
        """Returns the same split without the names of the files it came from: they may then go, or be replaced.

        Words are read into memory. Memory maps stay maps, which outlive the file's name.

        Args:
            keep_table: whether the frozen table stays where it is, and only the trainable one may go.
        """
        split = copy.copy(self)
        split._vocabulary = _in_memory(self._vocabulary)
        if self.table is not None and not keep_table:
            split.table = dataclasses.replace(self.table, path=None, words=_in_memory(self.table.words))
        return split

    def sharing(self, other: "StoredSplit") -> "Self":
        """Returns the same split on the memory of another one's frozen rows, which are the same.

        >>> frozen = np.ones((2, 1), np.float32)
        >>> first, second = StoredSplit(frozen, [0], []), StoredSplit(frozen.copy(), [1], [])
        >>> second.sharing(first).frozen is first.frozen
        True

        Raises:
            FingerprintError: the frozen rows are others.
        """
        if self.fingerprint != other.fingerprint:
            raise FingerprintError(
                f"Splits can share frozen rows that are the same alone: these are {self.fingerprint} and "
                f"{other.fingerprint}."
            )
        split = copy.copy(self)
        split._frozen, split.scale = other._frozen, other.scale
        if self.table is not None:
            mapped = other.table is not None and other.table.mapped
            split.table = dataclasses.replace(self.table, vectors=split.frozen, scale=split.scale, mapped=mapped)
        return split

    def _frozen_words(self) -> Sequence[str] | None:
        """The word of each frozen row: its first token; "" for the padding row, and for a row that no token uses."""
        if self._vocabulary is None:
            return None
        words = [""] * self.num_frozen
        tokens = list(self._vocabulary)
        ids = np.flatnonzero(self._remap >= 0)[::-1]
        for place, row in zip(ids.tolist(), self._remap[ids].tolist(), strict=True):
            words[row] = tokens[place]
        return words


def _in_memory(words: Words | None) -> Words | None:
    return None if words is None else Words.from_arrays(*words.packed())
