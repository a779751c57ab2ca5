"""The static form of the lookup: shapes follow from the ids' shape alone, for XLA, exports, JAX and PyTorch.

Ids go in; two clamped gathers, one from each table, and a three-way choice give the rows. An id that is none gets a row
of NaN where nothing can be raised: loud, and never another token's vector.
"""

from functools import cached_property
from typing import Any, Literal, Protocol

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from splitembed.errors import SplitError, TokenIdError
from splitembed.lookup.id_dtypes import is_float, not_whole, refusal_of_dtype
from splitembed.split.id_order import Order, order_of
from splitembed.split.table import SplitTable
from splitembed.tables import decode_rows
from splitembed.vocabulary import out_of_range

_BACKEND = keras.backend.backend()
_WIDER = {"int8": "int32", "uint8": "int32", "int16": "int32", "uint16": "int32", "int32": "int32"}


class Tables(Protocol):
    """What a lookup reads and no training changes: the remap, and frozen rows widened to float32."""

    num_tokens: int
    num_frozen: int
    dim: int
    turned: bool  # whether the frozen rows lie as columns

    @property
    def order(self) -> Order | None:
        """What trains, where the frozen rows are in id order."""

    def read_remap(self) -> Any:
        """int32 `(num_tokens,)`."""

    def read_stored(self) -> Any:
        """The frozen rows where they lie, as they are stored: `(num_frozen, dim)`, or if turned `(dim, num_frozen)`."""

    def read(self, rows: Any) -> Any:
        """Gathers frozen rows, `rows.shape + (dim,)`, widened to float32."""

    def gather(self, rows: Any) -> Any:
        """As `read`, but if turned `(dim,) + rows.shape`."""


class WeightTables:
    """Tables as weights of a layer that no training changes and no weights file holds: on JAX and PyTorch, whose
    compiled programs would have a mere array baked in.

    Args:
        layer: the layer, while it is being built. If it `is_turned`, the frozen rows are to lie as columns,
            `(dim, num_frozen)`: for a table that is only multiplied.
        num_tokens, num_frozen: sizes of the tables.
        frozen_dtype: what the frozen rows are stored in, as `SplitTable.frozen_dtype`.
    """

    def __init__(self, layer: keras.layers.Layer, num_tokens: int, num_frozen: int, frozen_dtype: str) -> None:
        self.num_tokens, self.num_frozen, self.dim = num_tokens, num_frozen, layer.output_dim
        self.turned, self._split = getattr(layer, "is_turned", False), None  # type: bool, Any
        options = {"initializer": "zeros", "trainable": False, "autocast": False}
        shape = (self.dim, num_frozen) if self.turned else (num_frozen, self.dim)
        self._remap = layer.add_weight(name="remap", shape=(num_tokens,), dtype="int32", **options)
        self._frozen = layer.add_weight(name="frozen", shape=shape, dtype=frozen_dtype, **options)
        self._scale = None
        if frozen_dtype == "int8":
            self._scale = layer.add_weight(name="scale", shape=(num_frozen,), dtype="float32", **options)

    def fill(self, split: SplitTable) -> None:
        """Copies the split's tables into the weights."""
        is_narrow = split.frozen_dtype == "bfloat16"  # stored as uint16, which the weight is not
        rows = decode_rows(split.frozen) if is_narrow else split.frozen
        self._split = split
        self._remap.assign(split.remap)
        self._frozen.assign(rows.T if self.turned else rows)
        if self._scale is not None:
            self._scale.assign(split.scale)

    @cached_property
    def order(self) -> Order | None:
        """What trains, where the frozen rows are in id order; it is asked for once they are filled in."""
        return order_of(self._split)

    def read_remap(self) -> Any:
        """int32 `(num_tokens,)`."""
        return self._remap.value

    def read_stored(self) -> Any:
        """The frozen rows where they lie, as they are stored: `(num_frozen, dim)`, or if turned `(dim, num_frozen)`."""
        return self._frozen.value

    def read(self, rows: Any) -> Any:
        """Gathers frozen rows, `rows.shape + (dim,)`, widened to float32."""
        values = self.gather(rows)
        return ops.moveaxis(values, 0, -1) if self.turned else values

    def gather(self, rows: Any) -> Any:
        """As `read`, but if turned `(dim,) + rows.shape`."""
        axis = 1 if self.turned else 0
        values = ops.cast(ops.take(self._frozen.value, rows, axis=axis), "float32")
        if self._scale is None:
            return values
        return values * ops.expand_dims(ops.take(self._scale.value, rows, axis=0), axis - 1)


