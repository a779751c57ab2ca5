"""A Keras `Embedding` with its lookup: the layer enters; its table leaves as an array."""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VectorFormatError


def is_embedding(layer: Any) -> bool:
    """Says whether something looks like a Keras `Embedding`; Keras need not be imported for that."""
    return hasattr(layer, "input_dim") and hasattr(layer, "output_dim") and hasattr(type(layer), "embeddings")


def table_of_embedding(layer: Any) -> NDArray[Any]:
    """The rows that a layer looks up, with what LoRA adds to them.

    Args:
        layer: a built `Embedding`.

    Returns:
        float `(input_dim, output_dim)`.

    Raises:
        VectorFormatError: the layer is not built, or holds integers with scales of their own.
    """
    name = f"The {type(layer).__name__} layer {layer.name!r}"
    if not layer.built:
        raise VectorFormatError(f"{name} has no table yet; expected a built layer. Build it, or load its weights.")
    if getattr(layer, "quantization_mode", None) is not None:
        raise VectorFormatError(
            f"{name} is quantized ({layer.quantization_mode}), its table holds integers without their scales; expected "
            "floats. Pass the layer from before layer.quantize, or (words, layer(numpy.arange(input_dim)))."
        )
    table = np.asarray(sys.modules["keras"].ops.convert_to_numpy(layer.embeddings))
    return table.astype(np.float32) if table.dtype.name == "bfloat16" else table
