"""Writing a trainable.h5."""

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

# Readers of older versions would ignore a second table.
_VERSION_WITH_REVERSE = 3
# Number of tokens. For fewer, the metadata of chunks costs as much as compression saves.
_LEAST_COMPRESSED = 4096
# Share of tokens with the row after that of the token before; above it, gzip saves nine tenths or more.
_LEAST_STEPS = 0.9


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
    """Write a trainable.h5.

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
        path: the file to make or replace, in one step.
        vectors: `(num_trainable, dim)`; stored as float32.
        remap: `(num_tokens,)` integers: `>= 0` is a row of the frozen table, `< 0` is row `~remap[id]` of `vectors`.
        vocabulary: the tokens in id order, or None.
        padding: the padding id, or None.
        frozen_fingerprint: of the frozen table that `remap` points into.
        frozen_path: the path of that table; "" if it is beside `path`.
        reverse: the table of the logits, if weights are not tied, with the same tokens and dim: its `vectors`, `remap`,
            `padding` and `frozen_fingerprint` are written.

    Returns:
        The fingerprint of the trainable rows.

    Raises:
        SplitError: arguments that do not match.
        VocabularyError: a token that cannot be stored.
    """
    table = _checked(TrainableTable(np.asarray(vectors), np.asarray(remap), frozen_fingerprint, padding=padding))
    if vocabulary is not None and len(vocabulary) != len(table.remap):
        found = f"{len(vocabulary)} tokens, {len(table.remap)} ids"
        raise SplitError(f"`vocabulary` must have one token for each id. Received: {found}.")
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
    """Return the table with float32 rows and an int32 remap, after checking that they match."""
    rows, remap = table.vectors, _remap_array(table.remap)
    if rows.ndim != 2 or rows.dtype.kind not in "fiu":
        raise SplitError(f"`vectors` must be real numbers (num_trainable, dim). Received: {rows.dtype} {rows.shape}.")
    fault = fault_of_remap(remap, len(rows))
    if fault:
        raise SplitError(fault)
    if table.padding is not None and not 0 <= table.padding < len(remap):
        raise SplitError(f"`padding` must be an id from 0 to {len(remap) - 1}. Received: {table.padding}.")
    return dataclasses.replace(table, vectors=encode_rows(rows, "float32")[0], remap=remap)


def _checked_reverse(reverse: TrainableTable, table: TrainableTable) -> TrainableTable:
    checked = _checked(reverse)
    (num_tokens, dim), (expected, expected_dim) = (
        (len(each.remap), each.vectors.shape[1]) for each in (checked, table)
    )
    if (num_tokens, dim) != (expected, expected_dim):
        raise SplitError(
            f"`reverse` must have {expected} tokens and dim {expected_dim}, as `vectors`. Received: "
            f"{num_tokens} tokens and dim {dim}."
        )
    return checked


def _remap_array(array: NDArray[Any]) -> NDArray[np.int32]:
    if not array.size:
        array = array.astype(np.int32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise SplitError(f"`remap` must be integers (num_tokens,). Received: {array.dtype} {array.shape}.")
    narrow = array.astype(np.int32, copy=False)
    if not np.array_equal(narrow, array):
        raise SplitError("`remap` must fit int32, as a table has at most 2**31 rows. Received: larger numbers.")
    return narrow


def _store(file: h5py.File, table: TrainableTable, of: str) -> str:
    """Write rows, remap and padding, under names with the given prefix."""
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
    """Return whether most tokens have the row after that of the token before, as with the table of a base model."""
    blocks = row_blocks(len(remap), remap.dtype.itemsize)
    num_steps = sum(int(np.count_nonzero(np.diff(remap[block]) == 1)) for block in blocks)
    return len(remap) >= _LEAST_COMPRESSED and num_steps >= _LEAST_STEPS * len(remap)
