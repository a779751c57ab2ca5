"""The product of hidden states with the row of every token, and its gradient.

The dense table is never built: rows are multiplied as they are stored, or a block of tokens at a time.
"""

from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from splitembed.lookup.backend import Tables
from splitembed.lookup.choose_backend import choose_backend
from splitembed.lookup.context import in_xla
from splitembed.lookup.static import look_up_fixed
from splitembed.split.table import SplitTable
from splitembed.tables.storage import STORAGES

_BACKEND = keras.backend.backend()
# memory of a block of float32 rows
_BLOCK_BYTES = 4 * 2**20
# on most processors, products of blocks of that many rows have the bits of the product with the whole table
_BLOCK_MULTIPLE = 64
# largest share of the columns that are written into a finished product; otherwise taking all columns is faster
_FEW = 1 / 8
# rows for each token of a table that is multiplied whole; of a larger one, reading the row of each token is faster
_MOST_ROWS = 2


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

    A frozen table in the dtype of the product is multiplied as it is stored, and so are the trainable rows; the logits
    are each token's column. A table that must be widened, and one of many more rows than tokens, are read in blocks of
    4 MiB.

    The logits of a table in id order are those of Keras's layer to the bit, for each token whose row is unchanged.
    This excludes tables that are read in blocks: those that must be widened, and those with chosen rows that are not
    finite. Their logits, and all others, are within 1e-6 of a float32 product of the same rows: whether the product
    with a block has the bits of the product with the whole table depends on the processor.

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
    is_stored = _is_multiplied_as_stored(tables, dtypes)
    product: Any = _Stored(tables, rows, dtypes, exports) if is_stored else _Blocks(tables, dtypes, exports)

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

    return choose_backend().with_gradient(run, states, trainable)


