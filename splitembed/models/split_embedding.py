"""A model goes in; out comes the same one, in which an embedding is split, or whole again."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import SplitError
from splitembed.initializers.by_name import Initializer, Seed
from splitembed.layers.embedding import SplitEmbedding
from splitembed.layers.reversible import SplitReversibleEmbedding
from splitembed.layers.spec import LIVE, SplitSpec
from splitembed.lookup.choose_backend import choose_backend
from splitembed.models.export import to_dense
from splitembed.models.find_embedding import REVERSIBLE, find_embedding, layers_in
from splitembed.models.owners import put_split
from splitembed.models.token_names import Names, names_of
from splitembed.models.trainable_flags import Before
from splitembed.optimizers.optimizer_state import Moved
from splitembed.split.table import SplitTable

_SHARED = ("name", "embeddings_regularizer", "embeddings_constraint", "activity_regularizer")


def split_embedding(
    model: Any,
    trainable_tokens: Any = (),
    new_tokens: int | Sequence[str] = 0,
    initializer: Initializer = "mean",
    *,
    layer: Any = None,
    vocabulary: Any = None,
    seed: Seed = None,
) -> Any:
    """Splits an embedding of a pretrained model, in place: of its rows, only the chosen and the new ones train.

    ```python
    lm = keras_hub.models.CausalLM.from_preset("gemma_2b_en")
    lm.backbone.trainable = False
    splitembed.split_embedding(lm, new_tokens=["<call>", "<result>"])    # ids 256000 and 256001
    lm.fit(...)                                                          # two rows train
    splitembed.save_trainable("tools.h5", lm)                            # some kB
    ```

    No output changes by a bit, and neither does any other layer's `trainable`; a model that was frozen as a whole holds
    one layer that trains now. The table itself becomes the frozen one, untouched and where it lies, so that it has the
    same fingerprint in every model that was made of this base. A compiled model stays so, and its optimizer goes on;
    what else is compiled, and holds the layer too, must be compiled again.

    Args:
        model: any Keras model that has a `keras.layers.Embedding` or `ReversibleEmbedding`, tied or not, such as a
            KerasHub backbone or task. Give the outermost one.
        trainable_tokens: those of the model's tokens whose rows train: ids, a boolean mask, or tokens.
        new_tokens: how many ids follow the model's own, or a name for each. Names are kept where `vocabulary` is given;
            else they are compared with the tokenizer's, and counted.
        initializer: what new rows start as, as `build_split` takes it; "mean" is the mean of the model's own rows, with
            which a new token's logit is at first the mean of all others, so that it draws little from the likely ones.
        layer: the embedding or its name, where there are several; by default what KerasHub calls `token_embedding`.
        vocabulary: the tokens in id order, as `read_vocabulary` takes them, or a KerasHub tokenizer, to name them by;
            by default a KerasHub task's own, for this call. It may end before the table does, as where that was padded,
            or go on with the names of new tokens. The split keeps a list that names every row.
        seed: for the initializer.

    Returns:
        The model: the same object, in which the same layer is a `SplitEmbedding` or `SplitReversibleEmbedding` now.

    Raises:
        SplitError: no such embedding, or several; one that is quantized, has LoRA or is of a class of its own; nothing
            to train; or a layer that was built for the old number of tokens. The model is as it was then.
        TokenIdError, UnknownTokenError: tokens that are not there.
    """
    dense = find_embedding(model, layer)
    names = names_of(model, vocabulary, dense.input_dim)
    ids, new = names.chosen(trainable_tokens), names.new(new_tokens)
    num_new = new if isinstance(new, int) else len(new)
    if not len(ids) + num_new:
        raise SplitError("Nothing would train: name `trainable_tokens`, `new_tokens` or both.")
    splits = [_named(table, names).grow(new, oov_initializer=initializer, seed=seed) for table in tables_of(dense)]
    made = split_like(dense, *(each.thaw(ids) for each in splits))
    rows = np.concatenate([np.full(num_new, -1), ids])
    carried = {id(made.trainable_rows): Moved(dense.embeddings, rows)}
    if len(splits) == 2:
        carried[id(made.reverse_embedding.trainable_rows)] = Moved(dense.reverse_embeddings, rows, "old")
    return put_split(model, dense, made, carried)


def combine_embedding(model: Any) -> Any:
    """Makes every split embedding of a model a plain Keras layer again, in place: the inverse of `split_embedding`.

    The layer has a row for each token, `(num_tokens, dim)`, and the `trainable` flag that it had; after loading from a
    file, True. A model that was frozen as a whole is so again. Where a model stores its rows in 16 bits, those that
    were trained are rounded to them.

    Args:
        model: any Keras model; it needs nothing of splitembed afterwards.

    Returns:
        The model: the same object.

    Raises:
        SplitError: no split embedding in it; or one with a combiner.
    """
    layers = layers_in(model, SplitEmbedding)
    if not layers:
        raise SplitError(f"{getattr(model, 'name', model)!r} has no SplitEmbedding to combine.")
    made = [to_dense(layer) for layer in layers]
    for layer, dense in zip(layers, made, strict=True):
        dense.trainable = Before.of(layer).trains_again(layer)
        carried = {id(dense.embeddings): Moved(layer.trainable_rows, _trainable_row_of_ids(layer))}
        reverse = getattr(layer, "reverse_embedding", None)
        if reverse is not None:
            rows = _trainable_row_of_ids(reverse)
            carried[id(dense.reverse_embeddings)] = Moved(reverse.trainable_rows, rows, "new")
        put_split(model, layer, dense, carried)
    return model


def _trainable_row_of_ids(layer: Any) -> NDArray[np.int64]:
    return np.maximum(~layer.to_split().remap.astype(np.int64), -1)


def tables_of(dense: Any) -> list[SplitTable]:
    """The tables of a plain embedding as splits in which nothing trains; an untied one's second is that of the logits.

    The rows stay where the layer has them wherever the backend allows it.
    """
    weights = [choose_backend().stored_rows(dense.embeddings)]
    if REVERSIBLE is not None and isinstance(dense, REVERSIBLE) and not dense.tie_weights:
        weights.append(np.ascontiguousarray(choose_backend().stored_rows(dense.reverse_embeddings).T))
    return [_all_frozen(rows, dense.embeddings.dtype) for rows in weights]


def split_like(dense: Any, split: SplitTable, reverse_split: SplitTable | None = None) -> SplitEmbedding:
    """Makes a split layer with the options of a plain one, built."""
    options = {name: getattr(dense, name) for name in _SHARED if getattr(dense, name, None)}
    options["dtype"] = dense.dtype_policy
    made: SplitEmbedding
    if REVERSIBLE is not None and isinstance(dense, REVERSIBLE):
        for name in ("tie_weights", "logit_soft_cap", "reverse_dtype"):
            options[name] = getattr(dense, name)
        made = SplitReversibleEmbedding(split, reverse_split=reverse_split, **options)
    else:
        made = SplitEmbedding(split, **options)
    made.copies_rows = True
    made._parent_path = dense._parent_path  # for the path of its variables
    made.build()
    made.mask_zero = made.supports_masking = dense.mask_zero  # a pretrained model masks id 0 whatever its row is
    return made


def split_again(old: Any, split: SplitTable, reverse_split: SplitTable | None = None) -> SplitEmbedding:
    """Makes a split layer with the options of another one, on other splits; built if that is."""
    config = {**old.get_config(), "split": _live(split)}
    if reverse_split is not None:
        config["reverse_split"] = _live(reverse_split)
    new: SplitEmbedding = type(old).from_config(config)
    new._parent_path = old._parent_path
    if old.built:
        new.build()
    return new


def _live(split: SplitTable) -> dict[str, Any]:
    """What a config says of a split, which is found by it as long as it is in use."""
    spec = SplitSpec.of(split)
    LIVE[spec] = split
    return asdict(spec)


def _all_frozen(rows: NDArray[Any], dtype: str) -> SplitTable:
    remap = np.arange(len(rows), dtype=np.int32)
    return SplitTable(rows, remap, np.empty((0, rows.shape[1]), np.float32), frozen_dtype=dtype)


def _named(table: SplitTable, names: Names) -> SplitTable:
    return table if names.tokens is None else table.with_parts(vocabulary=names.tokens[: table.num_tokens])
