"""Words and rows that are in memory: mappings, `WordVectors`, gensim's KeyedVectors, and the table of a Keras layer."""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VectorFormatError
from splitembed.vectors.pairs.read_pair import Pair
from splitembed.vectors.pairs.rows import check_rows
from splitembed.vectors.pairs.word_lists import spell_integers
from splitembed.vectors.word_vectors import WordVectors


def as_pair(source: Any) -> Pair | None:
    """Return the words and rows of an object in memory; None for any other object.

    >>> as_pair({"the": [1.0, 2.0]})
    Pair(name='dict', words=['the'], rows={'the': [1.0, 2.0]}, row_of=None)
    >>> as_pair(["the"]) is None
    True

    Args:
        source: a mapping word -> row, `WordVectors`, or an object with `index_to_key` and `vectors`, such as gensim's
            KeyedVectors. Words that are all integers are spelled as decimal digits.

    Raises:
        VectorFormatError: the numbers of words and rows differ; a gensim model instead of its vectors.
    """
    if isinstance(source, Mapping):
        words = spell_integers(list(source))
        return Pair(type(source).__name__, words, dict(zip(words, source.values(), strict=True)))
    if isinstance(source, WordVectors):
        return Pair(source.source, source.words, source.matrix, source.row_of)
    if hasattr(source, "index_to_key") and hasattr(source, "vectors"):
        name, words = type(source).__name__, spell_integers(source.index_to_key)
        return Pair(name, words, check_rows(name, len(words), source.vectors))
    if hasattr(source, "wv"):
        raise VectorFormatError(f"Found a whole model, {type(source).__name__}; expected its vectors. Pass model.wv.")
    return None


def is_embedding(layer: Any) -> bool:
    """Return whether an object looks like a Keras `Embedding`. Keras is not imported."""
    return hasattr(layer, "input_dim") and hasattr(layer, "output_dim") and hasattr(type(layer), "embeddings")


def table_of_embedding(layer: Any) -> NDArray[Any]:
    """Return the rows that a layer looks up, LoRA updates included.

    Args:
        layer: a built `Embedding`.

    Returns:
        float `(input_dim, output_dim)`.

    Raises:
        VectorFormatError: the layer is not built, or is quantized.
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
