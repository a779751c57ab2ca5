"""The combined row of each bag of token ids, summed as the rows are read.

No tensor of `(batch, length, dim)` is made, neither here nor in the gradient.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from splitembed.errors import SplitError
from splitembed.lookup.backend import Combiner, Drop, Gradient
from splitembed.lookup.constant import Constants
from splitembed.lookup.dynamic import Trained, find_trained, gather_trained
from splitembed.lookup.gradients import differentiable, row_gradient, with_gradient
from splitembed.lookup.static import check_weights_shape
from splitembed.tables.storage import FLOAT32


class Bags(NamedTuple):
    """Flat ids, each with its bag and, if any, its weight.

    `ids`, `bag` (int64, ascending) and `weights` (float32, or None where each id counts once) are `(num_ids,)`;
    `shape` is the shape of the `num_bags` bags, that of the original ids without its last axis.
    """

    ids: tf.Tensor
    bag: tf.Tensor
    weights: tf.Tensor | None
    num_bags: Any
    shape: Any

    @classmethod
    def of(cls, ids: Any, weights: Any = None) -> "Bags":
        """Return the bags along the last axis of the ids, dense or ragged.

        Args:
            ids: `(..., length)`, or a ragged tensor of one ragged axis.
            weights: None, or floats of the same shape, ragged if the ids are.

        Raises:
            SplitError: ids without an axis, with several ragged axes, or weights of another layout.
        """
        is_ragged = isinstance(ids, tf.RaggedTensor)
        if (is_ragged and ids.ragged_rank != 1) or ids.shape.rank in (0, 1 if is_ragged else 0):
            raise SplitError(f"A combiner needs ids with one axis to combine. Received: shape {ids.shape}.")
        if weights is not None:
            if is_ragged != isinstance(weights, tf.RaggedTensor):
                raise SplitError("`weights` must be ragged where the ids are, and dense where they are dense.")
            if None not in (weights.shape.rank, ids.shape.rank):
                check_weights_shape(tuple(weights.shape), tuple(ids.shape))
            weights = _same_layout(weights, ids)
        if is_ragged:
            bag, num_bags, flat = ids.value_rowids(), ids.nrows(), ids.flat_values
            weights = None if weights is None else weights.flat_values
            return cls(flat, tf.cast(bag, tf.int64), _float32(weights, flat), num_bags, [num_bags])
        shape = tf.shape(ids, tf.int64)
        num_bags, flat = tf.reduce_prod(shape[:-1]), tf.reshape(ids, [-1])
        leading = [shape[axis] if length is None else length for axis, length in enumerate(ids.shape[:-1])]
        return cls(flat, tf.repeat(tf.range(num_bags), shape[-1]), _float32(weights, flat), num_bags, leading)

    def without_padding(self, rows: tf.Tensor) -> tuple[tf.Tensor, "Bags"]:
        """Return the rows and the bags without the positions of id 0."""
        position = tf.squeeze(tf.where(self.ids != 0), 1)
        weights = None if self.weights is None else tf.gather(self.weights, position)
        return tf.gather(rows, position), self._replace(
            ids=tf.gather(self.ids, position), bag=tf.gather(self.bag, position), weights=weights
        )

    def divisors(self, combiner: Combiner) -> tf.Tensor:
        """Return what the sum of each bag is divided by, float32 `(num_bags,)`: 1, its weights' sum, or their norm."""
        if combiner == "sum":
            return tf.ones([self.num_bags])
        weights = tf.ones_like(self.bag, tf.float32) if self.weights is None else self.weights
        powers = weights if combiner == "mean" else tf.square(weights)
        total = tf.math.unsorted_segment_sum(powers, self.bag, self.num_bags)
        return total if combiner == "mean" else tf.sqrt(total)


def _same_layout(weights: Any, ids: Any) -> Any:
    """Return the weights after a check, when the graph runs, that they have the layout of the ids."""
    layout = [tensor.row_splits if isinstance(ids, tf.RaggedTensor) else tf.shape(tensor) for tensor in (weights, ids)]
    alike = tf.debugging.assert_equal(
        *(tf.cast(each, tf.int64) for each in layout), "`weights` must have the shape of the ids."
    )
    if tf.executing_eagerly():
        return weights
    with tf.control_dependencies([alike]):
        return tf.identity(weights)


def _float32(weights: Any, ids: tf.Tensor) -> tf.Tensor | None:
    """Return flat weights, one for each id."""
    return None if weights is None else tf.reshape(tf.cast(weights, tf.float32), tf.shape(ids))


