"""How rows are stored: float32 rows and the name of a dtype enter; rows in that dtype leave, and come back widened.

The array that holds stored rows says by its own dtype what they are: NumPy has no bfloat16, so uint16 always means the
upper half of a float32, and int8 always comes with one float32 scale a row.
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from splitembed.errors import SplitError

STORAGE: dict[str, np.dtype[Any]] = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(np.uint16),
    "int8": np.dtype(np.int8),
}


def dtype_name(dtype: DTypeLike) -> str:
    """Names what rows in an array of this dtype are.

    >>> dtype_name(np.float32), dtype_name(">f4"), dtype_name(np.uint16)
    ('float32', 'float32', 'bfloat16')

    Args:
        dtype: of an array of stored rows, in either byte order.

    Returns:
        "float32", "float16", "bfloat16" or "int8".

    Raises:
        SplitError: any other dtype.
    """
    native = np.dtype(dtype).newbyteorder("=")
    for name, stored in STORAGE.items():
        if stored == native:
            return name
    raise SplitError(f"Rows of dtype {native} cannot be stored; convert them to one of {', '.join(STORAGE)}.")


def encode_rows(rows: NDArray[Any], dtype: str, first_row: int = 0) -> tuple[NDArray[Any], NDArray[np.float32] | None]:
    """Rounds rows to the dtype they are stored in.

    >>> stored, scale = encode_rows(np.array([[0.5, -1.27]], np.float32), "int8")
    >>> stored.tolist(), scale.tolist() == [np.float32(1.27) / np.float32(127)]
    ([[50, -127]], True)

    Args:
        rows: `(num_rows, dim)` real numbers.
        dtype: "float32", "float16", "bfloat16" or "int8".
        first_row: number of the first row in its table, for messages.

    Returns:
        The stored rows `(num_rows, dim)`, and their float32 scale `(num_rows,)` with int8, else None.

    Raises:
        SplitError: a finite number that is too large for the dtype, or one that int8 cannot hold at all.
    """
    if dtype not in STORAGE:
        raise SplitError(f"`dtype` must be one of {', '.join(STORAGE)}; found {dtype!r}.")
    stored: NDArray[Any]
    scale = None
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below, with its place
        exact = rows.astype(np.float32, copy=False)
        if dtype == "bfloat16":
            stored = _encode_bfloat16(exact)
        elif dtype == "int8":
            stored, scale = _encode_int8(exact)
        else:
            stored = exact.astype(STORAGE[dtype], copy=False)
        kept = np.isfinite(decode_rows(stored, scale))
    lost = ~np.isfinite(rows) if dtype == "int8" else ~kept & np.isfinite(rows)
    if lost.any():
        row, column = (int(place[0]) for place in np.nonzero(lost))
        raise SplitError(
            f"Row {first_row + row}, column {column} holds {rows[row, column]!s}, which {dtype} cannot hold. "
            "Store float32, or mend the row."
        )
    return stored, scale


def decode_rows(stored: NDArray[Any], scale: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    """Widens stored rows to float32, exactly.

    >>> decode_rows(np.array([[0x3FC0]], np.uint16)).tolist()  # the upper half of 1.5
    [[1.5]]
    >>> decode_rows(np.array([[2, 4]], np.int8), np.array([0.5], np.float32)).tolist()
    [[1.0, 2.0]]

    Args:
        stored: `(..., dim)` float32, float16, uint16 (bfloat16) or int8.
        scale: float32 `(...,)`, with int8 alone.

    Returns:
        float32 `(..., dim)`; `stored` itself where it is float32 already.
    """
    if dtype_name(stored.dtype) == "bfloat16":
        return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32)
    rows = stored.astype(np.float32, copy=False)
    return rows if scale is None else rows * scale[..., None]


def _encode_bfloat16(rows: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Rounds to nearest, ties to even; a NaN stays one: its upper half alone could read as infinity."""
    bits = np.ascontiguousarray(rows).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.where(np.isnan(rows), quiet, rounded).astype(np.uint16)


def _encode_int8(rows: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Divides each row by its largest magnitude over 127."""
    scale = (np.abs(rows).max(axis=1, initial=0) / np.float32(127)).astype(np.float32)
    steps = np.rint(rows / np.where(scale > 0, scale, np.float32(1))[:, None])
    return np.clip(steps, -127, 127).astype(np.int8), scale
