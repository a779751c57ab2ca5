"""Frozen tables, opened from a frozen.h5 by memory map."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed.errors import SplitError, TokenIdError
from splitembed.paths import local_path
from splitembed.tables.fields import FROZEN_FORMAT, PathLike, damaged
from splitembed.tables.fingerprints import fingerprint_rows
from splitembed.tables.storage import STORAGES, Storage, storage_of
from splitembed.tables.stored_words import open_word_rows, open_words
from splitembed.tables.table_file import MemoryMap, TableFile, reading
from splitembed.words import Words


@dataclass(frozen=True, eq=False)
class FrozenTable:
    """Rows that never change, with their words; many models and processes can share one table.

    >>> table = FrozenTable(np.array([[1, 2], [3, 4], [5, 6]], np.float32), "sha256:...")
    >>> table.num_frozen, table.dim, table.dtype
    (3, 2, 'float32')
    >>> table.take([2, 0, 0]).tolist()
    [[5.0, 6.0], [1.0, 2.0], [1.0, 2.0]]

    Args:
        vectors: `(num_frozen, dim)`, read-only, as stored: float32, float16, uint16 (bfloat16) or int8.
        fingerprint: of the rows, see `fingerprint_rows`.
        source: a description of the origin of the rows.
        path: the file, absolute; None for a table in memory.
        zero_row: a row that is all zero, for padding ids, or None.
        words: one for each row, or for each number in `row_of`; read on first use; None for rows without words.
        scale: float32 `(num_frozen,)` with int8: a row is `vectors[row] * scale[row]`.
        mapped: whether `vectors` is a memory map of the file, so that only used rows take memory.
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
    def storage(self) -> Storage:
        """How the rows are stored."""
        return storage_of(self.vectors.dtype)

    @property
    def dtype(self) -> str:
        """How the rows are stored: "float32", "float16", "bfloat16" or "int8"."""
        return self.storage.name

    def take(self, rows: ArrayLike) -> NDArray[np.float32]:
        """Return rows by number, widened to float32.

        Args:
            rows: integers of any shape `(...,)`.

        Returns:
            float32 `(..., dim)`, a copy, in the given order.

        Raises:
            TokenIdError: a row outside `0 <= row < num_frozen`.
            SplitError: `rows` are not integers.
        """
        numbers = np.asarray(rows)
        if not numbers.size:
            numbers = numbers.astype(np.intp)
        if numbers.dtype.kind not in "iu":
            raise SplitError(f"`rows` must be integers. Received: dtype {numbers.dtype}.")
        outside = (numbers < 0) | (numbers >= self.num_frozen)
        if outside.any():
            raise TokenIdError(
                f"`rows` must be from 0 to {self.num_frozen - 1}, as the table has {self.num_frozen} rows. Received: "
                f"{numbers[outside][0]}."
            )
        return self.storage.decode(self.vectors[numbers], None if self.scale is None else self.scale[numbers])


def open_frozen(path: PathLike, *, verify: bool = False, memory_map: MemoryMap = True) -> FrozenTable:
    """Open a frozen.h5; its rows and words are memory-mapped.

    Of the file only its head and the few arrays that every use needs are read, and no HDF5 library reads it. It is
    closed again. The map keeps its content, also after `path` is replaced or deleted. But a program that shortens the
    file in place takes mapped pages away, and the process ends with SIGBUS when it reads one. splitembed never does
    that. Where others might, and on network file systems, pass `memory_map=False` or "auto".

    >>> import tempfile
    >>> from splitembed.tables import write_frozen
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fingerprint = write_frozen(Path(folder) / "frozen.h5", np.ones((4, 2), np.float32), source="example")
    ...     table = open_frozen(Path(folder) / "frozen.h5", verify=True)
    >>> table.vectors.shape, table.mapped, table.source
    ((4, 2), True, 'example')

    Args:
        path: the file.
        verify: also read the whole file and compare the fingerprints of rows and words.
        memory_map: False reads rows and words into memory; "auto" does so where the file lies on a network file system
            (recognised on Linux).

    Returns:
        The table.

    Raises:
        TableFormatError: a file that is foreign, cut short, damaged, too new, written again by another tool, or being
            written.
        OSError: a pipe or a device.
    """
    with reading(path, FROZEN_FORMAT, memory_map) as file:
        vectors, mapped, scale = _rows(file)
        if verify:
            file.check_fingerprint("fingerprint", fingerprint_rows(vectors, scale))
        row_of = open_word_rows(file, len(vectors), verify)
        return FrozenTable(
            vectors,
            file.text("fingerprint"),
            source=file.text("source"),
            path=local_path(path).absolute(),
            zero_row=_zero_row(file, vectors),
            words=open_words(file, "words", len(vectors) if row_of is None else len(row_of), verify),
            scale=scale,
            mapped=mapped,
            row_of=row_of,
        )


def _zero_row(file: TableFile, vectors: NDArray[Any]) -> int | None:
    row = file.index("zero_row", len(vectors))
    if row is not None and storage_of(vectors.dtype).decode(vectors[row], None).any():
        raise damaged(file.name, f"its attribute `zero_row` is {row}, and that row is not zero.")
    return row


def _rows(file: TableFile) -> tuple[NDArray[Any], bool, NDArray[np.float32] | None]:
    """Return the rows, whether they are mapped, and their scale."""
    vectors, mapped = file.array("vectors", tuple(each.stored_dtype for each in STORAGES.values()), 2, can_map=True)
    dtype, dim = file.text("dtype"), file.integer("dim")
    storage = storage_of(vectors.dtype)
    if dtype != storage.name or dim != vectors.shape[1]:
        found = f"shape {vectors.shape} and dtype {vectors.dtype}"
        raise damaged(file.name, f"`vectors` has {found}; expected {dtype} rows of dim {dim}.")
    if mapped:
        file.reads_at_random("vectors")
    if not storage.has_scale:
        return vectors, mapped, None
    scale = file.array("scale", (np.dtype(np.float32),), 1)[0]
    file.check_length("scale", len(scale), len(vectors))
    return vectors, mapped, scale
