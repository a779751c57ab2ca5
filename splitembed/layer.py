"""SplitEmbedding: a split in, a Keras layer out, which looks token ids up and trains the trainable rows alone."""

from dataclasses import asdict
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from splitembed.bags import Bags, Combiner, check_layout, combine
from splitembed.errors import MissingTableError, SplitEmbedError, SplitError
from splitembed.ids import refusal_of_floats
from splitembed.lookup import Constants, Gradient, look_up, refuse_xla, route
from splitembed.saving import ROWS, SavesSplit
from splitembed.spec import LIVE, SplitSpec
from splitembed.split import SplitTable


@keras.saving.register_keras_serializable(package="splitembed")
class SplitEmbedding(SavesSplit):
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
        gradient: the form in which the gradient reaches the trainable rows. "dense" is right for every optimizer;
            "sparse", row slices, is for `LazyAdam`; "auto" is sparse where `LazyAdam` asks for it, else dense.
        **kwargs: `name`, `dtype`, `trainable`, as in any Keras layer. The rows are float32 under every dtype policy.

    Input shape:
        ids: integers of any shape, ragged ones included; each in `0 <= id < num_tokens`.
        weights: with a combiner, optional floats of the ids' shape, as in `layer(ids, weights)`. "sum" adds the
            weighted rows up, "mean" divides by the sum of the weights, "sqrtn" by the root of the sum of their squares.

    Output shape:
        `ids.shape + (dim,)`, or with a combiner `ids.shape[:-1] + (dim,)`, in the layer's compute dtype. A bag without
        weight is zero.

    Raises:
        TokenIdError: an id out of range (in a compiled model, `tf.errors.InvalidArgumentError` with the same message).
        MissingTableError: the layer was made from a config alone, and its tables have not been loaded.
    """

    def __init__(
        self,
        split: SplitTable | SplitSpec,
        mask_zero: bool = False,
        *,
        embeddings_regularizer: Any = None,
        embeddings_constraint: Any = None,
        combiner: Combiner | None = None,
        gradient: Gradient = "auto",
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)  # ids that come as floats must not be rounded to float16
        _check_backend()
        if not isinstance(split, SplitTable | SplitSpec):
            raise SplitError(f"`split` must be a SplitTable. Received: {split!r} (of type {type(split).__name__}).")
        if gradient not in ("auto", "dense", "sparse"):
            raise SplitError(f'`gradient` must be "auto", "dense" or "sparse". Received: {gradient!r}.')
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
        self.mask_zero = self.supports_masking = mask_zero
        self.embeddings_regularizer = keras.regularizers.get(embeddings_regularizer)
        self.embeddings_constraint = keras.constraints.get(embeddings_constraint)
        self.combiner, self.gradient = combiner, gradient
        self.supports_jit = False  # the lookup's shapes depend on the batch
        self._spec = split if isinstance(split, SplitSpec) else None
        self._split = split if isinstance(split, SplitTable) else None
        self._constants: Constants | None = None

    def build(self, ids_shape: Any = None, weights_shape: Any = None) -> None:
        """Makes the weight, and the handles on the frozen rows and the remap."""
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
        if self._split is not None:
            self._constants = Constants(self._split)
        self.built = True

    def call(self, ids: Any, weights: Any = None) -> Any:
        """Looks ids up, and combines their rows if the layer has a combiner."""
        if isinstance(ids, tf.SparseTensor):
            raise SplitError("Sparse ids have no row for what they leave out: call tf.sparse.to_dense first.")
        if weights is not None and self.combiner is None:
            raise SplitError("`weights` are for a layer with a combiner, and this one has none.")
        if self._constants is None:
            return self._without_tables(ids)
        if self.combiner is not None:
            return self._combine(ids, weights, self.combiner, self._constants)
        rows = self._look_up(ids, self._constants)
        return rows if self.trainable else tf.stop_gradient(rows)

    def _look_up(self, ids: Any, constants: Constants) -> Any:
        if isinstance(ids, tf.RaggedTensor):
            return ids.with_flat_values(self._look_up(ids.flat_values, constants))
        rows = look_up(ids, constants, self.trainable_rows.value, self.gradient)
        return tf.cast(rows, self.compute_dtype)

    def _combine(self, ids: Any, weights: Any, combiner: Combiner, constants: Constants) -> Any:
        bags = Bags.of(ids, weights)
        rows, checks = route(bags.ids, constants)
        with tf.control_dependencies(checks):
            rows = tf.identity(rows)
        if self.mask_zero:
            rows, bags = bags.without_padding(rows)
        trainable = self.trainable_rows.value
        combined = combine(rows, bags, combiner, constants, trainable, self.gradient)
        return tf.cast(tf.reshape(combined, [*bags.shape, self.output_dim]), self.compute_dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Marks the ids that are not padding."""
        if not self.mask_zero or self.combiner is not None or isinstance(inputs, tf.RaggedTensor):
            return None
        return keras.ops.not_equal(inputs, 0)

    def compute_output_shape(self, ids_shape: Any, weights_shape: Any = None) -> tuple[int | None, ...]:
        """`ids.shape + (dim,)`, less the last axis of the ids where they are combined."""
        if weights_shape is not None:
            check_layout(tf.TensorShape(weights_shape), tf.TensorShape(ids_shape))
        kept = tuple(ids_shape) if self.combiner is None else tuple(ids_shape)[:-1]
        return (*kept, self.output_dim)

    def compute_output_spec(self, ids: Any, weights: Any = None) -> Any:
        """The symbolic output."""
        if getattr(ids, "sparse", False):
            raise SplitError("Sparse ids have no row for what they leave out. Use keras.Input(..., sparse=False).")
        refusal = refusal_of_floats(tf.as_dtype(ids.dtype), self.input_dim)
        if refusal:
            raise SplitError(refusal)
        ragged = {"ragged": True} if getattr(ids, "ragged", False) and self.combiner is None else {}
        shape = self.compute_output_shape(ids.shape, getattr(weights, "shape", None))
        return keras.KerasTensor(shape, dtype=self.compute_dtype, **ragged)

    def to_split(self) -> SplitTable:
        """Returns the split with the rows as trained so far; the frozen rows are shared, not copied."""
        split = self._loaded_split()
        return split.with_trainable(self._rows()) if self.built else split

    def get_config(self) -> dict[str, Any]:
        """The layer's arguments, with sizes and fingerprints in the split's place."""
        return {
            **super().get_config(),
            "split": asdict(self._described()),
            "mask_zero": self.mask_zero,
            "embeddings_regularizer": keras.regularizers.serialize(self.embeddings_regularizer),
            "embeddings_constraint": keras.constraints.serialize(self.embeddings_constraint),
            "combiner": self.combiner,
            "gradient": self.gradient,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "SplitEmbedding":
        """Makes the layer on the live split of that fingerprint, or without tables until they are loaded."""
        spec = SplitSpec(**config["split"])
        return cls(**{**config, "split": LIVE.get(spec) or spec})

    def _initial_rows(self, shape: Any, dtype: Any = None) -> Any:
        rows = np.zeros(shape, np.float32) if self._split is None else self._split.trainable
        return tf.convert_to_tensor(rows)

    def _without_tables(self, ids: Any) -> Any:
        """Keras traces `call` to learn shapes before it loads tables: allowed. Running it is not."""
        if tf.executing_eagerly():
            raise MissingTableError(self._missing())
        refuse_xla()  # which would leave the assertion out
        with tf.control_dependencies([tf.debugging.Assert(False, [self._missing()])]):
            shape = [int(length is None) or length for length in self.compute_output_shape(ids.shape)]
            return tf.ensure_shape(tf.zeros(shape, self.compute_dtype), self.compute_output_shape(ids.shape))


def _check_backend() -> None:
    if keras.backend.backend() != "tensorflow":
        raise SplitEmbedError(
            f"SplitEmbedding runs on Keras's TensorFlow backend. Found: {keras.backend.backend()}. "
            f"Set KERAS_BACKEND=tensorflow before Keras is imported."
        )
