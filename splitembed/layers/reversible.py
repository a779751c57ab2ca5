"""SplitReversibleEmbedding, a SplitEmbedding that also computes logits over the vocabulary from hidden states."""

from dataclasses import asdict
from typing import Any

import keras
from keras import ops

from splitembed.errors import SplitError
from splitembed.keras_compat import autocast_dtype, set_mask
from splitembed.layers.embedding import LayerCall, SplitEmbedding
from splitembed.layers.logits import Dtypes, logits_of
from splitembed.layers.spec import LIVE, SplitSpec, summarize
from splitembed.layers.transposed import TransposedEmbedding
from splitembed.lookup.choose_backend import choose_backend
from splitembed.lookup.context import exports_fixed_shapes
from splitembed.split.table import SplitTable


@keras.saving.register_keras_serializable(package="splitembed")
class SplitReversibleEmbedding(SplitEmbedding):
    """A `SplitEmbedding` that also computes logits from hidden states, as Keras's `ReversibleEmbedding` does.

    ```python
    embedding = splitembed.SplitReversibleEmbedding(split)
    states = embedding(ids)                       # (batch, length, dim)
    logits = embedding(states, reverse=True)      # (batch, length, num_tokens)
    ```

    The dense table is never built, and frozen rows have no gradient. The gradient of the trainable rows is dense: the
    sum over the embedding and the logits. Besides the logits, `num_states * num_tokens` values, a step takes up to
    three times their memory. A float32 frozen table of at most two rows for each token is multiplied as it is stored.
    Measured with 32,000 tokens on a CPU, this takes 1.1 times as long as Keras's layer for the single state of a model
    that generates token by token, and 1.4 times for 512 states (1.1 where only few tokens train, and the table is in id
    order, as `split_embedding` builds it). Any other table is read in blocks of 4 MiB, which takes 5 times as long for
    a single state, and 1.5 times for 512.

    Where the frozen table is in id order, logits have the bits of Keras's layer under every dtype policy, for each
    token whose row is unchanged; `splitembed.layers.logits.logits_of` lists the exceptions, which are within 1e-6.

    Args:
        split: the `SplitTable` of the embedding; also of the logits if weights are tied.
        tie_weights: whether the embedding and the logits share one table. If not, the logits use `reverse_split`.
        logit_soft_cap: None, or a positive bound of the logits: `tanh(logits / cap) * cap`.
        reverse_split: with `tie_weights=False` a `SplitTable` of the same number of tokens and the same dim. It trains
            as the layer `reverse_embedding`, whose `to_split()` returns it. Its frozen rows are copied into columns, as
            Keras stores them.
        reverse_dtype: the dtype of the logits; by default the common dtype of the hidden states and the table as it is
            read, as in Keras's layer.
        **kwargs: the arguments of `SplitEmbedding`, except a combiner. A regularizer or a constraint applies to the
            rows of the embedding.

    Input shape:
        ids: as for a `SplitEmbedding`; with `reverse=True` floats, `(..., dim)`.

    Output shape:
        `ids.shape + (dim,)`; with `reverse=True`, `(..., num_tokens)`. As in Keras's layer, only rows have a mask.

    Raises:
        SplitError: invalid options or hidden states.
        TokenIdError, MissingTableError: as `SplitEmbedding` raises them.
    """

    def __init__(
        self,
        split: SplitTable | SplitSpec,
        tie_weights: bool = True,
        logit_soft_cap: float | None = None,
        *,
        reverse_split: SplitTable | SplitSpec | None = None,
        reverse_dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(split, **kwargs)
        if self.combiner is not None:
            raise SplitError(f"`combiner` must be None in a reversible embedding. Received: {self.combiner!r}.")
        if logit_soft_cap is not None and not logit_soft_cap > 0:
            raise SplitError(f"`logit_soft_cap` must be a positive number or None. Received: {logit_soft_cap!r}.")
        if tie_weights != (reverse_split is None):
            raise SplitError(
                "`reverse_split`, the table of the logits, must be given with tie_weights=False and only then. "
                f"Received: tie_weights={tie_weights}, reverse_split={reverse_split!r}."
            )
        self.tie_weights, self.logit_soft_cap = tie_weights, logit_soft_cap
        self.reverse_dtype = None if reverse_dtype is None else keras.backend.standardize_dtype(reverse_dtype)
        self.reverse_embedding = None if reverse_split is None else self._untied(reverse_split)

    def build(self, ids_shape: Any = None, weights_shape: Any = None) -> None:
        """Create the weight, or both weights if they are not tied."""
        super().build(ids_shape, weights_shape)
        if self.reverse_embedding is not None and not self.reverse_embedding.built:
            self.reverse_embedding.build()

    def call(self, ids: Any, weights: Any = None, training: bool | None = None, *, reverse: bool = False) -> Any:
        """Look ids up, or with `reverse=True` compute logits from hidden states."""
        if not reverse:
            return self._masked(super().call(ids, weights, training), ids)
        self._check_states(ids, weights)
        layer = self if self.reverse_embedding is None else self.reverse_embedding
        if layer._split is None:
            shape = self.compute_output_shape(ids.shape, reverse=True)
            return choose_backend().without_tables(shape, self._logits_dtype(), layer._missing())
        return (
            ids.with_flat_values(self._logits(ids.flat_values, layer)) if _is_ragged(ids) else self._logits(ids, layer)
        )

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """Return None: `call` sets the mask of the rows, as only it knows the direction."""

    def compute_output_shape(
        self, ids_shape: Any, weights_shape: Any = None, *, reverse: bool = False
    ) -> tuple[int | None, ...]:
        """Return `ids.shape + (dim,)`, or the shape of hidden states with `num_tokens` as the last axis."""
        if reverse:
            return (*tuple(ids_shape)[:-1], self.input_dim)
        return super().compute_output_shape(ids_shape, weights_shape)

    def compute_output_spec(
        self, ids: Any, weights: Any = None, training: bool | None = None, *, reverse: bool = False
    ) -> Any:
        """Return the symbolic output."""
        if not reverse:
            return self._masked(super().compute_output_spec(ids, weights, training), ids)
        self._check_states(ids, weights)
        ragged = {"ragged": True} if _is_ragged(ids) else {}
        return keras.KerasTensor(
            self.compute_output_shape(ids.shape, reverse=True), dtype=self._logits_dtype(), **ragged
        )

    def on_split(self, split: SplitTable, reverse_split: SplitTable | None = None) -> SplitEmbedding:
        """Make a layer with the same options on another split, and another one of the logits; not built yet."""
        options = {name: getattr(self, name) for name in ("tie_weights", "logit_soft_cap", "reverse_dtype")}
        made = SplitReversibleEmbedding(split, reverse_split=reverse_split, **options, **self._options())
        return self._with_attributes(made)

    def get_config(self) -> dict[str, Any]:
        """Return the config of a `SplitEmbedding` and the options of the logits."""
        reverse = self.reverse_embedding
        return {
            **super().get_config(),
            "tie_weights": self.tie_weights,
            "logit_soft_cap": self.logit_soft_cap,
            "reverse_split": None if reverse is None else asdict(reverse._described()),
            "reverse_dtype": self.reverse_dtype,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "SplitEmbedding":
        """Make the layer on the live splits with these fingerprints, or without tables until they are loaded."""
        if config["reverse_split"] is None:
            return super().from_config(config)
        spec = SplitSpec.from_config(config["reverse_split"])
        return super().from_config({**config, "reverse_split": LIVE.get(spec) or spec})

    def summary(self) -> str:
        """Return the summary of a `SplitEmbedding`, followed by that of a separate table of the logits."""
        reverse = self.reverse_embedding
        return super().summary() + ("" if reverse is None else "\n\nlogits\n" + summarize(reverse._described()))

    def _untied(self, split: SplitTable | SplitSpec) -> SplitEmbedding:
        if (split.num_tokens, split.dim) != (self.input_dim, self.output_dim):
            raise SplitError(
                f"`reverse_split` must have the {self.input_dim} tokens and the dim of {self.output_dim} of `split`. "
                f"Received: {split.num_tokens} tokens, a dim of {split.dim}."
            )
        options = {"save_by_reference": self.save_by_reference, "trainable": self.trainable}
        return TransposedEmbedding(split, dtype=self.dtype_policy, name=f"{self.name}_reverse", **options)

    def _logits(self, states: Any, layer: SplitEmbedding) -> Any:
        states = ops.convert_to_tensor(states)
        dtypes = self._dtypes(states)
        states = ops.cast(states, dtypes.product)
        rows = ops.convert_to_tensor(layer.trainable_rows.value)
        rows = rows if layer.trainable else ops.stop_gradient(rows)
        logits = logits_of(states, rows, layer._constants, layer._loaded_split(), dtypes, exports_fixed_shapes(states))
        layer._report(LayerCall(states, None, logits, is_reverse=True))
        if self.logit_soft_cap is None:
            return logits
        return ops.multiply(ops.tanh(ops.divide(logits, self.logit_soft_cap)), self.logit_soft_cap)

    def _dtypes(self, states: Any) -> Dtypes:
        """Return the dtypes that Keras's layer would cast to in this scope."""
        read = autocast_dtype() or self.variable_dtype
        kernel = self.reverse_dtype or read
        of_states = self.reverse_dtype or keras.backend.standardize_dtype(states.dtype)
        return Dtypes(str(read), str(kernel), str(keras.backend.result_type(of_states, kernel)))

    def _logits_dtype(self) -> str:
        return str(self.reverse_dtype or self.compute_dtype)

    def _masked(self, rows: Any, ids: Any) -> Any:
        mask = super().compute_mask(ids)
        if mask is not None:
            set_mask(rows, mask)
        return rows

    def _check_states(self, states: Any, weights: Any) -> None:
        dtype = keras.backend.standardize_dtype(states.dtype)
        if weights is not None or "float" not in dtype or states.shape[-1] != self.output_dim:
            raise SplitError(
                f"With reverse=True the inputs must be hidden states without weights, floats of shape "
                f"(..., {self.output_dim}). "
                f"Received: {dtype} of shape {tuple(states.shape)}{'' if weights is None else ', and weights'}."
            )


def _is_ragged(states: Any) -> bool:
    return choose_backend().is_ragged(states)
