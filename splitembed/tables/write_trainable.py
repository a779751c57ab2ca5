"""Writing a trainable.h5."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed.arrays import ALIGNMENT
from splitembed.errors import SplitError
from splitembed.tables.fields import TRAINABLE_FORMAT, PathLike
from splitembed.tables.fingerprints import Fingerprint, describe_rows
from splitembed.tables.read_trainable import REVERSE, TrainableTable
from splitembed.tables.remap import fault_of_remap, store_remap
from splitembed.tables.storage import encode_rows
from splitembed.tables.stored_words import store_words
from splitembed.tables.write_table import TableWriter, publishing


def write_trainable(
    path: PathLike,
    vectors: ArrayLike,
    remap: ArrayLike,
    *,
    vocabulary: Sequence[str] | None = None,
    padding: int | None = None,
    frozen_fingerprint: str,
    frozen_path: str = "",
    owned_frozen: Sequence[str] = (),
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
        owned_frozen: fingerprints of the frozen tables beside `path` that go when another split is saved there.
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
    texts = {"frozen_path": frozen_path, "owned_frozen": " ".join(owned_frozen)}
    with publishing(path, TRAINABLE_FORMAT, alignment=ALIGNMENT, **texts) as writer:
        fingerprint = _store(writer, table, "")
        if other is not None:
            _store(writer, other, REVERSE)
        store_words(writer, "vocabulary", vocabulary)
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


def _store(writer: TableWriter, table: TrainableTable, of: str) -> str:
    """Write rows, remap and padding, under names with the given prefix."""
    group, prefix = (f"{of}/", f"{of}_") if of else ("", "")
    of_rows = Fingerprint()
    writer.array(f"{group}vectors", table.vectors, of_rows)
    fingerprint = of_rows.finish(describe_rows("float32", *table.vectors.shape))
    store_remap(writer, f"{group}remap", prefix, table.remap)
    text = {"fingerprint": fingerprint, "frozen_fingerprint": table.frozen_fingerprint}
    writer.text(**{prefix + name: value for name, value in text.items()})
    if table.padding is not None:
        writer.integer(f"{prefix}padding", table.padding)
    return fingerprint
