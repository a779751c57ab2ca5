"""trainable.h5: trainable rows, remap and vocabulary enter; they leave again, to be paired with their frozen table."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed.arrays import ALIGNMENT, as_read_only
from splitembed.errors import SplitError
from splitembed.tables import contents, files
from splitembed.tables.contents import TRAINABLE_FORMAT, PathLike
from splitembed.tables.fingerprints import Fingerprint, describe_rows, fingerprint_remap, fingerprint_rows
from splitembed.tables.mapping import map_or_read, read
from splitembed.tables.precision import encode_rows
from splitembed.tables.spool import store_array
from splitembed.tables.stored_words import open_words, store_words
from splitembed.words import Words

_MAPPED_FILES_CAN_BE_REPLACED = os.name == "posix"  # elsewhere a model could not be saved where it was opened


@dataclass(frozen=True, eq=False)
class TrainableTable:
    """What one model trains, and where each of its tokens finds its row.

    Args:
        vectors: `(num_trainable, dim)` float32, read-only.
        remap: `(num_tokens,)` int32, read-only: `>= 0` is a row of the frozen table, `< 0` is row `~remap[id]` here.
        frozen_fingerprint: of the frozen table that `remap` points into.
        vocabulary: the tokens in id order, read on first use; None where ids have no strings.
        padding: the padding id, or None.
        frozen_path: where the frozen table was, as a hint; "" if beside this file.
        fingerprint: of `vectors`, see `fingerprint_rows`.
        remap_fingerprint: of `remap`.
        vocabulary_fingerprint: of `vocabulary`; "" without one.
        path: the file, absolute; None for a table in memory.
        mapped: whether `vectors` is a map of the file, so that a model's weight is all the memory that they take.
    """

    vectors: NDArray[np.float32]
    remap: NDArray[np.int32]
    frozen_fingerprint: str
    vocabulary: Words | None = None
    padding: int | None = None
    frozen_path: str = ""
    fingerprint: str = ""
    remap_fingerprint: str = ""
    vocabulary_fingerprint: str = ""
    path: Path | None = None
    mapped: bool = False


def write_trainable(
    path: PathLike,
    vectors: ArrayLike,
    remap: ArrayLike,
    *,
    vocabulary: Sequence[str] | None = None,
    padding: int | None = None,
    frozen_fingerprint: str,
    frozen_path: str = "",
) -> str:
    """Writes a trainable.h5.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "trainable.h5"
    ...     _ = write_trainable(path, [[0.5, 0.5]], [1, ~0, 0], vocabulary=["the", "usr", "of"],
    ...                         frozen_fingerprint="sha256:...")
    ...     table = open_trainable(path)
    ...     print(table.vectors.tolist(), table.remap.tolist(), list(table.vocabulary))
    [[0.5, 0.5]] [1, -1, 0] ['the', 'usr', 'of']

    Args:
        path: the file to make or replace, as a whole and at once.
        vectors: `(num_trainable, dim)`; stored as float32.
        remap: `(num_tokens,)` integers: `>= 0` is a row of the frozen table, `< 0` is row `~remap[id]` of `vectors`.
        vocabulary: the tokens in id order, or None.
        padding: the padding id, or None.
        frozen_fingerprint: of the frozen table that `remap` points into.
        frozen_path: where that table is, unless it lies beside `path`.

    Returns:
        The fingerprint of the trainable rows.

    Raises:
        SplitError: arguments that do not fit together.
        VocabularyError: a token that cannot be stored.
    """
    given, places = np.asarray(vectors), _remap_array(remap)
    _check_arguments(given, places, vocabulary, padding)
    rows, _ = encode_rows(given, "float32")
    with files.publishing(path, TRAINABLE_FORMAT, alignment=ALIGNMENT) as file:
        contents.store_text(file, frozen_fingerprint=frozen_fingerprint, frozen_path=frozen_path)
        if padding is not None:
            file.attrs["padding"] = padding
        of_rows, of_remap = Fingerprint(), Fingerprint()
        store_array(file, "vectors", rows, of_rows)
        store_array(file, "remap", places, of_remap)
        store_words(file, "vocabulary", vocabulary)
        fingerprint = of_rows.finish(describe_rows("float32", *rows.shape))
        contents.store_text(file, fingerprint=fingerprint, remap_fingerprint=of_remap.finish())
    return fingerprint


def _remap_array(remap: ArrayLike) -> NDArray[np.int32]:
    array = np.asarray(remap)
    if not array.size:
        array = array.astype(np.int32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise SplitError(f"`remap` must be integers (num_tokens,); found {array.dtype} {array.shape}.")
    narrow = array.astype(np.int32)
    if not np.array_equal(narrow, array):
        raise SplitError("`remap` must fit int32: a table holds at most 2**31 rows.")
    return narrow


def _check_arguments(
    rows: NDArray[Any], remap: NDArray[np.int32], vocabulary: Sequence[str] | None, padding: int | None
) -> None:
    if rows.ndim != 2 or rows.dtype.kind not in "fiu":
        raise SplitError(f"`vectors` must be real numbers (num_trainable, dim); found {rows.dtype} {rows.shape}.")
    fault = _fault_of_remap(remap, len(rows))
    if fault:
        raise SplitError(fault)
    if vocabulary is not None and len(vocabulary) != len(remap):
        raise SplitError(f"`vocabulary` must have one token for each id: {len(vocabulary)} tokens, {len(remap)} ids.")
    if padding is not None and not 0 <= padding < len(remap):
        raise SplitError(f"`padding` must be an id from 0 to {len(remap) - 1}; found {padding}.")


def _fault_of_remap(remap: NDArray[np.int32], num_trainable: int) -> str:
    if remap.min(initial=0) >= -num_trainable:
        return ""
    token_id = int(np.argmax(remap < -num_trainable))
    return f"`remap[{token_id}]` names trainable row {~int(remap[token_id])}; there are {num_trainable} of them."


def open_trainable(path: PathLike, *, verify: bool = False) -> TrainableTable:
    """Opens a trainable.h5: its rows are mapped where they lie plain in the file, and read otherwise.

    No handle stays open. The map shows the file as it was opened, also after `path` is replaced or deleted.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "trainable.h5"
    ...     fingerprint = write_trainable(path, [[0.5]], [~0, 0], padding=1, frozen_fingerprint="sha256:...")
    ...     table = open_trainable(path, verify=True)
    >>> table.vectors.dtype.name, table.padding, table.vocabulary, table.fingerprint == fingerprint
    ('float32', 1, None, True)

    Args:
        path: the file.
        verify: also read the vocabulary now, and compare the fingerprints of everything.

    Returns:
        The table; its remap is read into memory.

    Raises:
        TableFormatError: a file that is foreign, cut short, damaged, too new, or being written.
    """
    with files.reading(path, TRAINABLE_FORMAT) as file:
        rows = contents.dataset(file, "vectors", (np.dtype(np.float32),), 2)
        vectors, mapped = map_or_read(file, rows, _MAPPED_FILES_CAN_BE_REPLACED, scattered=False)
        remap = read(contents.dataset(file, "remap", (np.dtype(np.int32),), 1))
        fault = _fault_of_remap(remap, len(vectors))
        if fault:
            raise contents.damaged(file, fault)
        if verify:
            _verify(file, vectors, remap)
        return TrainableTable(
            vectors,
            as_read_only(remap),
            vocabulary=open_words(file, "vocabulary", len(remap), verify),
            padding=contents.index_attribute(file, "padding", len(remap)),
            path=Path(path).absolute(),
            mapped=mapped,
            **{name: contents.text_attribute(file, name) for name in _TEXT_ATTRIBUTES},
        )


_TEXT_ATTRIBUTES = ("fingerprint", "remap_fingerprint", "vocabulary_fingerprint", "frozen_fingerprint", "frozen_path")


def _verify(file: h5py.File, vectors: NDArray[np.float32], remap: NDArray[np.int32]) -> None:
    contents.check_fingerprint(file, "fingerprint", fingerprint_rows(vectors))
    contents.check_fingerprint(file, "remap_fingerprint", fingerprint_remap(remap))
