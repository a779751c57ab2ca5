"""A frozen table, a trainable table and the remap between them: pure NumPy, and the oracle of every test.

Arrays, or one dense matrix, go in; a `SplitTable` comes out, which looks rows up, combines them and saves itself.
"""

import copy
import dataclasses
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed import tables
from splitembed.arrays import aligned_empty, as_aligned, as_read_only
from splitembed.coverage import Coverage
from splitembed.errors import FingerprintError, SplitError, TokenIdError
from splitembed.parts import (
    as_float32,
    checked_padding,
    checked_remap,
    checked_vocabulary,
    frozen_rows,
    trainable_rows,
    unchanging,
)
from splitembed.vocabulary import out_of_range, resolve_ids
from splitembed.words import Words


class SplitTable:
    """One row for every token, held in two tables: `frozen` never changes, `trainable` is what training updates.

    `remap[id] >= 0` is a row of `frozen`; `remap[id] < 0` is row `~remap[id]` of `trainable`. Several ids may share a
    row. A split never changes: what alters it returns a new one on the same memory.

    >>> split = SplitTable.from_arrays(frozen=[[1.0, 1.0], [2.0, 2.0]], remap=[1, ~0, 0], trainable=[[9.0, 9.0]])
    >>> split
    SplitTable(num_tokens=3, dim=2, num_frozen=2, num_trainable=1)
    >>> split.lookup([[0, 1]]).tolist()
    [[[2.0, 2.0], [9.0, 9.0]]]

    Args:
        frozen: `(num_frozen, dim)` float32 or float16, used as it is, never copied, so a memory map stays one; int8
            with a `scale`; or bfloat16 as uint16, with `frozen_dtype`. Any other numbers become float32.
        remap: `(num_tokens,)` integers; an array that can be written to is copied.
        trainable: `(num_trainable, dim)`; stored as float32; copied likewise.
        vocabulary: the tokens in id order, or None where ids have no strings.
        padding: the id whose row is zero and frozen, or None.
        scale: float32 `(num_frozen,)`, with int8 rows: a row is `frozen[row] * scale[row]`.
        frozen_dtype: "float32", "float16", "bfloat16" or "int8", where the array does not say so by itself.
        table: the frozen.h5 whose rows `frozen` are; `save` then writes the trainable table alone.
        coverage: what matching found, where the split was built from vectors.

    Raises:
        SplitError: shapes, dtypes or rows that do not fit together.
    """

    def __init__(
        self,
        frozen: ArrayLike,
        remap: ArrayLike,
        trainable: ArrayLike,
        *,
        vocabulary: Sequence[str] | None = None,
        padding: int | None = None,
        scale: ArrayLike | None = None,
        frozen_dtype: str | None = None,
        table: tables.FrozenTable | None = None,
        coverage: Coverage | None = None,
    ) -> None:
        rows, self.scale = frozen_rows(frozen, scale, frozen_dtype)
        self._frozen = as_read_only(rows)
        self._trainable = unchanging(trainable_rows(trainable, self._frozen.shape[1]), trainable)
        self._remap = unchanging(checked_remap(remap, len(self._frozen), len(self._trainable)), remap)
        self._vocabulary = checked_vocabulary(vocabulary, len(self._remap))
        self.padding = checked_padding(padding, self._remap, self._frozen)
        self.table = table
        self.coverage = coverage

    @classmethod
    def from_arrays(
        cls,
        frozen: ArrayLike,
        remap: ArrayLike,
        trainable: ArrayLike,
        *,
        vocabulary: Sequence[str] | None = None,
        padding: int | None = None,
        scale: ArrayLike | None = None,
    ) -> "SplitTable":
        """Makes a split of its parts as they are; see the class for what they must be."""
        return cls(frozen, remap, trainable, vocabulary=vocabulary, padding=padding, scale=scale)

    @classmethod
    def from_matrix(
        cls,
        matrix: ArrayLike,
        trainable_ids: Any,
        *,
        vocabulary: Sequence[str] | None = None,
        padding: int | None = None,
    ) -> "SplitTable":
        """Splits one dense matrix: the named rows train, the others are frozen. `combine` is the inverse.

        >>> split = SplitTable.from_matrix([[0.0], [1.0], [2.0]], trainable_ids=[1])
        >>> split.frozen.tolist(), split.trainable.tolist(), split.remap.tolist()
        ([[0.0], [2.0]], [[1.0]], [0, -1, 1])

        Args:
            matrix: `(num_tokens, dim)`; both tables are float32 copies of its rows, in id order.
            trainable_ids: ids, tokens (with a `vocabulary`) or a boolean mask `(num_tokens,)`.
            vocabulary: the tokens in id order, or None.
            padding: the id whose row is zero and stays so, or None.

        Raises:
            SplitError: the matrix is not two-dimensional, or the padding id is to be trained or is not zero.
            TokenIdError: an id outside the matrix.
            UnknownTokenError: a token outside the vocabulary.
        """
        rows = as_float32("matrix", matrix)
        chosen = np.zeros(len(rows), bool)
        chosen[resolve_ids(trainable_ids, len(rows), None if vocabulary is None else _index_of(vocabulary))] = True
        frozen = aligned_empty((int(np.count_nonzero(~chosen)), rows.shape[1]), np.float32)
        np.compress(~chosen, rows, axis=0, out=frozen)
        return cls(frozen, remap_of(chosen), rows[chosen], vocabulary=vocabulary, padding=padding)

    @classmethod
    def open(
        cls, directory: str | os.PathLike[str], frozen: Any = None, *, verify: bool = False, memory_map: bool = True
    ) -> "SplitTable":
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

    def save_trainable(self, path: str | os.PathLike[str], *, frozen_path: str | None = None) -> None:
        """Writes the trainable rows, the remap and the vocabulary as a trainable.h5.

        Args:
            path: the file to make or replace.
            frozen_path: where it is to say that the frozen table is, absolute or relative to its own folder; by
                default where that table was opened.
        """
        if frozen_path is None:
            frozen_path = "" if self.table is None or self.table.path is None else str(self.table.path)
        tables.write_trainable(
            path,
            self.trainable,
            self.remap,
            vocabulary=self.vocabulary,
            padding=self.padding,
            frozen_fingerprint=self.fingerprint,
            frozen_path=frozen_path,
        )

    @property
    def frozen(self) -> NDArray[Any]:
        """`(num_frozen, dim)` rows that never change, as they are stored; read-only, memory-mapped where opened so."""
        return self._frozen

    @property
    def frozen_dtype(self) -> str:
        """What the frozen rows are stored in: "float32", "float16", "bfloat16" (as uint16) or "int8" (with `scale`)."""
        return tables.dtype_name(self._frozen.dtype)

    @property
    def trainable(self) -> NDArray[np.float32]:
        """`(num_trainable, dim)` float32 rows that training updates; read-only."""
        return self._trainable

    @property
    def remap(self) -> NDArray[np.int32]:
        """`(num_tokens,)` int32; `>= 0` is a row of `frozen`, `< 0` is row `~remap[id]` of `trainable`; read-only."""
        return self._remap

    @property
    def vocabulary(self) -> Words | None:
        """The tokens in id order, read and decoded on first use; None where ids have no strings."""
        return self._vocabulary

    @property
    def num_tokens(self) -> int:
        """Number of token ids: every id is in `0 <= id < num_tokens`."""
        return len(self._remap)

    @property
    def num_frozen(self) -> int:
        """Number of frozen rows."""
        return len(self._frozen)

    @property
    def num_trainable(self) -> int:
        """Number of trainable rows."""
        return len(self._trainable)

    @property
    def dim(self) -> int:
        """Length of a row."""
        return int(self._frozen.shape[1])

    @property
    def trainable_ids(self) -> NDArray[np.int64]:
        """The ids, ascending, whose rows train."""
        return np.flatnonzero(self._remap < 0)

    @cached_property
    def fingerprint(self) -> str:
        """`sha256:...` of the frozen rows: what a trainable table is paired by."""
        return self.table.fingerprint if self.table is not None else tables.fingerprint_rows(self.frozen, self.scale)

    @cached_property
    def remap_fingerprint(self) -> str:
        """`sha256:...` of the remap."""
        return tables.fingerprint_remap(self.remap)

    @property
    def trainable_fingerprint(self) -> str:
        """`sha256:...` of the trainable rows."""
        return tables.fingerprint_rows(self.trainable)

    @cached_property
    def vocabulary_fingerprint(self) -> str:
        """`sha256:...` of the vocabulary; empty where ids have no strings."""
        return "" if self._vocabulary is None else tables.fingerprint_words(self._vocabulary)

    @cached_property
    def _index(self) -> dict[str, int]:
        return _index_of(self._vocabulary or [])

    def ids(self, selection: Any) -> NDArray[np.int64]:
        """Turns tokens, ids, both mixed, or a boolean mask into ids.

        >>> SplitTable.from_matrix([[0.0], [1.0]], [], vocabulary=["a", "b"]).ids(["b", 0]).tolist()
        [1, 0]

        Raises:
            TokenIdError: an id outside the vocabulary.
            UnknownTokenError: a token that the vocabulary does not hold.
        """
        return resolve_ids(selection, self.num_tokens, None if self._vocabulary is None else lambda: self._index)

    def lookup(self, ids: ArrayLike) -> NDArray[np.float32]:
        """Looks ids up.

        Args:
            ids: integers of any shape.

        Returns:
            `ids.shape + (dim,)` float32.

        Raises:
            TokenIdError: an id outside `[0, num_tokens)`.
        """
        rows = self._remap[self._checked_ids(ids)]
        result = np.empty((*rows.shape, self.dim), np.float32)
        is_frozen = rows >= 0
        result[is_frozen] = self._widened(rows[is_frozen])
        result[~is_frozen] = self._trainable[~rows[~is_frozen]]
        return result

    def combine(self) -> NDArray[np.float32]:
        """Builds the dense matrix `(num_tokens, dim)`: the inverse of `from_matrix`."""
        return self.lookup(np.arange(self.num_tokens))

    def with_trainable(self, trainable: ArrayLike) -> "SplitTable":
        """Returns the same split with other values in its trainable rows.

        Args:
            trainable: `(num_trainable, dim)`.

        Raises:
            SplitError: another shape.
        """
        rows = trainable_rows(trainable, self.dim)
        if len(rows) != self.num_trainable:
            raise SplitError(f"`trainable` must have {self.num_trainable} rows, as before. Received: {len(rows)} rows.")
        split = copy.copy(self)
        split._trainable = unchanging(rows, trainable)
        return split

    def with_frozen_dtype(self, dtype: str) -> "SplitTable":
        """Returns the split with its frozen rows stored in another precision; they are widened as they are read.

        >>> split = SplitTable.from_matrix([[0.5, 1.0], [2.0, -4.0]], [1]).with_frozen_dtype("float16")
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
        return SplitTable(
            as_aligned(rows),
            self._remap,
            self._trainable,
            vocabulary=self._vocabulary,
            padding=self.padding,
            scale=scale,
            frozen_dtype=dtype,
            coverage=self.coverage,
        )

    def _widened(self, rows: NDArray[np.int32]) -> NDArray[np.float32]:
        return tables.decode_rows(self._frozen[rows], None if self.scale is None else self.scale[rows])

    def detached(self, *, keep_table: bool = False) -> "SplitTable":
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

    def sharing(self, other: "SplitTable") -> "SplitTable":
        """Returns the same split on the memory of another one's frozen rows, which are the same.

        >>> frozen = np.ones((2, 1), np.float32)
        >>> first, second = SplitTable.from_arrays(frozen, [0], []), SplitTable.from_arrays(frozen.copy(), [1], [])
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

    def _checked_ids(self, ids: ArrayLike) -> NDArray[Any]:
        array = np.asarray(ids)
        if array.size == 0 and array.dtype.kind == "f":  # NumPy makes [] float64
            array = array.astype(np.int64)
        if array.dtype.kind not in "iu":
            raise SplitError(f"`ids` must be integers. Received: an array of dtype {array.dtype}.")
        outside = (array < 0) | (array >= self.num_tokens)
        if outside.any():
            raise TokenIdError(out_of_range(array[outside][0], self.num_tokens))
        return array

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

    def __repr__(self) -> str:
        sizes = ("num_tokens", "dim", "num_frozen", "num_trainable")
        return f"SplitTable({', '.join(f'{name}={getattr(self, name)}' for name in sizes)})"


def _index_of(vocabulary: Sequence[str]) -> dict[str, int]:
    """Token to id; of ids with the same token, the first."""
    return dict(zip(reversed(vocabulary), range(len(vocabulary) - 1, -1, -1), strict=True))


def _in_memory(words: Words | None) -> Words | None:
    return None if words is None else Words.from_arrays(*words.packed())


def remap_of(is_trainable: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Numbers the rows of both tables in id order, one row a token.

    >>> remap_of(np.array([False, True, False])).tolist()
    [0, -1, 1]
    """
    frozen_row = np.cumsum(~is_trainable, dtype=np.int32) - 1
    return np.where(is_trainable, -np.cumsum(is_trainable, dtype=np.int32), frozen_row)
