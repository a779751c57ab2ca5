"""The product of hidden states with the row of every token, and its gradient.

The dense table is never built: rows are multiplied as they are stored, or a block of tokens at a time.
"""

from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from splitembed.lookup.backend import Tables
from splitembed.lookup.context import in_xla
from splitembed.lookup.static import look_up_fixed
from splitembed.split.id_order import Order
from splitembed.split.table import SplitTable

_BACKEND = keras.backend.backend()
# memory of a block of float32 rows
_BLOCK_BYTES = 4 * 2**20
# products of blocks of that many rows have the bits of the product with the whole table
_BLOCK_MULTIPLE = 64
# largest share of the columns that are written into a finished product; otherwise blocks are faster
_FEW = 1 / 8


class Dtypes(NamedTuple):
    """The dtypes that rows are cast to, one after the other, as Keras's layer casts its variable.

    Args:
        read: the dtype in which the autocast scope reads a variable.
        kernel: `reverse_dtype`, or `read` without one.
        product: the common dtype of the kernel and the hidden states.
    """

    read: str
    kernel: str
    product: str

    def cast(self, rows: Any) -> Any:
        """Cast rows to the product's dtype."""
        for dtype in self:
            rows = ops.cast(rows, dtype)
        return rows

    def multiply(self, states: Any, rows: Any, transposed: bool = False) -> Any:
        """Multiply states with rows, `(num_rows, dim)` or transposed, by the operations of Keras's layer in its order.

        TensorFlow's optimizer makes a transposition part of a product only where no cast is between them, and then
        the product is rounded differently.
        """
        rows = ops.cast(rows, self.read)
        columns = rows if transposed else ops.transpose(rows)
        return ops.matmul(states, ops.cast(ops.cast(columns, self.kernel), self.product))


def logits_of(
    states: Any, trainable: Any, tables: Tables, split: SplitTable, dtypes: Dtypes, exports: bool = False
) -> Any:
    """Multiply hidden states with every token's row.

    A frozen table in id order is multiplied as it is stored, and the columns of chosen and new tokens are written into
    the product. Any other table, one with many chosen tokens, and one that must be widened are read in blocks of 4 MiB.

    The logits of a table in id order are those of Keras's layer to the bit, for each token whose row is unchanged.
    Inside XLA this excludes tables that Keras would widen beyond their stored dtype, and chosen rows that are not
    finite; these logits, and all others, are within 1e-6 of a float32 product of the same rows.

    Args:
        states: `(..., dim)` in the product's dtype.
        trainable: float32 `(num_trainable, dim)`.
        tables: the remap and the frozen rows, as the backend holds them.
        split: the split that the tables belong to.
        dtypes: the casts of the rows.
        exports: whether an exporter traces the call. Exporters know no loops, so that all tokens are one block.

    Returns:
        `(..., num_tokens)` in id order. The gradient of a row that several tokens share is summed over them.
    """
    if tables.order is None:
        # no Keras layer to agree with: rows keep their precision
        dtypes = Dtypes(dtypes.product, dtypes.product, dtypes.product)
    ids = np.flatnonzero(split.remap < 0).astype(np.int32)
    rows = ~split.remap[ids]
    order, product = tables.order, _Blocks(tables, dtypes, exports)  # type: Any, Any
    if order is not None and _is_multiplied_as_stored(tables, order, dtypes, exports):
        product = _Stored(tables, order, dtypes, exports)

    def run(states: Any, trainable: Any) -> Any:
        flat = ops.reshape(states, (-1, tables.dim))
        logits = product.multiply(states, trainable)

        def backward(*arguments: Any, upstream: Any = None) -> tuple[Any, Any]:
            # PyTorch passes it by name
            upstream = arguments[-1] if upstream is None else upstream
            upstream = ops.reshape(upstream, (-1, tables.num_tokens))
            of_trained = ops.take(upstream, ids, axis=1)
            to_states = product.multiply_back(upstream, of_trained, trainable)
            to_rows = ops.cast(ops.matmul(ops.transpose(of_trained), flat), "float32")
            to_trainable = ops.segment_sum(to_rows, rows, trainable.shape[0]) if len(ids) else ops.zeros_like(trainable)
            return ops.reshape(to_states, ops.shape(states)), to_trainable

        return logits, backward

    return ops.custom_gradient(run)(states, trainable)


