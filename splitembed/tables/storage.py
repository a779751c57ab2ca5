"""Storage of frozen rows: the precisions in which float32 rows can be kept, each one entry of `STORAGES`.

An array of stored rows says by its NumPy dtype how it is stored, so every storage has a NumPy dtype of its own: NumPy
has no bfloat16, so uint16 means the upper halves of float32 numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from splitembed.errors import SplitError

Rows = NDArray[np.float32]
Scale = NDArray[np.float32]
Stored = tuple[NDArray[Any], Scale | None]
_SCALE_BYTES = 4


def _encode_bfloat16(rows: Rows) -> Stored:
    """Round to nearest, ties to even; a NaN stays a NaN: its upper half alone could read as infinity."""
    bits = np.ascontiguousarray(rows).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.where(np.isnan(rows), quiet, rounded).astype(np.uint16), None


def _decode_bfloat16(stored: NDArray[Any], scale: Scale | None) -> Rows:
    return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _encode_int8(rows: Rows) -> Stored:
    """Divide each row by its largest magnitude over 127."""
    scale = (np.abs(rows).max(axis=1, initial=0) / np.float32(127)).astype(np.float32)
    steps = np.rint(rows / np.where(scale > 0, scale, np.float32(1))[:, None])
    return np.clip(steps, -127, 127).astype(np.int8), scale


def _decode_int8(stored: NDArray[Any], scale: Scale | None) -> Rows:
    rows = stored.astype(np.float32)
    return rows if scale is None else rows * scale[..., None]


def _as_float16(rows: Rows) -> Stored:
    return rows.astype(np.float16), None


def _as_float32(stored: NDArray[Any], scale: Scale | None = None) -> Rows:
    return stored.astype(np.float32, copy=False)


@dataclass(frozen=True)
class Storage:
    """One way to store float32 rows.

    >>> STORAGES["int8"].num_bytes, STORAGES["int8"].table_bytes(num_rows=10, dim=50)
    (1, 540)
    >>> STORAGES["int8"].decode(np.array([[2, 4]], np.int8), np.array([0.5], np.float32)).tolist()
    [[1.0, 2.0]]

    Layers read rows as numbers of the dtype `name`, cast them to float32, and multiply them by the scale.

    Args:
        name: as users name it, and as Keras names the dtype of a weight that holds such rows.
        stored_dtype: NumPy dtype of the stored numbers.
        encode: rounds float32 rows `(num_rows, dim)`; returns them as `stored_dtype`, with their scale or None.
        decode: widens stored rows `(..., dim)`, with their scale `(...,)` or None, to float32 exactly.
        has_scale: whether each row has a float32 scale.
        only_finite: whether infinity and NaN cannot be stored.
    """

    name: str
    stored_dtype: np.dtype[Any]
    encode: Callable[[Rows], Stored]
    decode: Callable[[NDArray[Any], Scale | None], Rows]
    has_scale: bool = False
    only_finite: bool = False

    @property
    def num_bytes(self) -> int:
        """Bytes of one stored number."""
        return self.stored_dtype.itemsize

    @property
    def is_numpy_float(self) -> bool:
        """Whether the stored numbers are floats of NumPy, so that an array of them needs no other description."""
        return self.stored_dtype.kind == "f"

    @property
    def is_bit_pattern(self) -> bool:
        """Whether `stored_dtype` holds the bits of `name`, a dtype that NumPy lacks."""
        return self.stored_dtype.name != self.name

    def table_bytes(self, num_rows: int, dim: int) -> int:
        """Return the bytes of a table, scales included."""
        return num_rows * (dim * self.num_bytes + _SCALE_BYTES * self.has_scale)


STORAGES = {
    each.name: each
    for each in (
        Storage("float32", np.dtype(np.float32), lambda rows: (rows, None), _as_float32),
        Storage("float16", np.dtype(np.float16), _as_float16, _as_float32),
        Storage("bfloat16", np.dtype(np.uint16), _encode_bfloat16, _decode_bfloat16),
        Storage("int8", np.dtype(np.int8), _encode_int8, _decode_int8, has_scale=True, only_finite=True),
    )
}
FLOAT32 = STORAGES["float32"]


def storage_named(name: str) -> Storage:
    """Return the storage of a name.

    >>> storage_named("bfloat16").stored_dtype.name
    'uint16'

    Raises:
        SplitError: an unknown name.
    """
    if name not in STORAGES:
        raise SplitError(f"`dtype` must be one of {', '.join(STORAGES)}. Received: {name!r}.")
    return STORAGES[name]


def storage_of(dtype: DTypeLike) -> Storage:
    """Return the storage of rows in an array of this NumPy dtype.

    >>> storage_of(np.float32).name, storage_of(">f4").name, storage_of(np.uint16).name
    ('float32', 'float32', 'bfloat16')

    Args:
        dtype: of an array of stored rows, in either byte order.

    Raises:
        SplitError: a dtype in which no rows are stored.
    """
    native = np.dtype(dtype).newbyteorder("=")
    for storage in STORAGES.values():
        if storage.stored_dtype == native:
            return storage
    raise SplitError(f"Rows cannot be stored as {native}. Convert them to one of {', '.join(STORAGES)}.")


def encode_rows(rows: NDArray[Any], dtype: str, first_row: int = 0) -> Stored:
    """Round rows to the precision in which they are stored.

    >>> stored, scale = encode_rows(np.array([[0.5, -1.27]], np.float32), "int8")
    >>> stored.tolist(), scale.tolist() == [np.float32(1.27) / np.float32(127)]
    ([[50, -127]], True)

    Args:
        rows: `(num_rows, dim)` real numbers.
        dtype: name of a storage.
        first_row: number of the first row in its table, for messages.

    Returns:
        The stored rows `(num_rows, dim)`, and their float32 scale `(num_rows,)` or None.

    Raises:
        SplitError: a number that the storage cannot hold.
    """
    storage = storage_named(dtype)
    # Numbers that overflow are found below, with their position.
    with np.errstate(over="ignore", invalid="ignore"):
        stored, scale = storage.encode(rows.astype(np.float32, copy=False))
        is_kept = np.isfinite(storage.decode(stored, scale))
    lost = ~np.isfinite(rows) if storage.only_finite else ~is_kept & np.isfinite(rows)
    if lost.any():
        row, column = (int(index[0]) for index in np.nonzero(lost))
        raise SplitError(
            f"Row {first_row + row}, column {column} holds {rows[row, column]!s}, which {dtype} cannot hold. "
            "Store float32, or fix the row."
        )
    return stored, scale
