"""Words and rows that are in memory: mappings, `WordVectors`, gensim's KeyedVectors, and the table of a Keras layer."""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VectorFormatError
from splitembed.vectors.open_request import OpenRequest
from splitembed.vectors.pairs.read_pair import Pair
from splitembed.vectors.pairs.rows import check_rows
from splitembed.vectors.pairs.word_lists import spell_integers
from splitembed.vectors.word_vectors import WordVectors


def recognise_mapping(request: OpenRequest) -> bool:
    """Return whether the source is a mapping word -> row."""
    return isinstance(request.source, Mapping)


def open_mapping(request: OpenRequest) -> Pair:
    """Return the words and rows of a mapping. Words that are all integers are spelled as decimal digits."""
    words = spell_integers(list(request.source))
    return Pair(type(request.source).__name__, words, dict(zip(words, request.source.values(), strict=True)))


def recognise_word_vectors(request: OpenRequest) -> bool:
    """Return whether the source is `WordVectors`."""
    return isinstance(request.source, WordVectors)


def open_word_vectors(request: OpenRequest) -> Pair:
    """Return the words and rows of `WordVectors`."""
    vectors: WordVectors = request.source
    return Pair(vectors.source, vectors.words, vectors.matrix, vectors.row_of)


def recognise_keyed_vectors(request: OpenRequest) -> bool:
    """Return whether the source has `index_to_key` and `vectors`, as gensim's KeyedVectors has."""
    return hasattr(request.source, "index_to_key") and hasattr(request.source, "vectors")


def open_keyed_vectors(request: OpenRequest) -> Pair:
    """Return the words and rows of KeyedVectors. Words that are all integers are spelled as decimal digits.

    Raises:
        VectorFormatError: the numbers of words and rows differ.
    """
    name, words = type(request.source).__name__, spell_integers(request.source.index_to_key)
    return Pair(name, words, check_rows(name, len(words), request.source.vectors))


def recognise_model(request: OpenRequest) -> bool:
    """Return whether the source has `wv`, as the models of gensim have."""
    return hasattr(request.source, "wv")


def refuse_model(request: OpenRequest) -> Pair:
    """Raise the error that names the vectors of a model.

    Raises:
        VectorFormatError: always.
    """
    raise VectorFormatError(
        f"Found a whole model, {type(request.source).__name__}; expected its vectors. Pass model.wv."
    )


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