class _Stored:
    """The product of Keras's layer with the stored table, and columns of trainable rows written into it."""

    def __init__(self, tables: Tables, order: Order, dtypes: Dtypes, exports: bool) -> None:
        self.tables, self.order, self.dtypes, self.exports = tables, order, dtypes, exports

    def multiply(self, states: Any, trainable: Any) -> Any:
        """Return the logits `(..., num_tokens)`."""
        logits = self.dtypes.multiply(states, self.tables.read_stored(), self.tables.transposed)
        if not len(self.order.rows):
            return logits
        few, rows = self.order.num_chosen, self._trained(trainable)
        products = ops.matmul(ops.reshape(states, (-1, self.tables.dim)), ops.transpose(rows))
        logits = ops.reshape(logits, (-1, self.tables.num_frozen))
        if few:
            is_changed = ops.any(rows[:few] != self._before(), axis=-1)
            logits = self._write(logits, products[:, :few], is_changed)
        if self.order.num_new:
            logits = ops.concatenate([logits, products[:, few:]], axis=1)
        return ops.reshape(logits, (*ops.shape(states)[:-1], self.tables.num_tokens))

    def multiply_back(self, upstream: Any, of_trained: Any, trainable: Any) -> Any:
        """Return the gradient of the states, `(num_states, dim)`, of the gradient of all logits and of some of them."""
        stored = self.dtypes.cast(self.tables.read_stored())
        of_frozen = upstream[:, : self.tables.num_frozen] if self.order.num_new else upstream
        to_states = ops.matmul(of_frozen, ops.transpose(stored) if self.tables.transposed else stored)
        if not len(self.order.rows):
            return to_states
        few, changes = self.order.num_chosen, self._trained(trainable)
        if few:
            changes = ops.concatenate([changes[:few] - self._before(), changes[few:]], axis=0)
        return to_states + ops.matmul(of_trained, changes)

    def _trained(self, trainable: Any) -> Any:
        """The rows of chosen tokens, then of new ones."""
        rows = trainable if self.order.in_row_order else ops.take(trainable, self.order.rows, axis=0)
        return self.dtypes.cast(rows)

    def _before(self) -> Any:
        """The frozen rows of chosen tokens."""
        return self.dtypes.cast(self.tables.read(self.order.chosen))

    def _write(self, logits: Any, columns: Any, is_changed: Any) -> Any:
        """Write the columns of changed rows into logits."""
        chosen, width = self.order.chosen, self.tables.num_frozen
        if _BACKEND == "tensorflow" and not self.exports and not in_xla():
            import tensorflow as tf

            columns = tf.where(is_changed, columns, tf.gather(logits, chosen, axis=1))
            positions = tf.stack(tf.meshgrid(tf.range(tf.shape(logits)[0]), chosen, indexing="ij"), axis=-1)
            return tf.tensor_scatter_nd_update(logits, positions, columns)
        is_chosen, number = np.zeros(width, bool), np.zeros(width, np.int32)
        is_chosen[chosen], number[chosen] = True, np.arange(len(chosen))
        is_changed = ops.logical_and(is_chosen, ops.take(is_changed, number, axis=0))
        return ops.where(is_changed, ops.take(columns, number, axis=1), logits)


def _is_multiplied_as_stored(tables: Tables, order: Order, dtypes: Dtypes, exports: bool) -> bool:
    """Return whether a table in id order is not widened by the operations of Keras's layer."""
    stored = keras.backend.standardize_dtype(tables.read_stored().dtype)
    if not order.is_finite or stored == "int8" or _size(dtypes.read) > _size(stored):
        return False
    # XLA rounds the products of blocks differently
    if in_xla():
        return True
    return len(set(dtypes)) == 1 and (exports or order.num_chosen <= _FEW * tables.num_frozen)


class _Blocks:
    """The product with the rows of all tokens, looked up block by block."""

    def __init__(self, tables: Tables, dtypes: Dtypes, exports: bool) -> None:
        self.tables, self.dtypes = tables, dtypes
        most = _BLOCK_MULTIPLE * -(-_BLOCK_BYTES // (4 * tables.dim * _BLOCK_MULTIPLE))
        self.length = tables.num_tokens if exports or tables.num_tokens <= most else most
        self.num_blocks = -(-tables.num_tokens // self.length)
        self.width = self.num_blocks * self.length

    def multiply(self, states: Any, trainable: Any) -> Any:
        """Return the logits `(..., num_tokens)`."""

        def multiply_block(number: Any) -> Any:
            return self.dtypes.multiply(states, self._rows(number, trainable))

        if self.num_blocks == 1:
            return multiply_block(0)
        products = ops.moveaxis(ops.map(multiply_block, ops.arange(self.num_blocks, dtype="int32")), 0, -2)
        return ops.reshape(products, (*ops.shape(products)[:-2], self.width))[..., : self.tables.num_tokens]

    def multiply_back(self, upstream: Any, of_trained: Any, trainable: Any) -> Any:
        """Return the gradient of the states, `(num_states, dim)`, of the gradient of all logits."""
        if self.num_blocks == 1:
            return ops.matmul(upstream, self.dtypes.cast(self._rows(0, trainable)))
        padded = ops.pad(upstream, ((0, 0), (0, self.width - self.tables.num_tokens)))
        blocks = ops.reshape(padded, (-1, self.num_blocks, self.length))
        return ops.fori_loop(
            0,
            self.num_blocks,
            lambda number, total: (
                total + ops.matmul(ops.take(blocks, number, axis=1), self.dtypes.cast(self._rows(number, trainable)))
            ),
            ops.zeros((ops.shape(upstream)[0], self.tables.dim), self.dtypes.product),
        )

    def _rows(self, number: Any, trainable: Any) -> Any:
        """Return the rows of a block, `(length, dim)` float32; the last block may repeat the last token."""
        ids = ops.minimum(number * self.length + ops.arange(self.length, dtype="int32"), self.tables.num_tokens - 1)
        return look_up_fixed(ids, self.tables, trainable)


def _size(dtype: str) -> int:
    """Return the bytes of a number."""
    return {"float16": 2, "bfloat16": 2, "float32": 4}.get(dtype, 8)
