"""Direct updates of trainable rows: tokens or ids and their values in, the layer's weight assigned."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed.errors import SplitError
from splitembed.split.checks import as_float32
from splitembed.split.table import SplitTable

Rows = NDArray[np.float32]
_NAMED = 5  # frozen tokens that an error lists


class RowUpdates(keras.layers.Layer):
    """The part of `SplitEmbedding` that sets rows by hand: mixed in as its base.

    The layer has `_loaded_split()`, which gives its split or raises, and the weight `trainable_rows` once it is built.
    """

    def assign_rows(self, ids: Any, values: ArrayLike) -> None:
        """Sets trainable rows.

        ```python
        layer.assign_rows(["usr", 7], [[0.1, 0.2], [0.3, 0.4]])     # a row for each
        layer.assign_rows("usr", [0.1, 0.2])                        # one token by itself
        ```

        Of values for the same row the last one counts, whether an id repeats or several ids share the row. The small
        table is written as a whole: the cost is `num_trainable * dim`, so update many rows in one call. What an
        optimizer remembers of the rows stays as it was.

        Args:
            ids: tokens, ids, both mixed, or a boolean mask `(num_tokens,)`, of trainable rows.
            values: numbers `(num_ids, dim)`; `(dim,)` for one token or id by itself.

        Raises:
            SplitError: a frozen id, values of another shape, or a call inside a compiled function.
            TokenIdError: an id out of range.
            UnknownTokenError: a token that the vocabulary does not hold.
            MissingTableError: the layer's tables have not been loaded.
        """
        self._update(ids, values, _assign)

    def add_to_rows(self, ids: Any, values: ArrayLike) -> None:
        """Adds to trainable rows; values for the same row add up.

        ```python
        layer.add_to_rows(["usr", "usr"], [[0.1, 0.2], [0.3, 0.4]])  # adds [0.4, 0.6]
        ```

        In all else as `assign_rows`.

        Args:
            ids: tokens, ids, both mixed, or a boolean mask `(num_tokens,)`, of trainable rows.
            values: numbers `(num_ids, dim)`; `(dim,)` for one token or id by itself.

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
        places = split.remap[chosen]
        if (places >= 0).any():
            raise _frozen(split, chosen[places >= 0], self.name)
        updates = _checked_values(values, len(chosen), split.dim, one=isinstance(ids, str | int | np.integer))
        rows = np.array(keras.ops.convert_to_numpy(self.trainable_rows))
        change(rows, ~places, updates)
        self.trainable_rows.assign(rows)  # whole: after one scatter TensorFlow copies a variable at every read


def _assign(rows: Rows, places: NDArray[Any], values: Rows) -> None:
    """Writes each row once, with the last of its values."""
    distinct, last = np.unique(places[::-1], return_index=True)
    rows[distinct] = values[::-1][last]


def _checked_values(values: ArrayLike, num_ids: int, dim: int, one: bool) -> Rows:
    array = np.asarray(keras.ops.convert_to_numpy(values) if keras.ops.is_tensor(values) else values)
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
        return SplitError(f"Id {split.padding} is the padding of layer {name!r}: its row is zero and stays so.")
    tokens = split.vocabulary
    named = [str(each) if tokens is None else f"{tokens[each]!r} (id {each})" for each in ids[:_NAMED].tolist()]
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return SplitError(
        f"Layer {name!r} has frozen rows for {', '.join(named)}{more}, and only trainable ones can be set. Thaw them "
        f"first: make the layer of split.thaw(tokens), or name them as `trainable_tokens` of build_split."
    )


def _refuse_tracing(variable: Any, name: str) -> None:
    """Raises while a function is being compiled: the update would run once, at compile time, or not at all."""
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
            f"Rows of layer {name!r} are set between training steps, not inside a compiled function: call it eagerly, "
            f"such as in a callback."
        )
