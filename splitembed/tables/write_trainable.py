"""trainable.h5 written: trainable rows, remap and vocabulary enter; a file that appears whole leaves."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed.arrays import ALIGNMENT
from splitembed.errors import SplitError
from splitembed.tables import atomic_files as files
from splitembed.tables import fields as contents
from splitembed.tables.fields import TRAINABLE_FORMAT, PathLike
from splitembed.tables.fingerprints import Fingerprint, describe_rows, row_blocks
from splitembed.tables.read_trainable import REVERSE, TrainableTable, fault_of_remap
from splitembed.tables.spool import store_array
from splitembed.tables.storage import encode_rows
from splitembed.tables.stored_words import store_words

_VERSION_WITH_REVERSE = 3  # readers before it knew no second table, and would have left it out
_LEAST_COMPRESSED = 4096  # tokens: below, what HDF5 writes beside chunks costs as much as they save
_LEAST_STEPS = 0.9  # of 1, from a token's row to the next one's: then gzip takes nine tenths off or more


def write_trainable(
    path: PathLike,
    vectors: ArrayLike,
    remap: ArrayLike,
    *,
    vocabulary: Sequence[str] | None = None,
    padding: int | None = None,
    frozen_fingerprint: str,
    frozen_path: str = "",
    reverse: TrainableTable | None = None,
) -> str:
    """Writes a trainable.h5.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from splitembed.tables import open_trainable
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
        reverse: what the logits train, where weights are not tied: of a table, its `vectors`, `remap`, `padding` and
            `frozen_fingerprint`, for as many tokens and of the same dim.

    Returns:
        The fingerprint of the trainable rows.

    Raises:
        SplitError: arguments that do not fit together.
        VocabularyError: a token that cannot be stored.
    """
    table = _checked(TrainableTable(np.asarray(vectors), np.asarray(remap), frozen_fingerprint, padding=padding))
    if vocabulary is not None and len(vocabulary) != len(table.remap):
        fault = f"{len(vocabulary)} tokens, {len(table.remap)} ids"
        raise SplitError(f"`vocabulary` must have one token for each id: {fault}.")
    other = None if reverse is None else _checked_reverse(reverse, table)
    version = 1 if other is None else _VERSION_WITH_REVERSE
    with files.publishing(path, TRAINABLE_FORMAT, alignment=ALIGNMENT, version=version) as file:
        contents.store_text(file, frozen_path=frozen_path)
        fingerprint = _store(file, table, "")
        if other is not None:
            _store(file, other, REVERSE)
        store_words(file, "vocabulary", vocabulary)
    return fingerprint


def _checked(table: TrainableTable) -> TrainableTable:
    """The table with its rows as float32 and its remap as int32, once they fit together."""
    rows, remap = table.vectors, _remap_array(table.remap)
    if rows.ndim != 2 or rows.dtype.kind not in "fiu":
        raise SplitError(f"`vectors` must be real numbers (num_trainable, dim); found {rows.dtype} {rows.shape}.")
    fault = fault_of_remap(remap, len(rows))
    if fault:
        raise SplitError(fault)
    if table.padding is not None and not 0 <= table.padding < len(remap):
        raise SplitError(f"`padding` must be an id from 0 to {len(remap) - 1}; found {table.padding}.")
    return dataclasses.replace(table, vectors=encode_rows(rows, "float32")[0], remap=remap)


def _checked_reverse(reverse: TrainableTable, table: TrainableTable) -> TrainableTable:
    checked = _checked(reverse)
    (num_tokens, dim), (expected, expected_dim) = (
        (len(each.remap), each.vectors.shape[1]) for each in (checked, table)
    )
    if (num_tokens, dim) != (expected, expected_dim):
        raise SplitError(
            f"`reverse` must have the {expected} tokens and the dim of {expected_dim} of the rows beside it; found "
            f"{num_tokens} tokens and a dim of {dim}."
        )
    return checked


def _remap_array(array: NDArray[Any]) -> NDArray[np.int32]:
    if not array.size:
        array = array.astype(np.int32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise SplitError(f"`remap` must be integers (num_tokens,); found {array.dtype} {array.shape}.")
    narrow = array.astype(np.int32, copy=False)
    if not np.array_equal(narrow, array):
        raise SplitError("`remap` must fit int32: a table holds at most 2**31 rows.")
    return narrow


def _store(file: h5py.File, table: TrainableTable, of: str) -> str:
    """Writes rows, remap and padding under their plain names, or under those that begin with `reverse`."""
    group, prefix = (f"{of}/", f"{of}_") if of else ("", "")
    of_rows, of_remap = Fingerprint(), Fingerprint()
    store_array(file, f"{group}vectors", table.vectors, of_rows)
    store_array(file, f"{group}remap", table.remap, of_remap, compressed=_is_nearly_a_ramp(table.remap))
    fingerprint = of_rows.finish(describe_rows("float32", *table.vectors.shape))
    text = {
        "fingerprint": fingerprint,
        "remap_fingerprint": of_remap.finish(),
        "frozen_fingerprint": table.frozen_fingerprint,
    }
    contents.store_text(file, **{prefix + name: value for name, value in text.items()})
    if table.padding is not None:
        file.attrs[f"{prefix}padding"] = table.padding
    return fingerprint


def _is_nearly_a_ramp(remap: NDArray[np.int32]) -> bool:
    """Whether tokens mostly have one row after the other, as where a base's table is the frozen one."""
    blocks = row_blocks(len(remap), remap.dtype.itemsize)
    num_steps = sum(int(np.count_nonzero(np.diff(remap[block]) == 1)) for block in blocks)
    return len(remap) >= _LEAST_COMPRESSED and num_steps >= _LEAST_STEPS * len(remap)
