"""A layer or a split goes in; what leaves needs nothing of ours: a dense Keras layer, or the small trainable table."""

import os
from typing import Any

from splitembed.errors import SplitError
from splitembed.split import SplitTable


def save_trainable(path: str | os.PathLike[str], split_or_layer: Any) -> None:
    """Writes the small table alone: trainable rows, remap and vocabulary.

    Args:
        path: where to write; an existing file is replaced as a whole.
        split_or_layer: a `SplitTable`, or a `SplitEmbedding` with its rows as trained so far.

    Raises:
        SplitError: neither of the two.
    """
    _as_split(split_or_layer).save_trainable(path)


def to_dense(layer: Any) -> Any:
    """Makes a plain `keras.layers.Embedding` of the same rows; it needs `(num_tokens, dim)` float32 of memory.

    Args:
        layer: a `SplitEmbedding`, or a `SplitTable`.

    Returns:
        A built `keras.layers.Embedding`; all its rows train unless its `trainable` is set to False.

    Raises:
        SplitError: neither of the two.
    """
    import keras

    matrix = _as_split(layer).combine()
    mask_zero = getattr(layer, "mask_zero", False)
    dense = keras.layers.Embedding(*matrix.shape, mask_zero=mask_zero, name=getattr(layer, "name", None))
    dense.build()
    dense.set_weights([matrix])
    return dense


def _as_split(split_or_layer: Any) -> SplitTable:
    if isinstance(split_or_layer, SplitTable):
        return split_or_layer
    if hasattr(split_or_layer, "to_split"):
        split: SplitTable = split_or_layer.to_split()
        return split
    kind = type(split_or_layer).__name__
    raise SplitError(f"A SplitTable or a SplitEmbedding is needed. Received: {split_or_layer!r} (of type {kind}).")
