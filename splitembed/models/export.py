"""Export a layer or a split: as a dense Keras layer, as a file of vectors, or as the small trainable table alone."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from splitembed.errors import SplitError
from splitembed.split.table import split_of
from splitembed.tables import FrozenTable, open_frozen
from splitembed.vectors import WordVectors
from splitembed.vectors.write import GLOVE, Rows, write_vectors

PROJECTOR = "projector"
# options that an embedding of Keras and a split one have in common, and those of a reversible one
OPTIONS = ("name", "embeddings_regularizer", "embeddings_constraint", "activity_regularizer")
LOGITS_OPTIONS = ("tie_weights", "logit_soft_cap", "reverse_dtype")


def save_trainable(path: str | os.PathLike[str], split_or_layer_or_model: Any) -> None:
    """Write the small table alone: trainable rows, remap and vocabulary; for an untied layer, both its tables.

    ```python
    splitembed.save_trainable("tools.h5", model)    # some kB, for load_trainable and the same base model
    ```

    Args:
        path: the file to write; an existing one is replaced as a whole.
        split_or_layer_or_model: a `SplitTable`; a `SplitEmbedding` with its rows as trained so far; or a model with
            one such layer.

    Raises:
        SplitError: the argument has another type; or the model has no such layer, or several.
    """
    source = split_or_layer_or_model
    # a Keras model; Keras is not imported for a split alone
    if hasattr(source, "layers"):
        from splitembed.models.find_embedding import find_split

        source = find_split(source)
    reverse = getattr(source, "reverse_embedding", None)
    split_of(source, "split_or_layer_or_model").save_trainable(
        path, reverse=None if reverse is None else reverse.to_split()
    )


def to_dense(layer: Any) -> Any:
    """Make a plain Keras layer of the same rows; it needs `(num_tokens, dim)` float32 of memory.

    Args:
        layer: a `SplitEmbedding`, a `SplitReversibleEmbedding`, or a `SplitTable`.

    Returns:
        A built `keras.layers.Embedding`, or of a reversible layer a `keras.layers.ReversibleEmbedding`, with the same
        name, dtype policy and options; all its rows train unless its `trainable` is set to False. Frozen rows of low
        precision are widened to float32.

    Raises:
        SplitError: the argument has another type; the layer has a combiner, which an `Embedding` does not support; or
            it is reversible and this Keras has no `ReversibleEmbedding`.
    """
    import keras

    from splitembed.models.swap_layer import build_like

    split = split_of(layer, "layer")
    if getattr(layer, "combiner", None) is not None:
        raise SplitError(
            f"{layer.name!r} combines rows ({layer.combiner!r}), and a keras.layers.Embedding does not. Pass "
            "layer.to_split() for an Embedding of its rows, and combine its output."
        )
    names = (*OPTIONS, *LOGITS_OPTIONS, "mask_zero")
    options = {name: getattr(layer, name) for name in names if hasattr(layer, name)}
    options["dtype"] = getattr(layer, "dtype_policy", None)
    kind = keras.layers.Embedding if "tie_weights" not in options else _reversible(keras, layer)
    reverse = getattr(layer, "reverse_embedding", None)
    matrices = iter([split.combine(), *([] if reverse is None else [reverse.to_split().combine().T])])
    # the weights start as the rows: drawing random ones first would double the time
    options["embeddings_initializer"] = lambda shape, dtype=None: keras.ops.cast(next(matrices), dtype)
    dense = kind(split.num_tokens, split.dim, **options)
    build_like(dense, layer)
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
    before: Any = None,
) -> list[str]:
    """Write every token with its row as a file of vectors that other tools read: the inverse of `read_vectors`.

    >>> import tempfile
    >>> from splitembed import SplitTable, read_vectors
    >>> split = SplitTable.from_matrix([[0.0, 0.0], [0.1, -2.0]], [1], vocabulary=["", "the"], padding=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     left_out = export_vectors(f"{folder}/v.bin", split, format="word2vec-binary", skip_unwritable=True)
    ...     vectors = read_vectors(f"{folder}/v.bin")
    >>> left_out, vectors.words, vectors.vectors.tolist() == split.lookup([1]).tolist()
    ([''], ['the'], True)

    The file is written in blocks, so memory holds the tokens and some MB. As text a number is the shortest decimal that
    float32 reads back as the same bits.

    Args:
        path: the file to write, for "projector" the folder; an existing file is replaced as a whole.
        source: a `SplitTable`, or a `SplitEmbedding` with its rows as trained so far; a frozen.h5 by its path or as
            `FrozenTable`, without its zero row; or `WordVectors`.
        format: "glove", text without a header; "word2vec", text with one; "word2vec-binary"; or "projector", a folder
            for TensorBoard's Projector: vectors.tsv, and metadata.tsv with the token, the id and "frozen" or
            "trainable" for each row. `tensorboard --logdir folder` opens it.
        skip_unwritable: leave out tokens that such a file cannot contain, such as the padding token "", instead of
            raising an error. The Projector's files can contain every token.
        before: for "projector", the split or layer before training: rows that training moved are marked "moved".

    Returns:
        The tokens that were left out.

    Raises:
        VocabularyError: such a file cannot contain one of the tokens (empty, with white space, not Unicode, or a
            duplicate), or any of them.
        SplitError: the source has another type or no words; or a row is not finite.
        VectorFormatError: `format` is not one of the four.
        TableFormatError, OSError: the frozen.h5 cannot be read.
    """
    if format == PROJECTOR:
        from splitembed.models.projector import write_projector

        write_projector(path, split_of(source, "source"), before)
        return []
    if before is not None:
        raise SplitError(f'`before` is for format="projector". Received: format={format!r}.')
    words, rows, dim = _words_and_rows(source)
    if words is None:
        raise SplitError(
            f"{source!r} has no words to write with its rows: its ids have no strings. Pass "
            "WordVectors(words, split.combine()) with a word for each row."
        )
    return write_vectors(path, words, rows, dim, format, skip_unwritable=skip_unwritable)


def _words_and_rows(source: Any) -> tuple[Sequence[str] | None, Rows, int]:
    """Return the words of a source, a function that returns the rows at positions, and the dim."""
    if isinstance(source, str | os.PathLike):
        source = open_frozen(source)
    if isinstance(source, WordVectors):
        return source.words, source.vectors.__getitem__, source.dim
    if isinstance(source, FrozenTable):
        return _without_zero_row(source)
    split = split_of(source, "source")
    return split.vocabulary, split.lookup, split.dim


def _without_zero_row(table: FrozenTable) -> tuple[Sequence[str] | None, Rows, int]:
    if table.words is None or table.zero_row is None:
        return table.words, table.take, table.dim
    kept = np.delete(np.arange(table.num_frozen), table.zero_row)
    return [table.words[row] for row in kept.tolist()], lambda positions: table.take(kept[positions]), table.dim