def combine(
    rows: tf.Tensor,
    bags: Bags,
    combiner: Combiner,
    constants: Constants,
    trainable: Any,
    gradient: Gradient,
    drop: Drop | None = None,
) -> tf.Tensor:
    """Sum the rows of each bag, and divide by the combiner's divisor.

    Args:
        rows: int32 `(num_ids,)`, as `route` returns them.
        bags: the bag of each row, and its weight; weights get a gradient too.
        combiner: "sum" divides by 1, "mean" by the bag's sum of weights, "sqrtn" by the root of its sum of squares.
        constants: the frozen rows.
        trainable: `tf.Variable` `(num_trainable, dim)` float32.
        gradient: as for `look_up`.
        drop: as for `look_up`; a dropped row adds nothing to the sum, and still counts in the divisor.

    Returns:
        float32 `(num_bags, dim)`; zero for a bag whose divisor is zero, such as an empty one.
    """
    total = _sum(rows, bags, find_trained(rows, drop), constants, trainable, gradient)
    if combiner == "sum":
        return total
    return tf.math.divide_no_nan(total, bags.divisors(combiner)[:, None])


def _sum(
    rows: tf.Tensor, bags: Bags, read: Trained, constants: Constants, trainable: Any, gradient: Gradient
) -> tf.Tensor:
    position, trained, _ = read
    bag_of_trained = tf.gather(bags.bag, position)

    def counted(source: tf.Tensor) -> Any:
        def backward(upstream: tf.Tensor) -> Any:
            return row_gradient(tf.gather(upstream, bag_of_trained), trained, trainable, gradient)

        learned = tf.math.unsorted_segment_sum(gather_trained(source, trained), bag_of_trained, bags.num_bags)
        return learned + _sum_frozen(rows, bags, constants), backward

    def weighted(source: tf.Tensor, weights: tf.Tensor) -> Any:
        factors = tf.gather(weights, position)[:, None]
        learned = gather_trained(source, trained)

        def backward(upstream: tf.Tensor) -> Any:
            slices = tf.gather(upstream, bag_of_trained)
            of_trained = tf.reduce_sum(slices * learned, axis=1)
            of_weights = tf.tensor_scatter_nd_update(
                _frozen_products(rows, bags.bag, upstream, constants), position[:, None], of_trained
            )
            return row_gradient(slices * factors, trained, trainable, gradient), of_weights

        total = tf.math.unsorted_segment_sum(learned * factors, bag_of_trained, bags.num_bags)
        return total + _sum_frozen_weighted(rows, bags._replace(weights=weights), constants), backward

    source = differentiable(trainable)
    return with_gradient(counted, source) if bags.weights is None else with_gradient(weighted, source, bags.weights)


def _sum_frozen(rows: tf.Tensor, bags: Bags, constants: Constants) -> tf.Tensor:
    """Return the sum of the frozen rows of each bag, added up as they are read."""
    position = tf.where(rows >= 0)
    table, row = _table_of(tf.gather_nd(rows, position), constants)
    bag, half = tf.gather_nd(bags.bag, position), tf.size(row) // 2
    # the kernel has one thread: two of them take about half the time
    halves = [
        tf.raw_ops.SparseSegmentSumWithNumSegments(
            data=table, indices=row[part], segment_ids=bag[part], num_segments=bags.num_bags
        )
        for part in (slice(None, half), slice(half, None))
    ]
    return tf.add_n(halves)


def _sum_frozen_weighted(rows: tf.Tensor, bags: Bags, constants: Constants) -> tf.Tensor:
    """Return a sparse matrix of weights times the constant, which reads the named rows alone."""
    position = tf.where(rows >= 0)
    table, row = _table_of(tf.gather_nd(rows, position), constants)
    indices = tf.stack([tf.gather_nd(bags.bag, position), tf.cast(row, tf.int64)], axis=1)
    size = tf.stack([tf.cast(bags.num_bags, tf.int64), tf.shape(table, tf.int64)[0]])
    return tf.sparse.sparse_dense_matmul(tf.SparseTensor(indices, tf.gather_nd(bags.weights, position), size), table)


def _frozen_products(rows: tf.Tensor, bag: tf.Tensor, upstream: tf.Tensor, constants: Constants) -> tf.Tensor:
    """Return `(num_ids,)`, each frozen row times the gradient of its bag, and zero for trainable rows.

    All distinct rows are multiplied with all bags.
    """
    position = tf.where(rows >= 0)
    distinct, column, _ = tf.unique_with_counts(tf.gather_nd(rows, position))
    products = tf.matmul(upstream, constants.read(distinct), transpose_b=True)
    cells = tf.stack([tf.gather_nd(bag, position), tf.cast(column, tf.int64)], axis=1)
    return tf.scatter_nd(position, tf.gather_nd(products, cells), tf.shape(rows, tf.int64))


def _table_of(named: tf.Tensor, constants: Constants) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the table to sum from and each row's index in it: the constant itself, or its distinct rows widened."""
    if constants.storage is FLOAT32:
        return constants.frozen.read_value(), named
    distinct, row, _ = tf.unique_with_counts(named)
    return constants.read(distinct), row
