"""The Keras layer SplitEmbedding, which looks up token ids in a split and trains only its trainable rows."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from splitembed.errors import SplitError
from splitembed.keras_compat import writes_legacy_file
from splitembed.layers.row_updates import RowUpdates
from splitembed.layers.saving import VARIABLE, SavesSplit
from splitembed.layers.spec import LIVE, SplitSpec, summarize
from splitembed.layers.whole_table import WholeTable
from splitembed.lookup.backend import Combiner, Form, Gradient
from splitembed.lookup.choose_backend import choose_backend
from splitembed.lookup.dropout import checked_rate, make_drop
from splitembed.lookup.id_checks import refusal_of_dtype
from splitembed.lookup.static import check_weights_shape
from splitembed.split.table import SplitTable

# the values with which TensorFlow takes Keras 2 as tf.keras
_LEGACY = ("1", "true", "True")
_IS_TENSORFLOW = keras.backend.backend() == "tensorflow"


class LayerCall(NamedTuple):
    """One call of a layer: the ids with the weights of a combiner and the output; or hidden states with the logits."""

    inputs: Any
    weights: Any
    output: Any
    is_reverse: bool = False


@keras.saving.register_keras_serializable(package="splitembed")
class SplitEmbedding(RowUpdates, SavesSplit):
    """An embedding layer with frozen rows in a constant and trainable rows in its only weight.

    ```python
    ids = keras.Input((None,), dtype="int32")
    rows = splitembed.SplitEmbedding(split)(ids)     # (batch, length, dim)
    ```

    Args:
        split: the `SplitTable` to look up in. Its frozen rows and remap are used without a copy.
        mask_zero: whether to mask id 0, which must be the padding of the split. Keras's `GlobalAveragePooling1D`
            divides by the number of unmasked ids: an example of padding alone is 0 / 0 there, NaN, which ruins the
            training of any model. `combiner="mean"` gives zeros for it.
        embeddings_regularizer: a regularizer of the trainable rows.
        embeddings_constraint: a constraint on the trainable rows.
        combiner: None for one row per id; "mean", "sum" or "sqrtn" to combine the rows along the last axis of the ids
            during the lookup, which is faster and takes less memory than pooling afterwards. With `mask_zero`, padding
            does not count.
        trainable_dropout: the probability, `0 <= p < 1`, with which each occurrence of a trainable row is replaced by
            zeros in training, so that rare tokens overfit less. Other rows are not scaled up. Choose the probability
            on validation data.
        seed: an integer seed for `trainable_dropout`; None for a new seed for each layer.
        gradient: the form of the gradient of the trainable rows. "dense" works with every optimizer; "sparse", row
            slices, is for `LazyAdam`; "auto" is sparse if `LazyAdam` requests it, else dense.
        lookup: the form of the lookup. "dynamic" costs time in proportion to the distinct trainable rows of a batch,
            and needs TensorFlow without XLA; "static" has fixed shapes, for XLA, LiteRT, ONNX, JAX and PyTorch, and a
            dense gradient; "auto" chooses when the call is traced.
        save_by_reference: False to write the frozen table into every `.keras` file, also at each epoch of a
            `ModelCheckpoint`; True to write only the fingerprint of its frozen.h5. Loading finds the file in a folder
            of the environment variable SPLITEMBED_PATH. The path is recorded for people: loading opens no path that
            an archive names.
        **kwargs: `name`, `dtype`, `trainable`, as in any Keras layer. The rows are float32 under every dtype policy.

    Input shape:
        ids: integers of any shape, also ragged; each in `0 <= id < num_tokens`.
        weights: with a combiner, optional floats of the shape of the ids, as in `layer(ids, weights)`. "sum" adds the
            weighted rows, "mean" divides their sum by the sum of the weights, "sqrtn" by the root of the sum of the
            squared weights. A row dropped by `trainable_dropout` adds nothing to the sum, and counts in the divisor.
        training: whether to drop rows: True under `fit`, False under `predict` and in every export.

    Output shape:
        `ids.shape + (dim,)`, or with a combiner `ids.shape[:-1] + (dim,)`, in the compute dtype of the layer. An
        empty bag, or one whose weights sum to zero, is zero.

    Attributes:
        embeddings: the whole table, read-only, `(num_tokens, dim)` float32: `layer.embeddings[ids]` makes some of its
            rows, and `np.asarray(layer.embeddings)` all. `layer.get_weights()[0]` has the trainable rows alone.

    Raises:
        TokenIdError: an id out of range (in a compiled model, `tf.errors.InvalidArgumentError` with the same message).
        MissingTableError: the layer was made from a config, and its tables have not been loaded.
        SplitError: invalid arguments, or an environment of Keras 2.
    """

    # True in a converted pretrained model, so that its other layers round as before the split: see `in_place` of
    # `lookup.dynamic.look_up`
    copies_rows = False
    # whether the frozen rows are stored as columns, for a table that is only multiplied
    is_transposed = False
    # receives the calls in a block of `observed`
    _observe: Callable[[LayerCall], None] | None = None

    def __init__(
        self,
        split: SplitTable | SplitSpec,
        mask_zero: bool = False,
        *,
        embeddings_regularizer: Any = None,
        embeddings_constraint: Any = None,
        combiner: Combiner | None = None,
        trainable_dropout: float = 0.0,
        seed: int | None = None,
        gradient: Gradient = "auto",
        lookup: Form = "auto",
        save_by_reference: bool = False,
        **kwargs: Any,
    ) -> None:
        _refuse_keras_2()
        # float ids must not be rounded to float16
        super().__init__(autocast=False, save_by_reference=save_by_reference, **kwargs)
        if not isinstance(split, SplitTable | SplitSpec):
            raise SplitError(f"`split` must be a SplitTable. Received: {split!r} (of type {type(split).__name__}).")
        if gradient not in ("auto", "dense", "sparse"):
            raise SplitError(f'`gradient` must be "auto", "dense" or "sparse". Received: {gradient!r}.')
        if lookup not in ("auto", "dynamic", "static"):
            raise SplitError(f'`lookup` must be "auto", "dynamic" or "static". Received: {lookup!r}.')
        if lookup == "static" and gradient == "sparse":
            raise SplitError('The static lookup has a dense gradient: set `gradient` or `lookup` to "auto".')
        if lookup == "dynamic" and not _IS_TENSORFLOW:
            raise SplitError(
                f'The dynamic lookup needs TensorFlow. Received: lookup="dynamic" on {keras.backend.backend()}. '
                f'Use "static" or "auto".'
            )
        if combiner not in (None, "mean", "sum", "sqrtn"):
            raise SplitError(f'`combiner` must be None, "mean", "sum" or "sqrtn". Received: {combiner!r}.')
        if mask_zero and split.padding != 0:
            raise SplitError(
                f"`mask_zero` masks id 0, but this split's padding is {split.padding}: id 0 would be a word that every "
                f'later layer ignores. Put "" first in the vocabulary; or, if id 0 is a padding token of another '
                f"name, pass padding=0 to build_split; or remove mask_zero."
            )
        self.input_dim, self.output_dim = split.num_tokens, split.dim
        self.num_frozen, self.num_trainable = split.num_frozen, split.num_trainable
        self.frozen_dtype = split.frozen_dtype
        self.mask_zero = self.supports_masking = mask_zero
        self.embeddings_regularizer = keras.regularizers.get(embeddings_regularizer)
        self.embeddings_constraint = keras.constraints.get(embeddings_constraint)
        self.combiner, self.gradient, self.lookup = combiner, gradient, lookup
        self.trainable_dropout, self.seed = checked_rate(trainable_dropout), seed
        if self.trainable_dropout:
            self.seed_generator = choose_backend().seed_generator(seed)
        self.supports_jit = lookup != "dynamic"
        # on JAX and PyTorch, ids are checked before Keras converts them to a narrower dtype
        self._convert_input_args = _IS_TENSORFLOW
        self._allow_non_tensor_positional_args = not _IS_TENSORFLOW
        self._spec = split if isinstance(split, SplitSpec) else None
        self._split = split if isinstance(split, SplitTable) else None
        # the frozen rows and the remap in the form of the backend
        self._constants: Any = None

    def build(self, ids_shape: Any = None, weights_shape: Any = None) -> None:
        """Make the weight, and keep the frozen rows and the remap: on TensorFlow as constants, elsewhere as weights."""
        self.trainable_rows = self.add_weight(
            name=VARIABLE,
            shape=(self.num_trainable, self.output_dim),
            dtype="float32",
            initializer=self._initial_rows,
            regularizer=self.embeddings_regularizer,
            constraint=self.embeddings_constraint,
            # Keras warns about a trainable weight without rows
            trainable=self.num_trainable > 0,
            autocast=False,
        )
        self._hold_tables()
        self.built = True

    def call(self, ids: Any, weights: Any = None, training: bool | None = None) -> Any:
        """Return the rows of the ids, combined if the layer has a combiner."""
        if weights is not None and self.combiner is None:
            raise SplitError("`weights` are for a layer with a combiner. Received: weights, and combiner=None.")
        if self._split is None:
            shape = self.compute_output_shape(ids.shape)
            return choose_backend().without_tables(shape, self.compute_dtype, self._missing())
        drop = make_drop(self.trainable_dropout, self.seed_generator) if training and self.trainable_dropout else None
        rows = choose_backend().embed(self, ids, weights, self._constants, drop)
        self._report(LayerCall(ids, weights, rows))
        return rows

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Return a mask that is False at padding; None without `mask_zero`, for bags and for ragged ids."""
        if not self.mask_zero or self.combiner is not None or choose_backend().is_ragged(inputs):
            return None
        return ops.not_equal(inputs, 0)

    def compute_output_shape(self, ids_shape: Any, weights_shape: Any = None) -> tuple[int | None, ...]:
        """Return `ids.shape + (dim,)`, or with a combiner `ids.shape[:-1] + (dim,)`."""
        if weights_shape is not None:
            check_weights_shape(tuple(weights_shape), tuple(ids_shape))
        kept = tuple(ids_shape) if self.combiner is None else tuple(ids_shape)[:-1]
        return (*kept, self.output_dim)

    def compute_output_spec(self, ids: Any, weights: Any = None, training: bool | None = None) -> Any:
        """Return the symbolic output, with its shape and dtype."""
        if getattr(ids, "sparse", False):
            raise SplitError("`ids` must be dense or ragged. Received: sparse ids. Use keras.Input(..., sparse=False).")
        refusal = refusal_of_dtype(keras.backend.standardize_dtype(ids.dtype), self.input_dim)
        if refusal:
            raise SplitError(refusal)
        ragged = {"ragged": True} if choose_backend().is_ragged(ids) and self.combiner is None else {}
        shape = self.compute_output_shape(ids.shape, getattr(weights, "shape", None))
        return keras.KerasTensor(shape, dtype=self.compute_dtype, **ragged)

    @property
    def embeddings(self) -> WholeTable:
        """The whole table, read-only, with the current values of the trainable rows."""
        return WholeTable(self.to_split, (self.input_dim, self.output_dim))

    @contextmanager
    def observed(self, observe: Callable[[LayerCall], None]) -> Iterator[None]:
        """Pass each call of the layer in a block to a function, which must not change it.

        The function gets the very tensors that the model computes with, so that a `tf.GradientTape` can watch the
        output. In a graph, that is when the call is traced.
        """
        self._observe = observe
        try:
            yield
        finally:
            self._observe = None

    def to_split(self) -> SplitTable:
        """Return the split with the current trainable rows; the frozen rows are shared, not copied."""
        split = self._loaded_split()
        return split.with_trainable(self._rows()) if self.built else split

    def on_split(self, split: SplitTable) -> "SplitEmbedding":
        """Return an unbuilt layer with the same options on another split."""
        return self._with_attributes(SplitEmbedding(split, **self._options()))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the layer, with the sizes and fingerprints of the split in its place.

        Raises:
            SplitError: Keras asks for it to write a legacy `.h5` file, which cannot hold the tables.
        """
        if writes_legacy_file():
            raise SplitError(
                f"Layer {self.name!r} cannot be saved in a legacy .h5 file, which holds no tables: it would load with "
                f"rows of other tokens, or not at all. Save the model to a path that ends in .keras. Keras has opened "
                f"the .h5 file already, and emptied it if it existed."
            )
        return {
            **super().get_config(),
            "split": asdict(self._described()),
            "mask_zero": self.mask_zero,
            "embeddings_regularizer": keras.regularizers.serialize(self.embeddings_regularizer),
            "embeddings_constraint": keras.constraints.serialize(self.embeddings_constraint),
            "combiner": self.combiner,
            "trainable_dropout": self.trainable_dropout,
            "seed": self.seed,
            "gradient": self.gradient,
            "lookup": self.lookup,
            "save_by_reference": self.save_by_reference,
            **({"copies_rows": True} if self.copies_rows else {}),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "SplitEmbedding":
        """Return a layer on the live split with these fingerprints, or a layer without tables until they are loaded."""
        spec = SplitSpec.from_config(config["split"])
        options = {name: value for name, value in config.items() if name != "copies_rows"}
        layer = cls(**{**options, "split": LIVE.get(spec) or spec, "mask_zero": False})
        layer.copies_rows = config.get("copies_rows", False)
        # the first layer checked it, or it comes from a pretrained model
        layer.mask_zero = layer.supports_masking = config["mask_zero"]
        return layer

    def quantize(self, mode: Any = None, **kwargs: Any) -> None:
        """Refuse quantization: frozen rows can be stored in int8 from the start, and trainable rows are float32.

        Raises:
            NotImplementedError: always; `model.quantize` then keeps the layer unchanged, and warns.
        """
        raise NotImplementedError(
            f"Layer {self.name!r}, a {type(self).__name__}, is not quantized in place. Make it from a split whose "
            f'frozen rows are narrow: build_split(..., frozen_dtype="int8"), or split.with_frozen_dtype("int8"), which '
            f"replace_split puts into a model."
        )

    def enable_lora(self, rank: int, **kwargs: Any) -> None:
        """Refuse LoRA: rows that must adapt are trainable rows, and the others never change.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            f"Layer {self.name!r}, a SplitEmbedding, does not support LoRA. Pass the tokens that must adapt as "
            f"`trainable_tokens` to build_split, or their number as `train_most_frequent`."
        )

    def summary(self) -> str:
        """Return a printable table: rows, numbers and bytes of the frozen and trainable parts, and of a dense layer."""
        return summarize(self._described())

    def _options(self) -> dict[str, Any]:
        """Return the arguments of the constructor except the split and `mask_zero`, which depends on the split."""
        keras_options = ("name", "trainable", "activity_regularizer", "embeddings_regularizer", "embeddings_constraint")
        own_options = ("combiner", "trainable_dropout", "seed", "gradient", "lookup", "save_by_reference")
        names = (*keras_options, *own_options)
        return {"dtype": self.dtype_policy, **{name: getattr(self, name) for name in names}}

    def _with_attributes(self, other: "SplitEmbedding") -> "SplitEmbedding":
        """Copy to another layer the attributes that its constructor has no argument for, or would check."""
        other.copies_rows = self.copies_rows
        other.mask_zero = other.supports_masking = self.mask_zero
        return other

    def _report(self, call: LayerCall) -> None:
        if self._observe is not None:
            self._observe(call)

    def _hold_tables(self) -> None:
        self._constants = choose_backend().hold_tables(self, self._split, self._constants)

    def _initial_rows(self, shape: Any, dtype: Any = None) -> Any:
        rows = np.zeros(shape, np.float32) if self._split is None else self._split.trainable
        return choose_backend().initial_rows(rows)


def _refuse_keras_2() -> None:
    value = os.environ.get("TF_USE_LEGACY_KERAS")
    if _IS_TENSORFLOW and value in _LEGACY:
        raise SplitError(
            f"The environment variable TF_USE_LEGACY_KERAS={value} makes tf.keras Keras 2, whose models cannot use "
            f"this layer of Keras {keras.__version__}. Unset the variable before TensorFlow is imported."
        )
