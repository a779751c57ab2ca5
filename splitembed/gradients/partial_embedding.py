"""PartialEmbedding, an embedding layer made from one matrix and the ids whose rows train."""

from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from splitembed.errors import SplitError
from splitembed.layers.embedding import SplitEmbedding
from splitembed.layers.spec import SplitSpec
from splitembed.split.checks import as_float32
from splitembed.split.table import SplitTable


@keras.saving.register_keras_serializable(package="splitembed")
class PartialEmbedding(SplitEmbedding):
    """An embedding layer that trains only some rows, as a replacement of layers that mask the gradient of a matrix.

    ```python
    rows = splitembed.gradients.PartialEmbedding(num_tokens, [matrix], trainable_ids=oov_ids, mask_zero=True)(ids)
    ```

    It is a `SplitEmbedding` on `SplitTable.from_matrix(weights, trainable_ids)`: the other rows are a constant, so that
    neither momentum nor weight decay moves them, and optimizer slots and checkpoints are small. If the vectors are in
    a file, `build_split` reads and splits them without a matrix of all tokens.

    Args:
        num_tokens: number of rows of the matrix, as `input_dim` in Keras.
        weights: the matrix `(num_tokens, dim)` of all rows, or a list that holds it, `[matrix]`.
        trainable_ids: ids, tokens (with a `vocabulary`) or a boolean mask `(num_tokens,)` of the rows that train.
        vocabulary: the tokens in id order, anything else that `read_vocabulary` reads, or None for ids without strings.
        mask_zero: whether to mask id 0, whose row must be zero and frozen.
        split: the split of a saved layer, which its config gives instead of the matrix.
        **kwargs: other arguments of `SplitEmbedding`: `combiner`, `trainable_dropout`, `name` and so on.

    Raises:
        SplitError: a matrix of another number of rows, or a padding row that is not zero or not frozen.
        TokenIdError: an id outside the matrix.
    """

    def __init__(
        self,
        num_tokens: int | None = None,
        weights: Any = None,
        trainable_ids: Any = None,
        *,
        vocabulary: Any = None,
        mask_zero: bool = False,
        split: SplitTable | SplitSpec | None = None,
        **kwargs: Any,
    ) -> None:
        if split is None:
            matrix = _matrix(weights, num_tokens)
            padding = 0 if mask_zero else None
            split = SplitTable.from_matrix(matrix, trainable_ids, vocabulary=vocabulary, padding=padding)
        super().__init__(split, mask_zero, **kwargs)


def _matrix(weights: Any, num_tokens: int | None) -> NDArray[np.float32]:
    """Return the matrix, also from a Keras list of weights."""
    if isinstance(weights, list | tuple) and len(weights) == 1 and np.ndim(weights[0]) == 2:
        weights = weights[0]
    rows = as_float32("weights", weights)
    if len(rows) != num_tokens:
        raise SplitError(
            f"`weights` must have one row for each of {num_tokens} tokens. Received: {len(rows)} rows. Padding and "
            f"[UNK] need a row too."
        )
    return rows