class _Stored:
    """The products with the stored table and with the trainable rows, of which each token's column is taken.

    In id order the first product is that of Keras's layer. Where few of its columns change, they are written into it.

    Args:
        tables: as for `logits_of`.
        rows: `(num_ids,)` the trainable row of each id that has one, ids ascending.
        dtypes: the casts of the rows.
        exports: as for `logits_of`.
    """

    def __init__(self, tables: Tables, rows: NDArray[Any], dtypes: Dtypes, exports: bool) -> None:
        self.tables, self.rows, self.dtypes = tables, rows, dtypes
        # None in any other order
        self.order: Any = tables.order
        few = 0 if exports or in_xla() or _BACKEND != "tensorflow" else _FEW * tables.num_frozen
        self.is_written = self.order is not None and self.order.num_chosen <= few

    def multiply(self, states: Any, trainable: Any) -> Any:
        """Return the logits `(..., num_tokens)`."""
        flat = ops.reshape(states, (-1, self.tables.dim))
        if self.order is None:
            logits = self._take(self._multiply_stored(flat), flat, trainable)
        else:
            logits = self.dtypes.multiply(states, self.tables.read_stored(), self.tables.transposed)
            if not len(self.rows):
                return logits
            logits = ops.reshape(logits, (-1, self.tables.num_frozen))
            logits = (self._write if self.is_written else self._take)(logits, flat, trainable)
        return ops.reshape(logits, (*ops.shape(states)[:-1], self.tables.num_tokens))

    def multiply_back(self, upstream: Any, of_trained: Any, trainable: Any) -> Any:
        """Return the gradient of the states, `(num_states, dim)`, of the gradient of all logits and of some of them."""
        stored = self.dtypes.cast(self.tables.read_stored())
        num_frozen, order = self.tables.num_frozen, self.order
        if order is None:
            remap = self.tables.read_remap()
            columns = ops.where(remap >= 0, remap, num_frozen)
            of_frozen = ops.transpose(ops.segment_sum(ops.transpose(upstream), columns, num_frozen + 1)[:num_frozen])
        else:
            of_frozen = upstream[:, :num_frozen] if order.num_new else upstream
        to_states = ops.matmul(of_frozen, ops.transpose(stored) if self.tables.transposed else stored)
        if not len(self.rows):
            return to_states
        changes = self._trained(trainable)
        if order is not None and order.num_chosen:
            few = order.num_chosen
            changes = ops.concatenate([changes[:few] - self._before(), changes[few:]], axis=0)
        return to_states + ops.matmul(of_trained, changes)

    def _multiply_stored(self, flat: Any) -> Any:
        """Return the product with the stored table, of which TensorFlow would make a transposed copy in eager mode."""
        stored = self.tables.read_stored()
        if self.tables.transposed:
            return ops.matmul(flat, stored)
        return ops.transpose(ops.matmul(stored, ops.transpose(flat)))

    def _take(self, logits: Any, flat: Any, trainable: Any) -> Any:
        """Return each token's column, of the product with the stored table or of that with the trainable rows."""
        parts, positions = [logits], self._positions(trainable)
        if trainable.shape[0]:
            parts.append(ops.matmul(flat, ops.transpose(self.dtypes.cast(trainable))))
        # XLA would make the transposition part of the product, and round it differently
        if in_xla():
            return ops.take(ops.concatenate(parts, axis=1), positions, axis=1)
        # rows are taken faster than columns
        columns = ops.concatenate([ops.transpose(each) for each in parts], axis=0)
        return ops.transpose(ops.take(columns, positions, axis=0))

    def _positions(self, trainable: Any) -> Any:
        """Return the position of each token's column; those of trainable rows follow those of frozen ones."""
        remap = self.tables.read_remap()
        # LiteRT has no ~
        positions = ops.where(remap >= 0, remap, self.tables.num_frozen - 1 - remap)
        if self.order is None or not self.order.num_chosen:
            return positions
        chosen, num_tokens = self.order.chosen, self.tables.num_tokens
        is_chosen, number = np.zeros(num_tokens, bool), np.zeros(num_tokens, np.int32)
        is_chosen[chosen], number[chosen] = True, np.arange(len(chosen))
        is_same = ops.logical_not(self._is_changed(self._trained(trainable)))
        is_same = ops.logical_and(is_chosen, ops.take(is_same, number, axis=0))
        return ops.where(is_same, ops.arange(num_tokens, dtype="int32"), positions)

    def _write(self, logits: Any, flat: Any, trainable: Any) -> Any:
        """Write the columns of changed rows into logits, and add those of new tokens."""
        rows, few = self._trained(trainable), self.order.num_chosen
        products = ops.matmul(flat, ops.transpose(rows))
        if few:
            import tensorflow as tf

            chosen = self.order.chosen
            columns = tf.where(self._is_changed(rows), products[:, :few], tf.gather(logits, chosen, axis=1))
            positions = tf.stack(tf.meshgrid(tf.range(tf.shape(logits)[0]), chosen, indexing="ij"), axis=-1)
            logits = tf.tensor_scatter_nd_update(logits, positions, columns)
        return ops.concatenate([logits, products[:, few:]], axis=1) if self.order.num_new else logits

    def _is_changed(self, trained: Any) -> Any:
        """Return which chosen tokens have another row than their frozen one."""
        return ops.any(trained[: self.order.num_chosen] != self._before(), axis=-1)

    def _trained(self, trainable: Any) -> Any:
        """Return the trainable row of each id that has one; in id order first those of chosen ids."""
        is_whole = self.order is not None and self.order.in_row_order
        return self.dtypes.cast(trainable if is_whole else ops.take(trainable, self.rows, axis=0))

    def _before(self) -> Any:
        """Return the frozen rows of chosen ids."""
        return self.dtypes.cast(self.tables.read(self.order.chosen))


def _is_multiplied_as_stored(tables: Tables, dtypes: Dtypes) -> bool:
    """Return whether a table is multiplied whole: in id order where Keras's layer does not widen it."""
    storage = STORAGES[keras.backend.standardize_dtype(tables.read_stored().dtype)]
    if tables.order is None:
        fits = storage.name == dtypes.product and 0 < tables.num_frozen <= _MOST_ROWS * tables.num_tokens
    else:
        # XLA rounds the products of blocks differently
        fits = (in_xla() or len(set(dtypes)) == 1) and _size(dtypes.read) <= storage.num_bytes and not storage.has_scale
    return fits and tables.is_finite


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
    """Return the bytes of a number; no rows are stored as float64."""
    return STORAGES[dtype].num_bytes if dtype in STORAGES else 8
