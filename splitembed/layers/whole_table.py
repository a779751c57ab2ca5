"""The whole table of a layer as a read-only array, of which only the rows that are asked for are made."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from splitembed.errors import SplitError
from splitembed.lookup.context import in_graph
from splitembed.split.table import SplitTable


class WholeTable:
    """Float32 `(num_tokens, dim)`, one row for each id, frozen and trainable rows alike, with their current values.

    `table[ids]` makes the rows of these ids; `np.asarray(table)`, `table.numpy()` and iteration make the whole table.
    It is not a variable: it cannot be assigned, and no gradient reaches the layer through it.

    Args:
        current: returns the split with its current rows.
        shape: `(num_tokens, dim)`.
    """

    dtype = np.dtype(np.float32)
    ndim = 2

    def __init__(self, current: Callable[[], SplitTable], shape: tuple[int, int]) -> None:
        self._current, self.shape = current, shape

    def __getitem__(self, ids: Any) -> NDArray[np.float32]:
        """Return the rows of ids, as indexing the whole table does.

        Raises:
            SplitError: inside a compiled function.
        """
        _refuse_graph()
        rows, *others = ids if isinstance(ids, tuple) else (ids,)
        indices = np.arange(self.shape[0])[rows]
        return self._current().lookup(indices)[(Ellipsis, *others)] if others else self._current().lookup(indices)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the whole table, a new array.

        Raises:
            SplitError: inside a compiled function.
        """
        return self.numpy().astype(self.dtype if dtype is None else dtype, copy=False)

    def numpy(self) -> NDArray[np.float32]:
        """Return the whole table, a new array.

        Raises:
            SplitError: inside a compiled function.
        """
        _refuse_graph()
        return self._current().combine()

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        return iter(self.numpy())

    def __repr__(self) -> str:
        return f"WholeTable(shape={self.shape}, dtype=float32)"


def _refuse_graph() -> None:
    if in_graph():
        raise SplitError(
            "`embeddings` is read inside a compiled function, where its values would never change again, and no "
            "gradient would reach the layer. Call the layer on ids instead; for logits use SplitReversibleEmbedding."
        )
