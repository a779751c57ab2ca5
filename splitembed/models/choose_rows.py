"""Choose the tokens that are worth a trainable row, by the gradients that would reach it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import keras
import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import is_count
from splitembed.errors import SplitError
from splitembed.models.find_embedding import find_split

if TYPE_CHECKING:
    from splitembed.models.row_gradients import RowGradients

Method = Literal["gain", "consistency"]
Score = Callable[["RowGradients"], NDArray[Any]]
_TINY = np.finfo(np.float64).tiny


def choose_rows(
    model: Any, layer: Any, data: Any, budget: int, *, method: Method = "gain", tokens: Any = None, seed: int = 0
) -> NDArray[np.int64]:
    """Return the tokens that are most worth a trainable row each, best first.

    ```python
    ids = splitembed.choose_rows(model, "embedding", (x, y), 2_000)
    layer = model.get_layer("embedding")
    splitembed.replace_split(model, layer, layer.to_split().thaw(ids))
    ```

    Train the model first, with these rows frozen: their gradient then is what the other weights could not learn. One
    pass over the data, as in inference, takes the gradient that would reach the row of each token. Nothing trains, and
    the model and its optimizer stay as they are.

    Args:
        model: a compiled Keras model with any loss, on TensorFlow.
        layer: the model's `SplitEmbedding`, or its name.
        data: training data, as `fit` takes it: a `tf.data.Dataset` of batches `(x, y)` or `(x, y, sample_weight)`, or
            such a tuple of arrays.
        budget: the number of tokens. Fewer are returned if the data has fewer.
        method: the score of a token. With G the sum of the gradients of its occurrences, and S the sum of the squared
            norms of the single gradients: "gain", `|G|^2 / sqrt(S)`, the first-order decrease of the loss by a step
            that is scaled as those of Adagrad are; "consistency", `|G|^2 / S`, which prefers rarer tokens whose
            gradients agree, so that the chosen rows are a smaller part of each batch.
        tokens: the tokens to choose from: tokens, ids or a mask. By default those whose row is frozen. Of OOV tokens
            that share the row of `[UNK]`, those worth their own row are found with `tokens=split.remap < 0` in a split
            that was built with a high `min_count`; `trainable_tokens=ids` of `build_split` gives them one.
        seed: of the random projection to 32 numbers in which the gradients of more dimensions are kept.

    Returns:
        `(budget,)` ids, as `SplitTable.thaw` takes them. Padding and tokens that the data does not have are not chosen.

    Raises:
        SplitError: invalid arguments, another backend than TensorFlow, a model that is not compiled or does not call
            the layer where a gradient can be taken, or a gradient that is not finite.
    """
    if keras.backend.backend() != "tensorflow":
        raise SplitError(f"choose_rows needs the backend TensorFlow. Keras runs on {keras.backend.backend()}.")
    if not is_count(budget, 1):
        raise SplitError(f"`budget` must be an integer, 1 or more. Received: {budget!r}.")
    if method not in SCORES:
        raise SplitError(f"`method` must be one of {', '.join(map(repr, SCORES))}. Received: {method!r}.")
    found = find_split(model, layer)
    if not getattr(model, "compiled", False):
        raise SplitError(f"`model` must be compiled, with the loss that it trains on. Received: {model.name!r}.")
    from splitembed.models.row_gradients import measure_gradients

    split = found.to_split()
    is_candidate = np.zeros(split.num_tokens, bool)
    is_candidate[split.ids(split.remap >= 0 if tokens is None else tokens)] = True
    if split.padding is not None:
        is_candidate[split.padding] = False
    return best_rows(measure_gradients(model, found, data, is_candidate, seed), SCORES[method], budget)


def best_rows(gradients: "RowGradients", score: Score, budget: int) -> NDArray[np.int64]:
    """Return the ids of the tokens that occur, with the highest scores, best first; the lower id first if equal."""
    ids = np.flatnonzero(gradients.counts)
    return ids[np.argsort(-score(gradients)[ids], kind="stable")[:budget]]


SCORES: dict[str, Score] = {
    # a sum is zero where its divisor is
    "gain": lambda gradients: gradients.summed / np.sqrt(np.maximum(gradients.squares, _TINY)),
    "consistency": lambda gradients: gradients.summed / np.maximum(gradients.squares, _TINY),
}
