"""PartialEmbedding: one matrix and the ids that train in, a Keras layer out that leaves every other row as it is."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from splitembed.errors import SplitError
from splitembed.layers.embedding import SplitEmbedding
from splitembed.layers.spec import LIVE, SplitSpec
from splitembed.split.checks import as_float32
from splitembed.split.table import SplitTable


@keras.saving.register_keras_serializable(package="splitembed")
class PartialEmbedding(SplitEmbedding):
    """An embedding layer of which only some rows train: in place of layers that mask the gradient of one matrix.

    ```python
    rows = splitembed.gradients.PartialEmbedding(num_tokens, [matrix], trainable_ids=oov_ids, mask_zero=True)(ids)
    ```

    It is a `SplitEmbedding` on `SplitTable.from_matrix(weights, trainable_ids)`: the other rows are no weight, so that
    neither an optimizer's momentum nor weight decay moves them, and its slots and checkpoints are small. Where the
    vectors come from a file, `build_split` reads and splits them without a matrix of all tokens.

    Args:
        num_tokens: rows of the matrix, as `input_dim` in Keras.
        weights: the matrix `(num_tokens, dim)`, pretrained rows and others; or a list of it, `[matrix]`.
        trainable_ids: ids, tokens (with a `vocabulary`) or a boolean mask `(num_tokens,)` of the rows that train.
        vocabulary: the tokens in id order, or None where ids have no strings.
        mask_zero: mask id 0, whose row must be zero and not among those that train.
        **kwargs: of `SplitEmbedding`: `combiner`, `trainable_dropout`, `name` and others.

    Raises:
        SplitError: a matrix of another number of rows, or a padding row that is not zero or is to train.
        TokenIdError: an id outside the matrix.
    """

    def __init__(
        self,
        num_tokens: int,
        weights: Any,
        trainable_ids: Any,
        *,
        vocabulary: Sequence[str] | None = None,
        mask_zero: bool = False,
        **kwargs: Any,
    ) -> None:
        split = SplitTable.from_matrix(
            _matrix(weights, num_tokens), trainable_ids, vocabulary=vocabulary, padding=0 if mask_zero else None
        )
        super().__init__(split, mask_zero, **kwargs)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "PartialEmbedding":
        """Makes the layer again, as `SplitEmbedding.from_config` does: a config holds no matrix."""
        layer: PartialEmbedding = cls.__new__(cls)
        spec = SplitSpec(**config["split"])
        SplitEmbedding.__init__(layer, **{**config, "split": LIVE.get(spec) or spec})
        return layer


def _matrix(weights: Any, num_tokens: int) -> NDArray[np.float32]:
    """The matrix, taken out of Keras's list of weights."""
    if isinstance(weights, list | tuple) and len(weights) == 1 and np.ndim(weights[0]) == 2:
        weights = weights[0]
    rows = as_float32("weights", weights)
    if len(rows) != num_tokens:
        raise SplitError(
            f"`weights` must have one row for each of {num_tokens} tokens. Received: {len(rows)} rows. Count ids 0 and "
            f"1 too where they are padding and [UNK]."
        )
    return rows
