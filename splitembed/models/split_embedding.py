"""Split an embedding of a pretrained model in place, and combine it again."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import NO_ROW
from splitembed.errors import SplitError
from splitembed.initializers.by_name import Initializer, Seed
from splitembed.keras_compat import all_layers
from splitembed.layers.embedding import SplitEmbedding
from splitembed.layers.reversible import SplitReversibleEmbedding
from splitembed.lookup.choose_backend import choose_backend
from splitembed.models.export import LOGITS_OPTIONS, OPTIONS, to_dense
from splitembed.models.find_embedding import REVERSIBLE, find_embedding, splits_in
from splitembed.models.new_tokens import warn_of_heads, warn_of_unknown
from splitembed.models.swap_layer import build_like, swap_layer
from splitembed.models.token_names import Names, TokenizerIndex, names_of, tokenizer_of
from splitembed.models.trainable_flags import FlagsBefore
from splitembed.optimizers.optimizer_state import RowSource
from splitembed.split.table import SplitTable


def split_embedding(
    model: Any,
    trainable_tokens: Any = (),
    new_tokens: int | Sequence[str] | Mapping[str, int] = 0,
    initializer: Initializer = "mean",
    *,
    like: Mapping[Any, Any] | None = None,
    layer: Any = None,
    vocabulary: Any = None,
    seed: Seed = None,
    also: Sequence[Any] = (),
) -> Any:
    """Split an embedding of a pretrained model in place, so that only the rows of chosen and new tokens train.

    ```python
    lm = keras_hub.models.CausalLM.from_preset("gemma_2b_en")
    lm.backbone.trainable = False
    splitembed.split_embedding(lm, new_tokens=["<call>", "<result>"])    # ids 256000 and 256001
    lm.fit(...)                                                          # two rows train
    splitembed.save_trainable("tools.h5", lm)                            # some kB
    ```

    Every output stays the same to the bit, and so does the `trainable` flag of every other layer; in a model that was
    frozen as a whole, one layer trains now. The model's table becomes the frozen one without a copy, so that it has the
    same fingerprint in every model that was made of this base. A compiled model stays compiled, and its optimizer keeps
    its state.

    Name models around `model` in `also`. One that is not handed over calls the new layer, but the functions that it has
    already compiled keep the old table: its `predict`, `fit` and `generate` continue to compute with the rows from
    before the split, and train those, until it is compiled again.

    New tokens in the tokenizer: a text that is generated, or given to a task, goes through its tokenizer, which must
    have the new tokens at the same ids. KerasHub's tokenizers are made anew, of what they were made of and of the new
    tokens, and the task with them; docs/language_models.md has the code.

    - Byte pairs (GPT-2, Llama 3, Qwen): `vocabulary={**old, "<call>": 151_646}`, the old `merges`, and the names in
      `unsplittable_tokens`.
    - WordPiece (BERT, DistilBERT): `vocabulary=[*old, "<call>"]` and `special_tokens_in_strings=True`, with the names
      in `special_tokens`.
    - SentencePiece (Gemma, Llama 2, T5): a `proto` with a user-defined piece for each name.

    A model that Keras rebuilds from constructor arguments, such as KerasHub's, cannot be saved as a `.keras` file or
    a preset while it is split: `save`, `save_to_preset` and similar methods raise an error. Weights files work, and
    `save_trainable` writes the small table. A model whose config describes its layers is saved whole. As with every
    Keras model, the file has the `trainable` flags of these layers, and not those of the layers that they make, such as
    in a `MultiHeadAttention`: before you train a loaded model, set the flag of such a layer to True and to False again.

    Args:
        model: a Keras model with a `keras.layers.Embedding` or `ReversibleEmbedding`, tied or not, such as a KerasHub
            backbone or task. Give the outermost model.
        trainable_tokens: those of the model's tokens whose rows train: ids, a boolean mask, or tokens.
        new_tokens: the number of tokens to add, or a name for each, or a dict name -> id. Their ids are those that a
            tokenizer gives them when it grows: they follow the last token of the vocabulary, and first use the rows of
            a padded table that have no token. A dict names the ids of another numbering. Rows that exist start again.
            Names are kept where `vocabulary` is given.
        initializer: the start of new rows, as in `build_split`; "mean" is the mean of the model's rows, with which a
            new token's logit is at first the mean of all others, so that it takes little from the likely ones.
        like: for the name or the id of a new token, what it starts like: a text, which the model's tokenizer reads, or
            tokens and ids. Its row is the mean of their rows, in each table where weights are not tied, as in
            `like={"<call>": "call a tool", "Krankenwagen": [17, 903, 44]}`.
        layer: the embedding or its name, where there are several; by default what KerasHub calls `token_embedding`.
        vocabulary: the tokens in id order, as `read_vocabulary` takes them, or a KerasHub tokenizer; by default the
            tokenizer of a KerasHub task, for this call alone. It may be shorter than the table, where that was padded,
            or continue with the names of new tokens. The split keeps a list that names every row.
        seed: for the initializer.
        also: models around `model`, such as a KerasHub task whose backbone is given. They are compiled again too.

    Returns:
        The model: the same object, in which the same layer is a `SplitEmbedding` or `SplitReversibleEmbedding` now.

    Raises:
        SplitError: the model has no such embedding, or several; it is quantized, has LoRA or is of a class that
            computes differently; nothing would train; a layer was built for the old number of tokens; or a model in
            `also` does not hold the embedding. The model is as it was then.
        TokenIdError, UnknownTokenError: a token is not in the model.

    Warns:
        NewTokenWarning: the tokenizer of the model, or of one in `also`, does not have the new tokens at their ids; or
            a `Dense` layer has an output for each former token, and none for the new ones.
    """
    dense = find_embedding(model, layer)
    names = names_of(model, vocabulary, dense.input_dim)
    ids, new = names.chosen(trainable_tokens), names.new(new_tokens)
    if not len(ids) + len(new.ids):
        raise SplitError("Nothing would train: name `trainable_tokens`, `new_tokens` or both.")
    others = names.like(like, new)
    splits = [new.rows_of(_named(table, names), ids, initializer, seed, others) for table in tables_of(dense)]
    made, rows = split_like(dense, *splits), new.rows_before(splits[0])
    sources = {id(made.trainable_rows): RowSource(dense.embeddings, rows)}
    if len(splits) == 2:
        sources[id(made.reverse_embedding.trainable_rows)] = RowSource(dense.reverse_embeddings, rows, "old")
    swap_layer(model, dense, made, sources, also)
    tokenizers = [each for each in map(tokenizer_of, (model, *also)) if each is not None]
    warn_of_unknown(new, tokenizers, [TokenizerIndex(each) for each in tokenizers])
    warn_of_heads(new, [] if isinstance(made, SplitReversibleEmbedding) else all_layers(model))
    return model


def combine_embedding(model: Any, *, also: Sequence[Any] = ()) -> Any:
    """Turn every split embedding of a model into a plain Keras layer in place: the inverse of `split_embedding`.

    The layer has a row for each token, `(num_tokens, dim)`, and the `trainable` flag from before the split; after
    loading from a file, True. A model that was frozen as a whole is frozen again. Where a model stores its rows in 16
    bits, trained rows are rounded to them.

    Args:
        model: a Keras model. It needs nothing of splitembed afterwards.
        also: models around `model`, as in `split_embedding`.

    Returns:
        The model: the same object.

    Raises:
        SplitError: the model has no split embedding, or one with a combiner.
    """
    layers = splits_in(model)
    if not layers:
        raise SplitError(f"{getattr(model, 'name', model)!r} has no SplitEmbedding to combine.")
    made = [to_dense(layer) for layer in layers]
    for layer, dense in zip(layers, made, strict=True):
        dense.trainable = FlagsBefore.of(layer).of_plain_layer(layer)
        sources = {id(dense.embeddings): RowSource(layer.trainable_rows, _trainable_row_of_ids(layer))}
        reverse = getattr(layer, "reverse_embedding", None)
        if reverse is not None:
            rows = _trainable_row_of_ids(reverse)
            sources[id(dense.reverse_embeddings)] = RowSource(reverse.trainable_rows, rows, "new")
        swap_layer(model, layer, dense, sources, also)
    return model


def _trainable_row_of_ids(layer: Any) -> NDArray[np.int64]:
    return np.maximum(~layer.to_split().remap.astype(np.int64), NO_ROW)


def tables_of(dense: Any) -> list[SplitTable]:
    """Return the tables of a plain embedding as splits without trainable rows: that of the ids, and of untied logits.

    The rows are shared with the layer wherever the backend allows it.
    """
    weights = [choose_backend().stored_rows(dense.embeddings)]
    if REVERSIBLE is not None and isinstance(dense, REVERSIBLE) and not dense.tie_weights:
        weights.append(np.ascontiguousarray(choose_backend().stored_rows(dense.reverse_embeddings).T))
    return [_all_frozen(rows, dense.embeddings.dtype) for rows in weights]


def split_like(dense: Any, split: SplitTable, reverse_split: SplitTable | None = None) -> SplitEmbedding:
    """Make a split layer with the options of a plain one, and build it."""
    options = {name: getattr(dense, name) for name in OPTIONS if getattr(dense, name, None)}
    options["dtype"] = dense.dtype_policy
    made: SplitEmbedding
    if REVERSIBLE is not None and isinstance(dense, REVERSIBLE):
        options |= {name: getattr(dense, name) for name in LOGITS_OPTIONS}
        made = SplitReversibleEmbedding(split, reverse_split=reverse_split, **options)
    else:
        made = SplitEmbedding(split, **options)
    made.copies_rows = True
    build_like(made, dense)
    # a pretrained model masks id 0 even if its row is not zero
    made.mask_zero = made.supports_masking = dense.mask_zero
    return made


def _all_frozen(rows: NDArray[Any], dtype: str) -> SplitTable:
    remap = np.arange(len(rows), dtype=np.int32)
    return SplitTable(rows, remap, np.empty((0, rows.shape[1]), np.float32), frozen_dtype=dtype)


def _named(table: SplitTable, names: Names) -> SplitTable:
    return table if names.tokens is None else table.with_parts(vocabulary=names.tokens[: table.num_tokens])
