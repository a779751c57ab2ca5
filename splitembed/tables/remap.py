"""The remap in a trainable.h5: all of its numbers, or only where it is not a ramp.

In a ramp each token has the row after that of the token before it, in the same table: 5, 6, 7 or -1, -2, -3. The remap
of a few new tokens on the table of a base model is a few ramps, which take kilobytes where all numbers take megabytes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import as_read_only
from splitembed.tables.fields import damaged
from splitembed.tables.fingerprints import fingerprint_remap, row_blocks
from splitembed.tables.table_file import TableFile
from splitembed.tables.write_table import TableWriter

# Ramps need twice the bytes of a number each. Longer remaps are stored as they are, so that a small file never asks for
# more memory than this.
_LEAST_SHORTER, _MOST_TOKENS = 4, 1 << 22
_INT32 = (np.dtype(np.int32),)


def store_remap(writer: TableWriter, name: str, prefix: str, remap: NDArray[np.int32]) -> None:
    """Write a remap and its fingerprint.

    Args:
        writer: of the file.
        name: of its array, or of the group of its ramps.
        prefix: of its attributes.
        remap: int32 `(num_tokens,)`.
    """
    starts = ramp_starts(remap)
    if _LEAST_SHORTER * len(starts) <= len(remap) <= _MOST_TOKENS and len(remap):
        writer.integer(f"{prefix}num_tokens", len(remap))
        writer.array(f"{name}/starts", starts.astype(np.int32))
        writer.array(f"{name}/rows", remap[starts])
    else:
        writer.array(name, remap)
    writer.text(**{f"{prefix}remap_fingerprint": fingerprint_remap(remap)})


def open_remap(file: TableFile, name: str, prefix: str, num_trainable: int) -> NDArray[np.int32]:
    """Read a remap, after checking that it names no trainable row that is missing.

    Args:
        file: the open file.
        name: of its array, or of the group of its ramps.
        prefix: of its attributes.
        num_trainable: number of trainable rows.
    """
    if f"{name}/starts" not in file:
        remap = file.array(name, _INT32, 1)[0]
    else:
        remap = _of_ramps(file, name, prefix, num_trainable)
    fault = fault_of_remap(remap, num_trainable, name)
    if fault:
        raise damaged(file.name, fault)
    return remap


def _of_ramps(file: TableFile, name: str, prefix: str, num_trainable: int) -> NDArray[np.int32]:
    num_tokens = file.integer(f"{prefix}num_tokens")
    starts, rows = (file.array(f"{name}/{part}", _INT32, 1)[0].astype(np.int64) for part in ("starts", "rows"))
    file.check_length(f"{name}/rows", len(rows), len(starts))
    if not 0 < num_tokens <= _MOST_TOKENS:
        what = f"its attribute `{prefix}num_tokens` is {num_tokens}; expected 1 to {_MOST_TOKENS}."
        raise damaged(file.name, what)
    lengths = np.diff(starts, append=num_tokens)
    if not len(starts) or starts[0] != 0 or lengths.min() < 1:
        raise damaged(file.name, f"`{name}/starts` must rise from 0 and stay below {num_tokens}.")
    steps = np.where(rows >= 0, 1, -1)
    ends = rows + steps * (lengths - 1)
    if ends.max() >= 1 << 31 or ends.min() < -num_trainable:
        raise damaged(file.name, f"`{name}/rows` names a row that does not exist.")
    return as_read_only(_joined(steps, ends, lengths, rows))


def _joined(
    steps: NDArray[np.int64], ends: NDArray[np.int64], lengths: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Return ramps one after the other, as the running sum of their steps."""
    changes = np.repeat(steps.astype(np.int32), lengths)
    first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    # Wraps around where a row of 2**31 is left for a trainable one, and back in the sum.
    changes[first] = (rows - np.concatenate([[0], ends[:-1]])).astype(np.int32)
    return np.cumsum(changes, dtype=np.int32, out=changes)


def ramp_starts(remap: NDArray[np.int32]) -> NDArray[Any]:
    """Return the ids whose row is not the one after that of the token before, in the same table.

    >>> ramp_starts(np.array([0, 1, 2, -1, -2, 3, 4], np.int32)).tolist()
    [0, 3, 5]
    """
    starts = [np.zeros(min(len(remap), 1), np.intp)]
    for block in row_blocks(max(len(remap) - 1, 0), 8 * remap.itemsize):
        before, after = remap[block], remap[block.start + 1 : block.stop + 1]
        step = np.where(before >= 0, 1, -1)
        # In int64, because the row after the largest is none.
        goes_on = (after.astype(np.int64) - before == step) & ((after >= 0) == (before >= 0))
        starts.append(np.flatnonzero(~goes_on) + (block.start + 1))
    return np.concatenate(starts)


def fault_of_remap(remap: NDArray[np.int32], num_trainable: int, name: str = "remap") -> str:
    """Return which entry of a remap names a missing trainable row; "" if there is none."""
    if remap.min(initial=0) >= -num_trainable:
        return ""
    token_id = int(np.argmax(remap < -num_trainable))
    return f"`{name}[{token_id}]` is trainable row {~int(remap[token_id])}; expected less than {num_trainable}."
