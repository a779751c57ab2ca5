"""The static form of the lookup: shapes follow from those of the ids alone, for XLA, exports, JAX and PyTorch.

Two clamped gathers, one from each table, and a three-way choice give the rows. An invalid id gets a row of NaN where
nothing can be raised: loud, and never the vector of another token.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from splitembed.errors import SplitError
from splitembed.lookup.backend import Combiner, Tables
from splitembed.lookup.id_checks import is_float, refusal_of_dtype

_BACKEND = keras.backend.backend()
_WIDER = {"int8": "int32", "uint8": "int32", "int16": "int32", "uint16": "int32", "int32": "int32"}


def look_up_fixed(ids: Any, tables: Tables, trainable: Any, dropped: Any = None) -> Any:
    """Return one row for each id.

    Args:
        ids: a tensor of any dtype and shape; floats must be whole, and their dtype exact for every id.
        tables: the remap and the frozen rows.
        trainable: float32 `(num_trainable, dim)`, a tensor of the backend.
        dropped: None, or bool `ids.shape`: where a trainable row is replaced by zeros.

    Returns:
        `ids.shape + (dim,)` float32; NaN where an id is out of range, has a fraction, or is of a dtype that rounds ids.
    """
    ids, is_id = _narrowed(ids, tables.num_tokens)
    rows = ops.take(tables.read_remap(), ids, axis=0)
    if tables.num_frozen == 0:
        # LiteRT has no ~
        values = _without(dropped, ops.take(trainable, -1 - rows, axis=0))
    elif trainable.shape[0] == 0:
        values = tables.read(rows)
    else:
        learned = _without(dropped, ops.take(trainable, ops.maximum(-1 - rows, 0), axis=0))
        values = ops.where(ops.expand_dims(rows < 0, -1), learned, tables.read(ops.maximum(rows, 0)))
    # not full_like: tf2onnx multiplies by zeros and ones instead of choosing, unless it finds the constant NaN itself
    return ops.where(ops.expand_dims(is_id, -1), values, ops.convert_to_tensor(np.float32(np.nan)))


def _without(dropped: Any, rows: Any) -> Any:
    """Return rows with zeros where they are dropped: chosen, not multiplied, so that NaN and gradients stop there."""
    return rows if dropped is None else ops.where(ops.expand_dims(dropped, -1), ops.zeros_like(rows), rows)


def combine_fixed(rows: Any, ids: Any, weights: Any, combiner: Combiner, mask_zero: bool) -> Any:
    """Sum rows along the last axis of the ids, and divide by the combiner's divisor, as `bags.combine` does.

    Args:
        rows: float32 `ids.shape + (dim,)`.
        ids: `(..., length)`.
        weights: None, or numbers of the shape of the ids.
        combiner: "sum" divides by 1, "mean" by the sum of weights, "sqrtn" by the root of the sum of their squares.
        mask_zero: whether to leave id 0 out.

    Returns:
        float32 `ids.shape[:-1] + (dim,)`; zero where the divisor is zero.
    """
    ones = ops.ones_like(ids, dtype="float32")
    weights = ones if weights is None else ops.cast(weights, "float32")
    if mask_zero:
        weights = ops.where(ids == 0, ops.zeros_like(weights), weights)
    total = ops.sum(rows * ops.expand_dims(weights, -1), axis=-2)
    if combiner == "sum":
        return total
    divisor = ops.sum(weights if combiner == "mean" else ops.square(weights), axis=-1, keepdims=True)
    divisor = divisor if combiner == "mean" else ops.sqrt(divisor)
    is_zero = divisor == 0
    return ops.where(is_zero, ops.zeros_like(total), total / ops.where(is_zero, ops.ones_like(divisor), divisor))


def check_weights_shape(weights: tuple[int | None, ...], ids: tuple[int | None, ...]) -> None:
    """Refuse weights that cannot have the shape of the ids, as far as both shapes are known.

    Raises:
        SplitError: the shapes differ.
    """
    pairs = zip(weights, ids, strict=False)
    alike = len(weights) == len(ids) and all(None in pair or pair[0] == pair[1] for pair in pairs)
    if not alike:
        raise SplitError(f"`weights` must have the shape of the ids, {ids}. Received: shape {weights}.")


def _narrowed(ids: Any, num_tokens: int) -> tuple[Any, Any]:
    """Return ids that are safe to gather by, in `0 <= id < num_tokens`, and which of them were valid."""
    dtype = keras.backend.standardize_dtype(ids.dtype)
    if is_float(dtype):
        wide = ops.cast(ids, "int32")
        # a float that int32 cannot hold becomes some integer, which is not equal to it
        is_id = ops.cast(wide, dtype) == ids
        if refusal_of_dtype(dtype, num_tokens):
            is_id = ops.zeros_like(is_id)
    else:
        # JAX has no int64 by default, and compares unsigned ids; elsewhere uint64 ids that become negative are invalid
        widest = dtype if _BACKEND == "jax" else "int64"
        wide = ops.cast(ids, _WIDER.get(dtype, widest))
        is_id = ops.ones_like(wide, dtype="bool")
    clamped = ops.clip(wide, 0, num_tokens - 1)
    # tf2onnx would compare by < as float32, which rounds
    is_id = ops.logical_and(is_id, clamped == wide)
    return ops.cast(clamped, "int32"), is_id
