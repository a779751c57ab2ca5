"""Writing a frozen.h5 block by block, in bounded memory."""

import math
import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from splitembed.errors import SplitError
from splitembed.tables.atomic_files import refuse_foreign, writable_folder
from splitembed.tables.fields import FROZEN_FORMAT, PathLike
from splitembed.tables.fingerprints import Fingerprint, describe_rows
from splitembed.tables.spool import Spool
from splitembed.tables.storage import encode_rows, storage_named
from splitembed.tables.write_frozen import ALIGNMENT_IN_FILE, store_sizes
from splitembed.tables.write_table import TableWriter, publishing
from splitembed.words import pack_words


class FrozenWriter:
    """A writer of a frozen.h5, block by block: memory holds one block, the folder the rows twice until the end.

    The file appears when the `with` block ends; an exception leaves an existing file unchanged.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from splitembed.tables import open_frozen
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "frozen.h5"
    ...     with FrozenWriter(path, with_zero_row=True) as writer:
    ...         writer.append(["the", "of"], [[1.0, 2.0], [3.0, 4.0]])
    ...         writer.append(["and"], [[5.0, 6.0]])
    ...     table = open_frozen(path)
    ...     print(writer.num_frozen, table.vectors.tolist(), list(table.words), table.zero_row)
    4 [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [0.0, 0.0]] ['the', 'of', 'and', ''] 3

    Args:
        path: the file to make or replace.
        dim: length of a row; None takes it from the first block.
        dtype: "float32"; or "float16", "bfloat16" or "int8", which round the rows.
        source: a description of the origin of the rows.
        with_zero_row: append a zero row with the word "" for padding ids, and record its number.

    Raises:
        SplitError: rows of different lengths, or numbers that the dtype cannot hold.
        VocabularyError: a word that cannot be stored.
        TableFormatError: `path` is a file of another format, which would be lost.
    """

    def __init__(
        self,
        path: PathLike,
        dim: int | None = None,
        *,
        dtype: str = "float32",
        source: str = "",
        with_zero_row: bool = False,
    ) -> None:
        self.storage = storage_named(dtype)
        self.path, self.dim, self.source = path, dim, source
        self.with_zero_row = with_zero_row
        self._spools: dict[str, Spool] = {}

    def __enter__(self) -> "FrozenWriter":
        refuse_foreign(self.path, FROZEN_FORMAT)
        folder = os.fspath(writable_folder(self.path))
        dtypes: dict[str, DTypeLike] = {
            "vectors": self.storage.stored_dtype,
            "scale": "f4",
            "words/utf8": "u1",
            "words/offsets": "u8",
        }
        self._spools = {name: Spool(folder, dtype) for name, dtype in dtypes.items()}
        self._spools["words/offsets"].append(np.zeros(1, np.uint64))
        self._rows_hash, self._words_hash, self._num_word_bytes = Fingerprint(), Fingerprint(), 0
        self.num_frozen, self.fingerprint = 0, ""
        return self

    def append(self, words: Sequence[str], rows: ArrayLike) -> None:
        """Add a block of words and their rows; an invalid block leaves the writer unchanged.

        Args:
            words: one for each row.
            rows: `(num_rows, dim)` real numbers.

        Raises:
            SplitError: wrong shapes, or a number that the dtype cannot hold.
            VocabularyError: a word that cannot be stored.
        """
        if not self._spools:
            raise SplitError("`append` can only be called inside the `with` block of the FrozenWriter.")
        block = self._checked(rows, len(words))
        stored, scale = self._encoded(block)
        utf8, offsets = pack_words(words)
        self.dim = block.shape[1]
        self._spools["vectors"].append(stored)
        self._rows_hash.add(stored)
        if scale is not None:
            self._spools["scale"].append(scale)
        self._spools["words/utf8"].append(utf8)
        self._words_hash.add(utf8)
        self._spools["words/offsets"].append(offsets[1:] + np.uint64(self._num_word_bytes))
        self._num_word_bytes += len(utf8)
        self.num_frozen += len(block)

    def _encoded(self, block: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float32] | None]:
        # Rows that are not rounded need no check.
        if block.dtype == np.float32 == self.storage.stored_dtype:
            return block, None
        return encode_rows(block, self.storage.name, self.num_frozen)

    def _checked(self, rows: ArrayLike, num_words: int) -> NDArray[Any]:
        block = np.asarray(rows)
        if block.ndim != 2 or not block.shape[1] or block.dtype.kind not in "fiu":
            raise SplitError(f"`rows` must be real numbers (num_rows, dim). Received: {block.dtype} {block.shape}.")
        if len(block) != num_words:
            raise SplitError(
                f"`words` must have one word for each row. Received: {num_words} words, {len(block)} rows."
            )
        if self.dim is not None and block.shape[1] != self.dim:
            raise SplitError(f"Row {self.num_frozen} has dim {block.shape[1]}; expected {self.dim}, as before.")
        return block

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._publish()
        finally:
            for spool in self._spools.values():
                spool.close()
            self._spools = {}

    def _publish(self) -> None:
        if self.dim is None:
            raise SplitError(f"{os.fspath(self.path)}: no row was written, so the dim is unknown. Pass `dim`.")
        zero_row = self.num_frozen if self.with_zero_row else None
        if self.with_zero_row:
            self.append([""], np.zeros((1, self.dim), np.float32))
        with publishing(self.path, FROZEN_FORMAT, alignment=ALIGNMENT_IN_FILE, source=self.source) as writer:
            store_sizes(writer, self.storage, self.dim, zero_row)
            self._store(writer, "vectors", (self.dim,), None)
            if self.storage.has_scale:
                self._store(writer, "scale", (), self._rows_hash)
            self._store(writer, "words/utf8", (), None)
            self._store(writer, "words/offsets", (), self._words_hash)
            fingerprint = self._rows_hash.finish(describe_rows(self.storage.name, self.num_frozen, self.dim))
            writer.text(fingerprint=fingerprint, words_fingerprint=self._words_hash.finish())
        self.fingerprint = fingerprint

    def _store(
        self, writer: TableWriter, name: str, row_shape: tuple[int, ...], fingerprint: Fingerprint | None
    ) -> None:
        spool = self._spools[name]
        shape = (spool.size // (math.prod(row_shape) or 1), *row_shape)
        writer.blocks(name, shape, spool.dtype, spool.blocks(row_shape), fingerprint)
