"""frozen.h5: rows, words and where they came from enter; a memory-mapped table leaves."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed.arrays import as_read_only
from splitembed.errors import SplitError, TokenIdError
from splitembed.tables import fields as contents
from splitembed.tables.atomic_files import reading
from splitembed.tables.fields import FROZEN_FORMAT, PathLike
from splitembed.tables.fingerprints import fingerprint_rows
from splitembed.tables.mapping import map_or_read, read
from splitembed.tables.storage import STORAGE, decode_rows, dtype_name
from splitembed.tables.stored_words import open_word_rows, open_words
from splitembed.words import Words


@dataclass(frozen=True, eq=False)
class FrozenTable:
    """Rows that never change, with their words; many models and processes may share one.

    >>> table = FrozenTable(np.array([[1, 2], [3, 4], [5, 6]], np.float32), "sha256:...")
    >>> table.num_frozen, table.dim, table.dtype
    (3, 2, 'float32')
    >>> table.take([2, 0, 0]).tolist()
    [[5.0, 6.0], [1.0, 2.0], [1.0, 2.0]]

    Args:
        vectors: `(num_frozen, dim)`, read-only, as stored: float32, float16, uint16 (bfloat16) or int8.
        fingerprint: of the rows, see `fingerprint_rows`.
        source: where the rows came from, for people.
        path: the file, absolute; None for a table in memory.
        zero_row: a row that is all zero, for padding ids; None if none is set apart.
        words: one for each row, or for each number in `row_of`; read on first use; None if the rows have none.
        scale: float32 `(num_frozen,)` with int8: a row is `vectors[row] * scale[row]`.
        mapped: whether `vectors` is a map of the file, so that only rows that are used take memory.
        row_of: int64 `(num_words,)`, the row of each word, where words share rows; None where word `i` has row `i`.
    """

    vectors: NDArray[Any]
    fingerprint: str
    source: str = ""
    path: Path | None = None
    zero_row: int | None = None
    words: Words | None = None
    scale: NDArray[np.float32] | None = None
    mapped: bool = False
    row_of: NDArray[np.int64] | None = None

    @property
    def num_frozen(self) -> int:
        """Number of rows."""
        return len(self.vectors)

    @property
    def dim(self) -> int:
        """Length of a row."""
        return int(self.vectors.shape[1])

    @property
    def dtype(self) -> str:
        """What the rows are stored as: "float32", "float16", "bfloat16" or "int8"."""
        return dtype_name(self.vectors.dtype)

    def take(self, rows: ArrayLike) -> NDArray[np.float32]:
        """Gathers rows in the order asked for, repeats included, widened to float32.

        Args:
            rows: integers of any shape `(...,)`.

        Returns:
            float32 `(..., dim)`, a copy.

        Raises:
            TokenIdError: (an IndexError) a row outside `0 <= row < num_frozen`.
            SplitError: `rows` are not integers.
        """
        asked = np.asarray(rows)
        if not asked.size:
            asked = asked.astype(np.intp)
        if asked.dtype.kind not in "iu":
            raise SplitError(f"`rows` must be integers; found dtype {asked.dtype}.")
        outside = (asked < 0) | (asked >= self.num_frozen)
        if outside.any():
            raise TokenIdError(f"Row {asked[outside][0]} does not exist: there are {self.num_frozen} rows, from 0 on.")
        return decode_rows(self.vectors[asked], None if self.scale is None else self.scale[asked])


def open_frozen(path: PathLike, *, verify: bool = False, memory_map: bool = True) -> FrozenTable:
    """Opens a frozen.h5: its rows are mapped where they lie plain in the file, and read otherwise.

    No handle stays open. The map shows the file as it was opened, also after `path` is replaced or deleted.

    >>> import tempfile
    >>> from splitembed.tables import write_frozen
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fingerprint = write_frozen(Path(folder) / "frozen.h5", np.ones((4, 2), np.float32), source="example")
    ...     table = open_frozen(Path(folder) / "frozen.h5", verify=True)
    >>> table.vectors.shape, table.mapped, table.source
    ((4, 2), True, 'example')

    Args:
        path: the file.
        verify: also read all of it and compare the fingerprints of rows and words.
        memory_map: False reads the rows into memory.

    Returns:
        The table.

    Raises:
        TableFormatError: a file that is foreign, cut short, damaged, too new, or being written.
    """
    with reading(path, FROZEN_FORMAT) as file:
        rows, scales = _datasets(file)
        if verify:
            contents.check_fingerprint(file, "fingerprint", fingerprint_rows(rows, scales))
        vectors, mapped = map_or_read(file, rows, memory_map)
        row_of = open_word_rows(file, len(rows), verify)
        return FrozenTable(
            vectors,
            contents.text_attribute(file, "fingerprint"),
            source=contents.text_attribute(file, "source"),
            path=Path(path).absolute(),
            zero_row=_zero_row(file, vectors),
            words=open_words(file, "words", len(rows) if row_of is None else len(row_of), verify),
            scale=None if scales is None else as_read_only(read(scales)),
            mapped=mapped,
            row_of=row_of,
        )


def _zero_row(file: h5py.File, vectors: NDArray[Any]) -> int | None:
    row = contents.index_attribute(file, "zero_row", len(vectors))
    if row is not None and decode_rows(vectors[row]).any():
        raise contents.damaged(file, f"its attribute `zero_row` is {row}, and that row is not zero.")
    return row


def _datasets(file: h5py.File) -> tuple[h5py.Dataset, h5py.Dataset | None]:
    rows = contents.dataset(file, "vectors", tuple(STORAGE.values()), 2)
    dtype, dim = contents.text_attribute(file, "dtype"), contents.integer_attribute(file, "dim")
    if dtype != dtype_name(rows.dtype) or dim != rows.shape[1]:
        found = f"shape {rows.shape} and dtype {rows.dtype}"
        raise contents.damaged(file, f"its attributes promise {dtype} rows of dim {dim}; `vectors` has {found}.")
    if dtype != "int8":
        return rows, None
    scales = contents.dataset(file, "scale", (np.dtype(np.float32),), 1)
    contents.check_length(file, "scale", len(scales), len(rows))
    return rows, scales
