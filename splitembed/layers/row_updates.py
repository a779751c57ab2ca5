"""Direct updates of the trainable rows of a layer by tokens or ids."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed.errors import SplitError, shortened
from splitembed.split.checks import as_float32, as_plain_array
from splitembed.split.table import SplitTable

Rows = NDArray[np.float32]


class RowUpdates(keras.layers.Layer):
    """A base class of `SplitEmbedding` that sets rows directly.

    The layer has `_loaded_split()`, which gives its split or raises, and the weight `trainable_rows` once it is built.
    """

    def assign_rows(self, ids: Any, values: ArrayLike) -> None:
        """Set trainable rows.

        ```python
        layer.assign_rows(["usr", 7], [[0.1, 0.2], [0.3, 0.4]])     # a row for each
        layer.assign_rows("usr", [0.1, 0.2])                        # one token
        ```

        Of several values for one row, the last one is set, whether an id repeats or several ids share the row. The
        trainable table is written as a whole, at a cost of `num_trainable * dim`, so update many rows in one call.
        Optimizer slots are unchanged.

        Args:
            ids: tokens, ids, both mixed, or a boolean mask `(num_tokens,)`, of trainable rows.
            values: numbers `(num_ids, dim)`, or `(dim,)` for a single token or id.

        Raises:
            SplitError: a frozen id, values of another shape, or a call inside a compiled function.
            TokenIdError: an id out of range.
            UnknownTokenError: a token that the vocabulary does not hold.
            MissingTableError: the layer's tables have not been loaded.
        """
        self._update(ids, values, _assign)

    def add_to_rows(self, ids: Any, values: ArrayLike) -> None:
        """Add to trainable rows; several values for one row add up.

        ```python
        layer.add_to_rows(["usr", "usr"], [[0.1, 0.2], [0.3, 0.4]])  # adds [0.4, 0.6]
        ```

        The cost, shared rows and optimizer slots are as in `assign_rows`.

        Args:
            ids: tokens, ids, both mixed, or a boolean mask `(num_tokens,)`, of trainable rows.
            values: numbers `(num_ids, dim)`, or `(dim,)` for a single token or id.

        Raises:
            SplitError: a frozen id, values of another shape, or a call inside a compiled function.
            TokenIdError: an id out of range.
            UnknownTokenError: a token that the vocabulary does not hold.
            MissingTableError: the layer's tables have not been loaded.
        """
        self._update(ids, values, np.add.at)

    def _update(self, ids: Any, values: ArrayLike, change: Callable[[Rows, NDArray[Any], Rows], None]) -> None:
        split = self._loaded_split()
        if not self.built:
            self.build()
        _refuse_tracing(self.trainable_rows, self.name)
        ids = keras.ops.convert_to_numpy(ids) if keras.ops.is_tensor(ids) else ids
        chosen = split.ids(ids)
        coded = split.remap[chosen]
        if (coded >= 0).any():
            raise _frozen(split, chosen[coded >= 0], self.name)
        updates = _checked_values(values, len(chosen), split.dim, one=isinstance(ids, str | int | np.integer))
        rows = np.array(keras.ops.convert_to_numpy(self.trainable_rows))
        change(rows, ~coded, updates)
        # as a whole: after one scatter TensorFlow copies a variable at every read
        self.trainable_rows.assign(rows)


def _assign(rows: Rows, indices: NDArray[Any], values: Rows) -> None:
    """Write each row once, with the last of its values."""
    distinct, last = np.unique(indices[::-1], return_index=True)
    rows[distinct] = values[::-1][last]


def _checked_values(values: ArrayLike, num_ids: int, dim: int, one: bool) -> Rows:
    array = as_plain_array("values", keras.ops.convert_to_numpy(values) if keras.ops.is_tensor(values) else values)
    if one and array.ndim == 1:
        array = array[None]
    if array.size == 0 and num_ids == 0:
        return np.empty((0, dim), np.float32)
    if array.shape != (num_ids, dim):
        expected = f"`(num_ids, dim)`, here {(num_ids, dim)}" + (f" or {(dim,)}" if one else "")
        raise SplitError(f"`values` must have the shape {expected}. Received: shape {array.shape}.")
    return as_float32("values", array)


def _frozen(split: SplitTable, ids: NDArray[Any], name: str) -> SplitError:
    if split.padding in ids.tolist():
        return SplitError(f"Id {split.padding} is the padding of layer {name!r}, whose row stays zero. Leave it out.")
    tokens = split.vocabulary
    named = shortened(ids.tolist(), 5, lambda each: str(each) if tokens is None else f"{tokens[each]!r} (id {each})")
    return SplitError(
        f"`ids` of layer {name!r} must have trainable rows. Received frozen rows of {named}. Thaw "
        f"them first: make the layer from split.thaw(tokens), or pass them as `trainable_tokens` to build_split."
    )


def _refuse_tracing(variable: Any, name: str) -> None:
    """Raise while a function is compiled, where the update would run once, at compile time, or never."""
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        is_traced = not tf.executing_eagerly()
    elif backend == "jax":
        import jax

        is_traced = isinstance(variable.value, jax.core.Tracer)
    else:
        import torch

        is_traced = torch.compiler.is_compiling()
    if is_traced:
        raise SplitError(
            f"Rows of layer {name!r} cannot be set inside a compiled function. Set them between training steps, such "
            f"as in a callback."
        )
