"""Splits whose frozen table is in id order, as that of a base model: row i belongs to id i.

Chosen ids and new ids beyond the table train. The logits are then the product with the base table, in which only the
columns of these ids differ.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from splitembed.split.protocol import Split

# numbers that are checked at once
_BLOCK = 2**20


@dataclass(frozen=True)
class Order:
    """The trainable rows of a split whose frozen table is in id order.

    Args:
        chosen: int32 `(num_chosen,)`, ascending ids below `num_frozen` that have a trainable row.
        rows: int32 `(num_chosen + num_new,)`, the trainable row of each chosen id, then of each id beyond the table.
        in_row_order: whether `rows` are all trainable rows in their order, each once.
    """

    chosen: NDArray[np.int32]
    rows: NDArray[np.int32]
    in_row_order: bool

    @property
    def num_chosen(self) -> int:
        """Number of chosen ids."""
        return len(self.chosen)

    @property
    def num_new(self) -> int:
        """Number of ids beyond the frozen table."""
        return len(self.rows) - len(self.chosen)


def order_of(split: Split) -> Order | None:
    """Return the trainable rows of a split in id order.

    >>> from splitembed import SplitTable
    >>> order = order_of(SplitTable([[1.0], [2.0]], [0, ~1, ~0], [[3.0], [4.0]]))
    >>> order.chosen.tolist(), order.rows.tolist()
    ([1], [1, 0])

    Returns:
        None if the table is empty, has another order, or has rows without a token.
    """
    num_frozen, remap = split.num_frozen, split.remap
    own, new = remap[:num_frozen], remap[num_frozen:]
    if not 0 < num_frozen <= len(remap) or (new >= 0).any():
        return None
    is_chosen = own < 0
    if (own[~is_chosen] != np.flatnonzero(~is_chosen)).any():
        return None
    chosen = np.flatnonzero(is_chosen).astype(np.int32)
    rows = ~np.concatenate([own[chosen], new])
    return Order(chosen, rows, np.array_equal(rows, np.arange(split.num_trainable)))


def unused_rows_are_finite(split: Split) -> bool:
    """Return whether all frozen rows without a token are finite: any other number times a gradient of zero is NaN.

    >>> from splitembed import SplitTable
    >>> unused_rows_are_finite(SplitTable([[np.nan], [2.0]], [1], []))
    False
    """
    if split.storage.only_finite:
        return True
    is_unused = np.ones(split.num_frozen, bool)
    is_unused[split.remap[split.remap >= 0]] = False
    unused, length = np.flatnonzero(is_unused), max(1, _BLOCK // split.dim)
    blocks = (split.frozen[unused[start : start + length]] for start in range(0, len(unused), length))
    return all(np.isfinite(split.storage.decode(block, None)).all() for block in blocks)
