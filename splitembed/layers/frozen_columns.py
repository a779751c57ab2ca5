"""The product of hidden states with frozen rows, to the bit as Keras's own layer computes it, and its gradient.

A table and the dtypes of Keras's casts go in. Rows are multiplied where they lie; those that must be cast, where Keras
would make them no wider than they lie, as a whole, as Keras does; others a block at a time.
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from splitembed.lookup.backend import Tables

_BACKEND = keras.backend.backend()
_BLOCK_BYTES = 4 * 2**20  # of frozen rows that are cast a block at a time
_BLOCK_MULTIPLE = 64  # rows: products of blocks come out as those of the whole table


class Dtypes(NamedTuple):
    """What rows are cast to on their way into the product, as Keras's layer casts its variable, one after the other.

    `read` as the variable is read, `kernel` by `reverse_dtype`, `product` as the hidden states need it.
    """

    read: str
    kernel: str
    product: str

    def cast(self, rows: Any) -> Any:
        """Casts rows from float32 to the product's dtype."""
        for dtype in self:
            rows = ops.cast(rows, dtype)
        return rows


class FrozenColumns:
    """The product with the frozen rows: as a whole where Keras's own layer would make them no wider than they lie, and
    otherwise a block at a time.

    XLA rounds blocks in its own way, and gets a table that Keras's layer would widen as a whole from us as well.

    Args:
        tables: what holds the frozen rows, as the backend has them.
        dtypes: of the product.
        all_at_once: whether blocks are out of the question: exporters know no loops.
    """

    def __init__(self, tables: Tables, dtypes: Dtypes, all_at_once: bool = False) -> None:
        self.tables, self.dtypes, self.all_at_once = tables, dtypes, all_at_once
        self.stored = tables.read_stored()
        dtype = keras.backend.standardize_dtype(self.stored.dtype)
        most = _BLOCK_MULTIPLE * -(-_BLOCK_BYTES // (4 * tables.dim * _BLOCK_MULTIPLE))
        is_one, as_keras = tables.num_frozen <= most, _size(dtypes.read) <= _size(dtype)
        is_narrow = len(set(dtypes)) == 1 and as_keras
        self.is_whole = dtype != "int8" and (is_narrow or (not all_at_once and (is_one or (as_keras and in_xla()))))
        self.length = tables.num_frozen if is_one or all_at_once or self.is_whole else most
        self.num_blocks = -(-tables.num_frozen // self.length)

    def multiply(self, states: Any) -> Any:
        """Hidden states `(..., dim)` in, of any rank, as Keras's layer has them; `(..., num_frozen)` out."""
        if self.num_blocks == 1:
            return ops.matmul(states, self._columns(0))
        products = ops.map(
            lambda number: ops.matmul(states, self._columns(number)), ops.arange(self.num_blocks, dtype="int32")
        )
        products = ops.moveaxis(products, 0, -2)
        columns = ops.reshape(products, (*ops.shape(products)[:-2], self.num_blocks * self.length))
        return columns[..., : self.tables.num_frozen]  # the last block repeats the last row

    def multiply_back(self, upstream: Any, without_chosen: bool) -> Any:
        """The gradient of `multiply` by the hidden states: `(num_states, num_frozen)` in, `(num_states, dim)` out.

        Args:
            upstream: the gradient of the columns.
            without_chosen: whether those of tokens that train do not count, whatever numbers their frozen rows hold.
        """
        if self.num_blocks == 1:
            return ops.matmul(upstream, self._rows(0, without_chosen))
        width = self.num_blocks * self.length
        padded = ops.pad(upstream, ((0, 0), (0, width - self.tables.num_frozen)))
        blocks = ops.reshape(padded, (-1, self.num_blocks, self.length))
        return ops.fori_loop(
            0,
            self.num_blocks,
            lambda number, total: (
                total + ops.matmul(ops.take(blocks, number, axis=1), self._rows(number, without_chosen))
            ),
            ops.zeros((ops.shape(upstream)[0], self.tables.dim), self.dtypes.product),
        )

    def _columns(self, number: Any) -> Any:
        """`(dim, length)` in the product's dtype, by the very operations of Keras's layer."""
        lying = self._lying(number)
        columns = lying if self.tables.transposed else ops.transpose(lying)
        return ops.cast(ops.cast(columns, self.dtypes.kernel), self.dtypes.product)

    def _rows(self, number: Any, without_chosen: bool) -> Any:
        """`(length, dim)` in the product's dtype."""
        lying = self._lying(number)
        rows = ops.cast(ops.transpose(lying) if self.tables.transposed else lying, self.dtypes.product)
        if not without_chosen:
            return rows
        is_frozen = ops.take(self.tables.read_remap(), self._numbers(number), axis=0) >= 0
        return ops.where(ops.expand_dims(is_frozen, -1), rows, ops.zeros_like(rows))

    def _lying(self, number: Any) -> Any:
        """Frozen rows as they lie, in the dtype that they are read in."""
        return ops.cast(self.stored if self.is_whole else self.tables.gather(self._numbers(number)), self.dtypes.read)

    def _numbers(self, number: Any) -> Any:
        """Of the rows of a block."""
        return ops.minimum(number * self.length + ops.arange(self.length, dtype="int32"), self.tables.num_frozen - 1)


def in_xla() -> bool:
    """Whether XLA compiles what is being traced."""
    if _BACKEND != "tensorflow":
        return bool(_BACKEND == "jax")
    from splitembed.lookup import context

    return context.in_xla()


def _size(dtype: str) -> int:
    """Bytes of a number."""
    return {"float16": 2, "bfloat16": 2, "float32": 4}.get(dtype, 8)
