"""Hidden states in, logits over the whole vocabulary out: one product with each table, and the columns put in id order.

The dense table is never built. The gradient reaches the hidden states and the trainable rows; frozen rows have none.
"""

from typing import Any

import keras
from keras import ops

from splitembed.lookup.backend import Tables

_BLOCK_BYTES = 4 * 2**20  # of widened frozen rows, where they are not multiplied as they lie
_USED_SHARE = 0.5  # with fewer tokens to a row than this, reading a row a token is faster than multiplying all rows


class Columns:
    """How frozen rows become columns of logits: which of them, in what order, and so many at a time.

    Columns are the frozen table's rows, or, of a table far larger than the vocabulary, the row of each token. Those of
    the trainable rows follow them. Rows that are stored as the product needs them are multiplied where they lie; others
    are widened, a block at a time.

    Args:
        tables: what holds the remap and the frozen rows, as the backend has them.
        dtype: of the product.
        all_at_once: whether blocks are out of the question: exporters know no loops.
    """

    def __init__(self, tables: Tables, dtype: str, all_at_once: bool = False) -> None:
        self.tables, self.dtype, self.remap = tables, dtype, tables.read_remap()
        self.by_token = tables.num_tokens < _USED_SHARE * tables.num_frozen
        stored = tables.read_stored()
        self.dim = tables.dim
        has_dtype = keras.backend.standardize_dtype(stored.dtype) == dtype
        is_whole = tables.num_frozen and has_dtype and not self.by_token
        self.whole = (ops.transpose(stored) if tables.transposed else stored) if is_whole else None
        self.num_rows = tables.num_tokens if self.by_token and tables.num_frozen else tables.num_frozen
        most = self.num_rows if all_at_once else max(1, _BLOCK_BYTES // (4 * self.dim))
        self.num_blocks = 1 if self.whole is not None else -(-self.num_rows // max(1, most))
        self.length = -(-self.num_rows // max(1, self.num_blocks))
        self.width = self.num_blocks * self.length  # the last block may repeat the last row, which no token then reads

    def places(self) -> Any:
        """int32 `(num_tokens,)`: the column of each token."""
        own = ops.arange(self.tables.num_tokens, dtype="int32") if self.by_token else self.remap
        return ops.where(self.remap >= 0, own, self.width - 1 - self.remap)

    def multiply(self, states: Any) -> Any:
        """Hidden states `(dim, num_states)` in, their products with the rows `(width, num_states)` out."""
        if self.whole is not None:
            return ops.matmul(self.whole, states)
        if self.num_blocks == 1:
            return ops.matmul(self._block(0), states)
        products = ops.map(
            lambda number: ops.matmul(self._block(number), states), ops.arange(self.num_blocks, dtype="int32")
        )
        return ops.reshape(products, (self.width, -1))

    def multiply_back(self, upstream: Any) -> Any:
        """The gradient of `multiply` by the hidden states: `(width, num_states)` in, `(num_states, dim)` out."""
        if self.whole is not None:
            return ops.matmul(ops.transpose(upstream), self.whole)
        if self.num_blocks == 1:
            return ops.matmul(ops.transpose(upstream), self._block(0))
        blocks = ops.reshape(upstream, (self.num_blocks, self.length, -1))
        total = ops.zeros((ops.shape(upstream)[1], self.dim), self.dtype)
        return ops.fori_loop(
            0,
            self.num_blocks,
            lambda number, total: total + ops.matmul(ops.transpose(blocks[number]), self._block(number)),
            total,
        )

    def _block(self, number: Any) -> Any:
        """`(length, dim)` in the product's dtype."""
        rows = ops.minimum(number * self.length + ops.arange(self.length, dtype="int32"), self.num_rows - 1)
        if self.by_token:
            rows = ops.maximum(ops.take(self.remap, rows, axis=0), 0)
        return ops.cast(self.tables.read(rows), self.dtype)


def logits_of(states: Any, trainable: Any, columns: Columns) -> Any:
    """Multiplies hidden states with every token's row.

    Args:
        states: `(num_states, dim)` in the columns' dtype.
        trainable: `(num_trainable, dim)`, likewise.
        columns: of the frozen rows.

    Returns:
        `(num_states, num_tokens)` in id order. The gradient of a row that several tokens share is summed over them.
    """
    places = columns.places()

    # rows of the transposed product are put in order and summed much faster than its columns
    def run(states: Any, trainable: Any) -> Any:
        transposed = ops.transpose(states)
        parts = [ops.matmul(trainable, transposed)]
        if columns.num_rows:
            parts.insert(0, columns.multiply(transposed))
        logits = ops.transpose(ops.take(ops.concatenate(parts, axis=0), places, axis=0))

        def backward(*arguments: Any, upstream: Any = None) -> tuple[Any, Any]:
            upstream = arguments[-1] if upstream is None else upstream
            by_row = ops.segment_sum(ops.transpose(upstream), places, columns.width + trainable.shape[0])
            frozen, trained = by_row[: columns.width], by_row[columns.width :]
            to_states = ops.matmul(ops.transpose(trained), trainable)
            if columns.num_rows:
                to_states = to_states + columns.multiply_back(frozen)
            return to_states, ops.matmul(trained, states)

        return logits, backward

    return ops.custom_gradient(run)(states, trainable)