def look_up_fixed(ids: Any, tables: Tables, trainable: Any, dropped: Any = None) -> Any:
    """Reads one row for each id.

    Args:
        ids: a tensor of any dtype and shape; floats must be whole, and their dtype exact for every id.
        tables: the remap and the frozen rows.
        trainable: float32 `(num_trainable, dim)`, a tensor of the backend.
        dropped: None, or bool `ids.shape`: where a trainable row is replaced by zeros.

    Returns:
        `ids.shape + (dim,)` float32; NaN where an id is out of range, not whole, or of a dtype that rounds ids.
    """
    ids, is_id = _narrowed(ids, tables.num_tokens)
    rows = ops.take(tables.read_remap(), ids, axis=0)
    if tables.num_frozen == 0:
        values = _without(dropped, ops.take(trainable, -1 - rows, axis=0))  # TFLite has no ~
    elif trainable.shape[0] == 0:
        values = tables.read(rows)
    else:
        learned = _without(dropped, ops.take(trainable, ops.maximum(-1 - rows, 0), axis=0))
        values = ops.where(ops.expand_dims(rows < 0, -1), learned, tables.read(ops.maximum(rows, 0)))
    # not full_like: tf2onnx multiplies by zeros and ones instead of choosing, unless it finds the constant NaN itself
    return ops.where(ops.expand_dims(is_id, -1), values, ops.convert_to_tensor(np.float32(np.nan)))


def _without(dropped: Any, rows: Any) -> Any:
    """Rows, zeros where they are dropped: chosen, not multiplied, so that neither they nor their gradient count."""
    return rows if dropped is None else ops.where(ops.expand_dims(dropped, -1), ops.zeros_like(rows), rows)


def combine_fixed(rows: Any, ids: Any, weights: Any, combiner: Literal["mean", "sum", "sqrtn"], mask_zero: bool) -> Any:
    """Sums rows along the last axis of the ids, and divides by what the combiner says, as `bags.combine` does.

    Args:
        rows: float32 `ids.shape + (dim,)`.
        ids: `(..., length)`.
        weights: None, or numbers of the ids' shape.
        combiner: "sum" divides by 1, "mean" by the sum of weights, "sqrtn" by the root of the sum of their squares.
        mask_zero: whether id 0 does not count.

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


def check_layout(weights: tuple[int | None, ...], ids: tuple[int | None, ...]) -> None:
    """Refuses weights that cannot have the shape of the ids, as far as both are known.

    Raises:
        SplitError: the shapes differ.
    """
    pairs = zip(weights, ids, strict=False)
    alike = len(weights) == len(ids) and all(None in pair or pair[0] == pair[1] for pair in pairs)
    if not alike:
        raise SplitError(f"`weights` must have the shape of the ids, {ids}. Received: shape {weights}.")


def _narrowed(ids: Any, num_tokens: int) -> tuple[Any, Any]:
    """Ids that are safe to gather by, in `0 <= id < num_tokens`, and which of them were ids to begin with."""
    dtype = keras.backend.standardize_dtype(ids.dtype)
    if is_float(dtype):
        wide = ops.cast(ids, "int32")
        is_id = ops.cast(wide, dtype) == ids  # what no int32 holds becomes some integer, which is not equal to it
        if refusal_of_dtype(dtype, num_tokens):
            is_id = ops.zeros_like(is_id)
    else:
        widest = dtype if _BACKEND == "jax" else "int64"  # JAX has no int64 by default, and compares unsigned ids
        wide = ops.cast(ids, _WIDER.get(dtype, widest))  # uint64 ids that turn negative are refused as such
        is_id = ops.ones_like(wide, dtype="bool")
    clamped = ops.clip(wide, 0, num_tokens - 1)
    is_id = ops.logical_and(is_id, clamped == wide)  # tf2onnx would compare by < as float32, which rounds
    return ops.cast(clamped, "int32"), is_id


def check_now(ids: Any, num_tokens: int) -> None:
    """Raises for ids that are known while Python runs: arrays, and tensors that nobody is tracing.

    Raises:
        SplitError: a dtype that does not hold every id, or an id that is not whole.
        TokenIdError: an id out of range.
    """
    if not _is_known(ids):
        return
    if refusal := refusal_of_dtype(keras.backend.standardize_dtype(ids.dtype), num_tokens):
        raise SplitError(refusal)
    array = np.asarray(ids if isinstance(ids, np.ndarray) else ops.convert_to_numpy(ids))
    if wrong := _first_wrong(array, num_tokens):
        raise wrong


def _first_wrong(ids: NDArray[Any], num_tokens: int) -> SplitError | TokenIdError | None:
    dtype = keras.backend.standardize_dtype(ids.dtype)
    if is_float(dtype) and (broken := ids[~np.isfinite(ids) | (ids != np.trunc(ids))]).size:
        return SplitError(not_whole(format(float(broken[0]), "g"), dtype, num_tokens))
    outside = ids[(ids < 0) | (ids >= num_tokens)]
    return TokenIdError(out_of_range(int(outside[0]), num_tokens)) if outside.size else None


def _is_known(ids: Any) -> bool:
    """Whether the values are there, or a program is being traced that will run on others."""
    if isinstance(ids, np.ndarray):
        return True
    if _BACKEND == "jax":
        import jax

        return not isinstance(ids, jax.core.Tracer)
    if _BACKEND == "torch":
        import torch

        return ids.device.type != "meta" and not torch.compiler.is_compiling()
    return False
