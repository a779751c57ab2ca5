"""SplitEmbedding: a split in, a Keras layer out, which looks token ids up and trains the trainable rows alone."""

import importlib
from dataclasses import asdict
from typing import Any, Literal

import keras
import numpy as np
from keras import ops

from splitembed.errors import SplitError
from splitembed.layers.row_updates import RowUpdates
from splitembed.layers.saving import ROWS, SavesSplit
from splitembed.layers.spec import LIVE, SplitSpec, summarize
from splitembed.lookup.dropout import checked_rate, make_drop
from splitembed.lookup.id_dtypes import refusal_of_dtype
from splitembed.lookup.static import check_layout
from splitembed.split.table import SplitTable

_IS_TENSORFLOW = keras.backend.backend() == "tensorflow"
_backend: Any = importlib.import_module(
    "splitembed.lookup.backend_tensorflow" if _IS_TENSORFLOW else "splitembed.lookup.backend_keras"
)


@keras.saving.register_keras_serializable(package="splitembed")
class SplitEmbedding(RowUpdates, SavesSplit):
    """Turns token ids into rows: frozen ones from a constant, trainable ones from the layer's only weight.

    ```python
    ids = keras.Input((None,), dtype="int32")
    rows = splitembed.SplitEmbedding(split)(ids)     # (batch, length, dim)
    ```

    Args:
        split: the `SplitTable` to look up in. Its frozen rows and remap are used where they are, without a copy.
        mask_zero: mask id 0, which must be the split's padding.
        embeddings_regularizer: on the trainable rows alone.
        embeddings_constraint: on the trainable rows alone.
        combiner: None for one row an id; "mean", "sum" or "sqrtn" to combine the rows along the last axis of the ids,
            without laying them out: faster and leaner than pooling afterwards. With `mask_zero` padding does not count.
        trainable_dropout: the probability, `0 <= p < 1`, with which each occurrence of a trainable row is replaced by
            zeros in training, so that rare tokens overfit less; the others are not scaled up. Choose it on validation
            data.
        seed: an integer from which `trainable_dropout` draws; None, another one each time the layer is made.
        gradient: the form in which the gradient reaches the trainable rows. "dense" is right for every optimizer;
            "sparse", row slices, is for `LazyAdam`; "auto" is sparse where `LazyAdam` asks for it, else dense.
        lookup: "dynamic" costs what the distinct trainable rows cost, and needs TensorFlow without XLA; "static" has
            fixed shapes, for XLA, TFLite, ONNX, JAX and PyTorch, and a dense gradient; "auto" decides as it is traced.
        save_by_reference: False, and a `.keras` file holds the frozen table, at each epoch of a `ModelCheckpoint` too;
            True, and it says where the table's own frozen.h5 is, which loading must find there or, by its fingerprint,
            in a folder that the environment variable SPLITEMBED_PATH lists.
        **kwargs: `name`, `dtype`, `trainable`, as in any Keras layer. The rows are float32 under every dtype policy.

    Input shape:
        ids: integers of any shape, ragged ones included; each in `0 <= id < num_tokens`.
        weights: with a combiner, optional floats of the ids' shape, as in `layer(ids, weights)`. "sum" adds the
            weighted rows up, "mean" divides by the sum of the weights, "sqrtn" by the root of the sum of their squares.
            What `trainable_dropout` drops adds nothing to the sum, and still counts in the divisor.
        training: whether to drop; `fit` says so, `predict` and every export say no.

    Output shape:
        `ids.shape + (dim,)`, or with a combiner `ids.shape[:-1] + (dim,)`, in the layer's compute dtype. A bag without
        weight is zero.

    Raises:
        TokenIdError: an id out of range (in a compiled model, `tf.errors.InvalidArgumentError` with the same message).
        MissingTableError: the layer was made from a config alone, and its tables have not been loaded.
    """

    copies_rows = False  # in a pretrained model, whose other layers are to round as ever: see `look_up`

    def __init__(
        self,
        split: SplitTable | SplitSpec,
        mask_zero: bool = False,
        *,
        embeddings_regularizer: Any = None,
        embeddings_constraint: Any = None,
        combiner: Literal["mean", "sum", "sqrtn"] | None = None,
        trainable_dropout: float = 0.0,
        seed: int | None = None,
        gradient: Literal["auto", "dense", "sparse"] = "auto",
        lookup: Literal["auto", "dynamic", "static"] = "auto",
        save_by_reference: bool = False,
        **kwargs: Any,
    ) -> None:
        # ids that come as floats must not be rounded to float16
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
            self.seed_generator = _backend.SeedGenerator(seed)
        self.supports_jit = lookup != "dynamic"
        self._convert_input_args = _IS_TENSORFLOW  # elsewhere arrays must be checked before a conversion narrows them
        self._allow_non_tensor_positional_args = not _IS_TENSORFLOW
        self._spec = split if isinstance(split, SplitSpec) else None
        self._split = split if isinstance(split, SplitTable) else None
        self._constants: Any = None  # the tables, as the backend holds them

    def build(self, ids_shape: Any = None, weights_shape: Any = None) -> None:
        """Makes the weight, and holds the frozen rows and the remap: as handles, on other backends as weights."""
        self.trainable_rows = self.add_weight(
            name=ROWS,
            shape=(self.num_trainable, self.output_dim),
            dtype="float32",
            initializer=self._initial_rows,
            regularizer=self.embeddings_regularizer,
            constraint=self.embeddings_constraint,
            trainable=self.num_trainable > 0,  # all frozen, it has nothing to train
            autocast=False,
        )
        self.trainable_rows.is_row_sparse = True
        self._hold_tables()
        self.built = True

    def call(self, ids: Any, weights: Any = None, training: bool | None = None) -> Any:
        """Looks ids up, and combines their rows if the layer has a combiner."""
        if weights is not None and self.combiner is None:
            raise SplitError("`weights` are for a layer with a combiner, and this one has none.")
        if self._split is None:
            return _backend.without_tables(self, ids, self._missing())
        drop = make_drop(self.trainable_dropout, self.seed_generator) if training and self.trainable_dropout else None
        return _backend.embed(self, ids, weights, self._constants, drop)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Marks the ids that are not padding."""
        if not self.mask_zero or self.combiner is not None or _backend.is_ragged(inputs):
            return None
        return ops.not_equal(inputs, 0)

    def compute_output_shape(self, ids_shape: Any, weights_shape: Any = None) -> tuple[int | None, ...]:
        """`ids.shape + (dim,)`, less the last axis of the ids where they are combined."""
        if weights_shape is not None:
            check_layout(tuple(weights_shape), tuple(ids_shape))
        kept = tuple(ids_shape) if self.combiner is None else tuple(ids_shape)[:-1]
        return (*kept, self.output_dim)

    def compute_output_spec(self, ids: Any, weights: Any = None, training: bool | None = None) -> Any:
        """The symbolic output."""
        if getattr(ids, "sparse", False):
            raise SplitError("Sparse ids have no row for what they leave out. Use keras.Input(..., sparse=False).")
        refusal = refusal_of_dtype(keras.backend.standardize_dtype(ids.dtype), self.input_dim)
        if refusal:
            raise SplitError(refusal)
        ragged = {"ragged": True} if _backend.is_ragged(ids) and self.combiner is None else {}
        shape = self.compute_output_shape(ids.shape, getattr(weights, "shape", None))
        return keras.KerasTensor(shape, dtype=self.compute_dtype, **ragged)

    def to_split(self) -> SplitTable:
        """Returns the split with the rows as trained so far; the frozen rows are shared, not copied."""
        split = self._loaded_split()
        return split.with_trainable(self._rows()) if self.built else split

    def on_split(self, split: SplitTable) -> "SplitEmbedding":
        """Make a layer with the same options on another split, not built yet."""
        return self._with_attributes(SplitEmbedding(split, **self._options()))

    def get_config(self) -> dict[str, Any]:
        """The layer's arguments, with sizes and fingerprints in the split's place."""
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
        """Makes the layer on the live split of that fingerprint, or without tables until they are loaded."""
        spec = SplitSpec(**config["split"])
        options = {name: value for name, value in config.items() if name != "copies_rows"}
        layer = cls(**{**options, "split": LIVE.get(spec) or spec, "mask_zero": False})
        layer.copies_rows = config.get("copies_rows", False)
        layer.mask_zero = layer.supports_masking = config["mask_zero"]  # was checked, or is a pretrained model's
        return layer

    def quantize(self, mode: Any = None, **kwargs: Any) -> None:
        """Refuses: frozen rows are stored narrow from the start, and trainable ones are float32.

        Raises:
            NotImplementedError: always; `model.quantize` passes the layer over, and warns.
        """
        raise NotImplementedError(
            f"Layer {self.name!r}, a {type(self).__name__}, is not quantized in place. Make it from a split whose "
            f'frozen rows are narrow: build_split(..., frozen_dtype="int8"), or split.with_frozen_dtype("int8"), which '
            f"replace_split puts into a model."
        )

    def enable_lora(self, rank: int, **kwargs: Any) -> None:
        """Refuses: the rows that are to adapt are trainable, and the others stay as they are.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            f"Layer {self.name!r}, a SplitEmbedding, takes no LoRA. Name the tokens that are to adapt as "
            f"`trainable_tokens` of build_split, or as many as `train_most_frequent` says."
        )

    def summary(self) -> str:
        """Tells frozen from trainable rows, and what they take.

        Returns:
            A table for people: rows, numbers and bytes of each part, and of a dense trainable layer beside them.
        """
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
        self._constants = _backend.hold_tables(self, self._split, self._constants)

    def _initial_rows(self, shape: Any, dtype: Any = None) -> Any:
        return _backend.initial_rows(np.zeros(shape, np.float32) if self._split is None else self._split.trainable)
