"""SplitEmbedding, the Keras layer that looks token ids up in a split and trains its trainable rows alone."""

from dataclasses import asdict
from typing import Any

import keras
import numpy as np
from keras import ops

from splitembed.errors import SplitError
from splitembed.layers.row_updates import RowUpdates
from splitembed.layers.saving import ROWS, SavesSplit
from splitembed.layers.spec import LIVE, SplitSpec, summarize
from splitembed.lookup.backend import Combiner, Form, Gradient
from splitembed.lookup.choose_backend import choose_backend
from splitembed.lookup.dropout import checked_rate, make_drop
from splitembed.lookup.id_checks import refusal_of_dtype
from splitembed.lookup.static import check_weights_shape
from splitembed.split.table import SplitTable

_IS_TENSORFLOW = keras.backend.backend() == "tensorflow"


@keras.saving.register_keras_serializable(package="splitembed")
class SplitEmbedding(RowUpdates, SavesSplit):
    """Looks up a row for each token id: frozen rows from a constant, trainable rows from the layer's only weight.

    ```python
    ids = keras.Input((None,), dtype="int32")
    rows = splitembed.SplitEmbedding(split)(ids)     # (batch, length, dim)
    ```

    Args:
        split: the `SplitTable` to look up in. Its frozen rows and remap are used without a copy.
        mask_zero: whether to mask id 0, which must be the padding of the split.
        embeddings_regularizer: a regularizer of the trainable rows alone.
        embeddings_constraint: a constraint on the trainable rows alone.
        combiner: None for one row an id; "mean", "sum" or "sqrtn" to combine the rows along the last axis of the ids as
            they are read: faster and leaner than pooling afterwards. With `mask_zero`, padding does not count.
        trainable_dropout: the probability, `0 <= p < 1`, with which each occurrence of a trainable row is replaced by
            zeros in training, so that rare tokens overfit less; the others are not scaled up. Choose it on validation
            data.
        seed: an integer seed for `trainable_dropout`; None for a new seed each time a layer is made.
        gradient: the form in which the gradient reaches the trainable rows. "dense" is right for every optimizer;
            "sparse", row slices, is for `LazyAdam`; "auto" is sparse where `LazyAdam` requests it, else dense.
        lookup: the form of the lookup. The cost of "dynamic" follows the distinct trainable rows, and it needs
            TensorFlow without XLA; "static" has fixed shapes, for XLA, LiteRT, ONNX, JAX and PyTorch, and a dense
            gradient; "auto" is chosen when the call is traced.
        save_by_reference: False to write the frozen table into every `.keras` file, at each epoch of a
            `ModelCheckpoint` too; True to write the path of its frozen.h5 instead, which loading must find there or,
            by its fingerprint, in a folder that the environment variable SPLITEMBED_PATH lists.
        **kwargs: `name`, `dtype`, `trainable`, as in any Keras layer. The rows are float32 under every dtype policy.

    Input shape:
        ids: integers of any shape, ragged ones included; each in `0 <= id < num_tokens`.
        weights: with a combiner, optional floats of the shape of the ids, as in `layer(ids, weights)`. "sum" adds the
            weighted rows up, "mean" divides by the sum of the weights, "sqrtn" by the root of the sum of their squares.
            A row that `trainable_dropout` drops adds nothing to the sum, and still counts in the divisor.
        training: whether to drop rows: True under `fit`, False under `predict` and in every export.

    Output shape:
        `ids.shape + (dim,)`, or with a combiner `ids.shape[:-1] + (dim,)`, in the compute dtype of the layer. A bag
        without weight is zero.

    Raises:
        TokenIdError: an id out of range (in a compiled model, `tf.errors.InvalidArgumentError` with the same message).
        MissingTableError: the layer was made from a config alone, and its tables have not been loaded.
    """

    # True in a pretrained model, whose other layers must round as before: see `in_place` of `lookup.dynamic.look_up`
    copies_rows = False
    # whether the frozen rows are held as columns, for a table that is only multiplied
    is_transposed = False

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
        # float ids must not be rounded to float16
        super().__init__(autocast=False, save_by_reference=save_by_reference, **kwargs)
        if not isinstance(split, SplitTable | SplitSpec):
            raise SplitError(f"`split` must be a SplitTable. Received: {split!r} (of type {type(split).__name__}).")
        if gradient not in ("auto", "dense", "sparse"):
            raise SplitError(f'`gradient` must be "auto", "dense" or "sparse". Received: {gradient!r}.')
        if lookup not in ("auto", "dynamic", "static"):
            raise SplitError(f'`lookup` must be "auto", "dynamic" or "static". Received: {lookup!r}.')
        if lookup == "static" and gradient == "sparse":
            raise SplitError('The static lookup has a dense gradient: leave `gradient` at "auto", or `lookup`.')
        if lookup == "dynamic" and not _IS_TENSORFLOW:
            raise SplitError(f"The dynamic lookup needs TensorFlow; on {keras.backend.backend()} it is static.")
        if combiner not in (None, "mean", "sum", "sqrtn"):
            raise SplitError(f'`combiner` must be None, "mean", "sum" or "sqrtn". Received: {combiner!r}.')
        if mask_zero and split.padding != 0:
            raise SplitError(
                f"`mask_zero` masks id 0, but this split's padding is {split.padding}: id 0 would be a word that every "
                f'later layer ignores. Put "" first in the vocabulary; or, where id 0 is a padding token of another '
                f"name, pass padding=0 to build_split; or leave mask_zero out."
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
        # on JAX and PyTorch, arrays must be checked before a conversion narrows them
        self._convert_input_args = _IS_TENSORFLOW
        self._allow_non_tensor_positional_args = not _IS_TENSORFLOW
        self._spec = split if isinstance(split, SplitSpec) else None
        self._split = split if isinstance(split, SplitTable) else None
        # the tables, as the backend holds them
        self._constants: Any = None

    def build(self, ids_shape: Any = None, weights_shape: Any = None) -> None:
        """Make the weight, and hold the frozen rows and the remap: on TensorFlow as handles, elsewhere as weights."""
        self.trainable_rows = self.add_weight(
            name=ROWS,
            shape=(self.num_trainable, self.output_dim),
            dtype="float32",
            initializer=self._initial_rows,
            regularizer=self.embeddings_regularizer,
            constraint=self.embeddings_constraint,
            # Keras warns of a trainable weight without rows
            trainable=self.num_trainable > 0,
            autocast=False,
        )
        self._hold_tables()
        self.built = True

    def call(self, ids: Any, weights: Any = None, training: bool | None = None) -> Any:
        """Look ids up, and combine their rows if the layer has a combiner."""
        if weights is not None and self.combiner is None:
            raise SplitError("`weights` are for a layer with a combiner, and this one has none.")
        if self._split is None:
            shape = self.compute_output_shape(ids.shape)
            return choose_backend().without_tables(shape, self.compute_dtype, self._missing())
        drop = make_drop(self.trainable_dropout, self.seed_generator) if training and self.trainable_dropout else None
        return choose_backend().embed(self, ids, weights, self._constants, drop)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Return True for each id but padding."""
        if not self.mask_zero or self.combiner is not None or choose_backend().is_ragged(inputs):
            return None
        return ops.not_equal(inputs, 0)

    def compute_output_shape(self, ids_shape: Any, weights_shape: Any = None) -> tuple[int | None, ...]:
        """Return `ids.shape + (dim,)`, with a combiner without the last axis of the ids."""
        if weights_shape is not None:
            check_weights_shape(tuple(weights_shape), tuple(ids_shape))
        kept = tuple(ids_shape) if self.combiner is None else tuple(ids_shape)[:-1]
        return (*kept, self.output_dim)

    def compute_output_spec(self, ids: Any, weights: Any = None, training: bool | None = None) -> Any:
        """Return the symbolic output."""
        if getattr(ids, "sparse", False):
            raise SplitError("Sparse ids have no row for what they leave out. Use keras.Input(..., sparse=False).")
        refusal = refusal_of_dtype(keras.backend.standardize_dtype(ids.dtype), self.input_dim)
        if refusal:
            raise SplitError(refusal)
        ragged = {"ragged": True} if choose_backend().is_ragged(ids) and self.combiner is None else {}
        shape = self.compute_output_shape(ids.shape, getattr(weights, "shape", None))
        return keras.KerasTensor(shape, dtype=self.compute_dtype, **ragged)

    def to_split(self) -> SplitTable:
        """Return the split with the rows as trained so far; the frozen rows are shared, not copied."""
        split = self._loaded_split()
        return split.with_trainable(self._rows()) if self.built else split

    def on_split(self, split: SplitTable) -> "SplitEmbedding":
        """Make a layer with the same options on another split, not built yet."""
        return self._with_attributes(SplitEmbedding(split, **self._options()))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the layer, with sizes and fingerprints instead of the split."""
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
        """Make the layer on the live split of that fingerprint, or without tables until they are loaded."""
        spec = SplitSpec(**config["split"])
        options = {name: value for name, value in config.items() if name != "copies_rows"}
        layer = cls(**{**options, "split": LIVE.get(spec) or spec, "mask_zero": False})
        layer.copies_rows = config.get("copies_rows", False)
        # it was checked before, or comes from a pretrained model
        layer.mask_zero = layer.supports_masking = config["mask_zero"]
        return layer

    def quantize(self, mode: Any = None, **kwargs: Any) -> None:
        """Refuse: frozen rows can be stored in int8 from the start, and trainable ones are float32.

        Raises:
            NotImplementedError: always; `model.quantize` leaves the layer as it is, and warns.
        """
        raise NotImplementedError(
            f"Layer {self.name!r}, a {type(self).__name__}, is not quantized in place. Make it from a split whose "
            f'frozen rows are narrow: build_split(..., frozen_dtype="int8"), or split.with_frozen_dtype("int8"), which '
            f"replace_split puts into a model."
        )

    def enable_lora(self, rank: int, **kwargs: Any) -> None:
        """Refuse: rows that adapt are trainable rows, and the others stay as they are.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            f"Layer {self.name!r}, a SplitEmbedding, does not support LoRA. Pass the tokens that must adapt as "
            f"`trainable_tokens` to build_split, or their number as `train_most_frequent`."
        )

    def summary(self) -> str:
        """Return a table to print: rows, numbers and bytes of the frozen and trainable parts, and of a dense layer."""
        return summarize(self._described())

    def _options(self) -> dict[str, Any]:
        """The arguments of the constructor, but for the split and `mask_zero`, which depends on it."""
        keras_options = ("name", "trainable", "activity_regularizer", "embeddings_regularizer", "embeddings_constraint")
        own_options = ("combiner", "trainable_dropout", "seed", "gradient", "lookup", "save_by_reference")
        names = (*keras_options, *own_options)
        return {"dtype": self.dtype_policy, **{name: getattr(self, name) for name in names}}

    def _with_attributes(self, other: "SplitEmbedding") -> "SplitEmbedding":
        """Give another layer the attributes that are no arguments, or that its constructor would check."""
        other.copies_rows = self.copies_rows
        other.mask_zero = other.supports_masking = self.mask_zero
        return other

    def _hold_tables(self) -> None:
        self._constants = choose_backend().hold_tables(self, self._split, self._constants)

    def _initial_rows(self, shape: Any, dtype: Any = None) -> Any:
        rows = np.zeros(shape, np.float32) if self._split is None else self._split.trainable
        return choose_backend().initial_rows(rows)
