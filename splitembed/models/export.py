"""A layer or a split goes in; what leaves needs nothing of ours: a dense Keras layer, or a file of vectors.

Or the small trainable table alone, where whoever takes it has the frozen one.
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from splitembed.errors import SplitError
from splitembed.split.table import SplitTable
from splitembed.tables import FrozenTable, open_frozen
from splitembed.vectors import WordVectors
from splitembed.vectors.write import GLOVE, Rows, write_vectors

_SHARED = (  # options of a Keras layer, and the attributes of ours that hold them
    ("name", "name"),
    ("dtype", "dtype_policy"),
    *(
        (name, name)
        for name in ("mask_zero", "embeddings_regularizer", "embeddings_constraint", "activity_regularizer")
    ),
    *((name, name) for name in ("tie_weights", "logit_soft_cap", "reverse_dtype")),
)


def save_trainable(path: str | os.PathLike[str], split_or_layer_or_model: Any) -> None:
    """Writes the small table alone: trainable rows, remap and vocabulary; of an untied layer, both its tables.

    ```python
    splitembed.save_trainable("tools.h5", model)    # some kB; load_trainable puts them on the same base model again
    ```

    Args:
        path: where to write; an existing file is replaced as a whole.
        split_or_layer_or_model: a `SplitTable`; a `SplitEmbedding` with its rows as trained so far; or a model that has
            one such layer.

    Raises:
        SplitError: none of the three; or a model with no such layer, or several.
    """
    source = split_or_layer_or_model
    if hasattr(source, "layers"):  # a Keras model; Keras is not imported for a split alone
        source = _only_layer(source)
    reverse = getattr(source, "reverse_embedding", None)
    _as_split(source).save_trainable(path, reverse=None if reverse is None else reverse.to_split())


def _only_layer(model: Any) -> Any:
    """The one layer of a model that has a split, that of an untied one's logits aside, which belongs to it."""
    layers = [each for each in model._flatten_layers() if hasattr(each, "to_split")]
    reverse = {id(getattr(each, "reverse_embedding", None)) for each in layers}
    found = [each for each in layers if id(each) not in reverse]
    if len(found) != 1:
        names = ", ".join(repr(each.name) for each in found) or "none"
        raise SplitError(
            f"The model {model.name!r} must have exactly one SplitEmbedding to save; it has: {names}. Pass the layer."
        )
    return found[0]


def to_dense(layer: Any) -> Any:
    """Makes a plain Keras layer of the same rows; it needs `(num_tokens, dim)` float32 of memory.

    Args:
        layer: a `SplitEmbedding`, a `SplitReversibleEmbedding`, or a `SplitTable`.

    Returns:
        A built `keras.layers.Embedding`, or of a reversible layer a `keras.layers.ReversibleEmbedding`, with the same
        name, dtype policy and options; all its rows train unless its `trainable` is set to False. Frozen rows of low
        precision are widened to float32.

    Raises:
        SplitError: none of these; a layer with a combiner, in whose place an `Embedding` would give rows; or a
            reversible one where Keras has none.
    """
    import keras

    split = _as_split(layer)
    if getattr(layer, "combiner", None) is not None:
        raise SplitError(
            f"{layer.name!r} combines rows ({layer.combiner!r}), and a keras.layers.Embedding does not. Pass "
            "layer.to_split() for an Embedding of its rows, and combine what that gives."
        )
    options = {name: getattr(layer, attribute) for name, attribute in _SHARED if hasattr(layer, attribute)}
    kind = keras.layers.Embedding if "tie_weights" not in options else _reversible(keras, layer)
    reverse = getattr(layer, "reverse_embedding", None)
    matrices = iter([split.combine(), *([] if reverse is None else [reverse.to_split().combine().T])])
    # the weights start as the rows: drawing them first would take as long again
    options["embeddings_initializer"] = lambda shape, dtype=None: keras.ops.cast(next(matrices), dtype)
    dense = kind(split.num_tokens, split.dim, **options)
    dense._parent_path = getattr(layer, "_parent_path", None)  # for the path of its variables
    dense.build()
    dense.embeddings_initializer = keras.initializers.get("uniform")
    return dense


