"""SplitReversibleEmbedding: token ids in, rows out; or hidden states in, logits over the whole vocabulary out."""

from dataclasses import asdict
from functools import partial
from types import SimpleNamespace
from typing import Any

import keras
from keras import ops
from keras.src.backend import get_autocast_scope, set_keras_mask  # Keras's own layers have no public way either

from splitembed.errors import SplitError
from splitembed.layers.embedding import SplitEmbedding, _backend
from splitembed.layers.frozen_columns import Dtypes, FrozenColumns
from splitembed.layers.in_order import logits_in_order
from splitembed.layers.logits import Columns, logits_of
from splitembed.layers.spec import LIVE, SplitSpec, summarize
from splitembed.lookup.context import exports_fixed_shapes
from splitembed.split.table import SplitTable


@keras.saving.register_keras_serializable(package="splitembed")
class SplitReversibleEmbedding(SplitEmbedding):
    """A `SplitEmbedding` that also goes backwards, from hidden states to logits, as Keras's `ReversibleEmbedding`.

    ```python
    embedding = splitembed.SplitReversibleEmbedding(split)
    states = embedding(ids)                       # (batch, length, dim)
    logits = embedding(states, reverse=True)      # (batch, length, num_tokens)
    ```

    The logits are one product with the frozen rows, where they lie, and one with the trainable ones, put in id order.
    The dense table is never built and no frozen row has a gradient; the trainable rows have one, dense, the sum of what
    reaches them from both ends. Beside the logits, `num_states * num_tokens` values, a step takes one or two copies of
    them. Frozen rows that the product needs in a wider dtype, and those of a table with more than twice as many rows as
    there are tokens, are read in blocks of 4 MiB, a little more slowly.

    Where the frozen table is in id order, with chosen tokens that train beside it and new ones after it, as
    `split_embedding` makes it, logits are those of Keras's layer to the bit, under every dtype policy, for each token
    whose row is still what it was.

    Args:
        split: the `SplitTable` of the embedding, and of the logits where weights are tied.
        tie_weights: whether both directions have one table. If not, `reverse_split` is that of the logits.
        logit_soft_cap: None, or a positive number that no logit exceeds: `tanh(logits / cap) * cap`.
        reverse_split: with `tie_weights=False` a `SplitTable` of as many tokens and the same dim. It trains as the
            layer `reverse_embedding`, whose `to_split()` gives it back. Its frozen rows are held as columns, as Keras
            holds them: a copy of its own in memory.
        reverse_dtype: what the logits are computed in; by default what the hidden states and the table as it is read
            have in common, as with Keras's layer.
        **kwargs: as `SplitEmbedding` takes them, less a combiner. A regularizer or a constraint is for the embedding's
            rows.

    Input shape:
        ids: as for a `SplitEmbedding`; with `reverse=True` floats, `(..., dim)`.

    Output shape:
        `ids.shape + (dim,)`; with `reverse=True`, `(..., num_tokens)`. As with Keras's layer, only rows have a mask.

    Raises:
        SplitError: options or hidden states that do not fit.
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
            raise SplitError(f"A reversible embedding has one row for each id, and no combiner: {self.combiner!r}.")
        if logit_soft_cap is not None and not logit_soft_cap > 0:
            raise SplitError(f"`logit_soft_cap` must be a positive number or None. Received: {logit_soft_cap!r}.")
        if tie_weights != (reverse_split is None):
            raise SplitError(
                "`reverse_split` is the table of the logits where weights are not tied: give it with tie_weights=False "
                f"and only then. Received: tie_weights={tie_weights}, reverse_split={reverse_split!r}."
            )
        self.tie_weights, self.logit_soft_cap = tie_weights, logit_soft_cap
        self.reverse_dtype = None if reverse_dtype is None else keras.backend.standardize_dtype(reverse_dtype)
        self.reverse_embedding = None if reverse_split is None else self._untied(reverse_split)

    def build(self, ids_shape: Any = None, weights_shape: Any = None) -> None:
        """Makes the weight, or both where they are not tied."""
        super().build(ids_shape, weights_shape)
        if self.reverse_embedding is not None and not self.reverse_embedding.built:
            self.reverse_embedding.build()

    def call(self, ids: Any, weights: Any = None, training: bool | None = None, *, reverse: bool = False) -> Any:
        """Looks ids up; with `reverse=True` turns hidden states into logits."""
        if not reverse:
            return self._masked(super().call(ids, weights, training), ids)
        self._check_states(ids, weights)
        layer = self if self.reverse_embedding is None else self.reverse_embedding
        if layer._split is None:
            like = partial(self.compute_output_shape, reverse=True)
            shaped = SimpleNamespace(compute_output_shape=like, compute_dtype=self._logits_dtype())
            return _backend.without_tables(shaped, ids, layer._missing())
        return (
            ids.with_flat_values(self._logits(ids.flat_values, layer)) if _is_ragged(ids) else self._logits(ids, layer)
        )

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """None: `call` marks the rows itself, as only it knows which way it goes."""

    def compute_output_shape(
        self, ids_shape: Any, weights_shape: Any = None, *, reverse: bool = False
    ) -> tuple[int | None, ...]:
        """`ids.shape + (dim,)`, or the shape of hidden states with `num_tokens` for their last axis."""
        if reverse:
            return (*tuple(ids_shape)[:-1], self.input_dim)
        return super().compute_output_shape(ids_shape, weights_shape)

    def compute_output_spec(
        self, ids: Any, weights: Any = None, training: bool | None = None, *, reverse: bool = False
    ) -> Any:
        """The symbolic output."""
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
        """As `SplitEmbedding` gives it, with what the logits need."""
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
        """Makes the layer on the live splits of those fingerprints, or without tables until they are loaded."""
        if config["reverse_split"] is None:
            return super().from_config(config)
        spec = SplitSpec(**config["reverse_split"])
        return super().from_config({**config, "reverse_split": LIVE.get(spec) or spec})

    def summary(self) -> str:
        """As `SplitEmbedding` gives it; then the same of the table of the logits, where that is another one."""
        reverse = self.reverse_embedding
        return super().summary() + ("" if reverse is None else "\n\nlogits\n" + summarize(reverse._described()))

    def _untied(self, split: SplitTable | SplitSpec) -> SplitEmbedding:
        if (split.num_tokens, split.dim) != (self.input_dim, self.output_dim):
            raise SplitError(
                f"`reverse_split` must have the {self.input_dim} tokens and the dim of {self.output_dim} of `split`. "
                f"Received: {split.num_tokens} tokens, a dim of {split.dim}."
            )
        options = {"save_by_reference": self.save_by_reference, "trainable": self.trainable}
        return _LogitsTable(split, dtype=self.dtype_policy, name=f"{self.name}_reverse", **options)

    def _logits(self, states: Any, layer: SplitEmbedding) -> Any:
        states = ops.convert_to_tensor(states)
        dtypes = self._dtypes(states)
        states = ops.cast(states, dtypes.product)
        rows = ops.convert_to_tensor(layer.trainable_rows.value)
        rows = rows if layer.trainable else ops.stop_gradient(rows)
        logits = self._product(states, rows, layer._constants, dtypes)
        if self.logit_soft_cap is None:
            return logits
        return ops.multiply(ops.tanh(ops.divide(logits, self.logit_soft_cap)), self.logit_soft_cap)

    def _product(self, states: Any, rows: Any, tables: Any, dtypes: Dtypes) -> Any:
        exports = exports_fixed_shapes()
        if tables.order is not None:
            frozen = FrozenColumns(tables, dtypes, all_at_once=exports)
            return logits_in_order(states, dtypes.cast(rows), frozen, tables.order)
        columns = Columns(tables, dtypes.product, all_at_once=exports)
        flat = ops.reshape(states, (-1, self.output_dim))
        logits = logits_of(flat, ops.cast(rows, dtypes.product), columns)
        return ops.reshape(logits, (*ops.shape(states)[:-1], self.input_dim))

    def _dtypes(self, states: Any) -> Dtypes:
        """What Keras's layer would cast to here: its variable as the scope says, and what `reverse_dtype` says."""
        scope = get_autocast_scope()
        read = self.variable_dtype if scope is None or scope.dtype is None else scope.dtype
        kernel = self.reverse_dtype or read
        of_states = self.reverse_dtype or keras.backend.standardize_dtype(states.dtype)
        return Dtypes(str(read), str(kernel), str(keras.backend.result_type(of_states, kernel)))

    def _logits_dtype(self) -> str:
        return str(self.reverse_dtype or self.compute_dtype)

    def _masked(self, rows: Any, ids: Any) -> Any:
        mask = super().compute_mask(ids)
        if mask is not None:
            set_keras_mask(rows, mask)
        return rows

    def _check_states(self, states: Any, weights: Any) -> None:
        dtype = keras.backend.standardize_dtype(states.dtype)
        if weights is not None or "float" not in dtype or states.shape[-1] != self.output_dim:
            raise SplitError(
                f"With reverse=True the layer takes hidden states alone, floats of shape (..., {self.output_dim}). "
                f"Received: {dtype} of shape {tuple(states.shape)}{'' if weights is None else ', and weights'}."
            )


class _LogitsTable(SplitEmbedding):
    """The table of the logits where weights are not tied. It lies as Keras's own does, a column for each token."""

    is_turned = True

    def _hold_tables(self) -> None:
        if keras.backend.backend() != "tensorflow":
            super()._hold_tables()  # its weights are made for this layer
        elif self._split is not None:
            from splitembed.lookup.dynamic import Constants

            self._constants = Constants(self._split, turned=True)


def _is_ragged(states: Any) -> bool:
    return bool(_backend.is_ragged(states))