def _reversible(keras: Any, layer: Any) -> Any:
    if not hasattr(keras.layers, "ReversibleEmbedding"):
        raise SplitError(
            f"Keras {keras.__version__} has no ReversibleEmbedding, which {layer.name!r} would become. Update Keras, "
            "or pass layer.to_split() for an Embedding of its rows."
        )
    return keras.layers.ReversibleEmbedding


def export_vectors(
    path: str | os.PathLike[str],
    source: Any,
    *,
    format: str = GLOVE,  # noqa: A002
    skip_unwritable: bool = False,
) -> list[str]:
    """Writes every token with its row as a file of vectors that other tools read; the inverse of `read_vectors`.

    >>> import tempfile
    >>> from splitembed import read_vectors
    >>> split = SplitTable.from_matrix([[0.0, 0.0], [0.1, -2.0]], [1], vocabulary=["", "the"], padding=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     left_out = export_vectors(f"{folder}/v.bin", split, format="word2vec-binary", skip_unwritable=True)
    ...     vectors = read_vectors(f"{folder}/v.bin")
    >>> left_out, vectors.words, vectors.vectors.tolist() == split.lookup([1]).tolist()
    ([''], ['the'], True)

    The file is written in blocks, so memory holds the tokens and some MB. As text a number is the shortest decimal that
    float32 reads back as the same bits.

    Args:
        path: the file to make or replace, as a whole and at once.
        source: a `SplitTable`, or a `SplitEmbedding` with its rows as trained so far; a frozen.h5 by its path or as
            `FrozenTable`, without its zero row; `WordVectors`.
        format: "glove", text without a header; "word2vec", text with one; "word2vec-binary".
        skip_unwritable: leave out tokens that cannot stand in such a file, such as the padding token "", instead of
            refusing them.

    Returns:
        The tokens that were left out.

    Raises:
        VocabularyError: a token that cannot stand in such a file (empty, with white space, not Unicode, or the same as
            an earlier one); or none that can.
        SplitError: a source that is none of these or has no words; a row that is not finite.
        VectorFormatError: a `format` that is none of the three.
        TableFormatError, OSError: the frozen.h5 cannot be read.
    """
    words, rows, dim = _words_and_rows(source)
    if words is None:
        raise SplitError(
            f"{source!r} has no words to write its rows by: its ids have no strings. Pass "
            "WordVectors(words, split.combine()) with words of your own."
        )
    return write_vectors(path, words, rows, dim, format, skip_unwritable=skip_unwritable)


def _words_and_rows(source: Any) -> tuple[Sequence[str] | None, Rows, int]:
    """The words of a source, what gives their rows by place, and the length of a row."""
    if isinstance(source, str | os.PathLike):
        source = open_frozen(source)
    if isinstance(source, WordVectors):
        return source.words, source.vectors.__getitem__, source.dim
    if isinstance(source, FrozenTable):
        return _without_zero_row(source)
    split = _as_split(source)
    return split.vocabulary, split.lookup, split.dim


def _without_zero_row(table: FrozenTable) -> tuple[Sequence[str] | None, Rows, int]:
    if table.words is None or table.zero_row is None:
        return table.words, table.take, table.dim
    kept = np.delete(np.arange(table.num_frozen), table.zero_row)
    return [table.words[row] for row in kept.tolist()], lambda places: table.take(kept[places]), table.dim


def _as_split(split_or_layer: Any) -> SplitTable:
    if isinstance(split_or_layer, SplitTable):
        return split_or_layer
    if hasattr(split_or_layer, "to_split"):
        split: SplitTable = split_or_layer.to_split()
        return split
    kind = type(split_or_layer).__name__
    raise SplitError(f"A SplitTable or a SplitEmbedding is needed. Received: {split_or_layer!r} (of type {kind}).")
