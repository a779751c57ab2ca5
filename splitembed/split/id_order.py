"""Whether a split's frozen table lies in id order: a split goes in; what trains beside and after the table comes out.

A base model's whole table lies so, with chosen tokens trained beside it and new ones after it. Its logits are then the
base's own product, in which few columns are others.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from splitembed.split.base import SplitBase
from splitembed.tables import decode_rows


@dataclass(frozen=True)
class Order:
    """What trains in a split whose frozen table is in id order.

    Args:
        chosen: int32 `(num_chosen,)`, ascending ids below `num_frozen` that have a trainable row.
        rows: int32 `(num_chosen + num_new,)`, the trainable row of each chosen id, then of each id beyond the table.
        in_row_order: whether `rows` are all trainable rows, each once, as they lie.
        is_finite: whether all numbers are finite in the frozen rows that chosen ids no longer have.
    """

    chosen: NDArray[np.int32]
    rows: NDArray[np.int32]
    in_row_order: bool
    is_finite: bool

    @property
    def num_chosen(self) -> int:
        """Number of chosen ids."""
        return len(self.chosen)

    @property
    def num_new(self) -> int:
        """Number of ids beyond the frozen table."""
        return len(self.rows) - len(self.chosen)


def order_of(split: SplitBase) -> Order | None:
    """Finds what trains beside and after a frozen table in id order.

    >>> order = order_of(SplitBase([[1.0], [2.0]], [0, ~1, ~0], [[3.0], [4.0]]))
    >>> order.chosen.tolist(), order.rows.tolist()
    ([1], [1, 0])

    Returns:
        None where the table lies in another order, holds rows of no token, or has none at all.
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
    before = decode_rows(split.frozen[chosen], None if split.scale is None else split.scale[chosen])
    return Order(chosen, rows, np.array_equal(rows, np.arange(split.num_trainable)), bool(np.isfinite(before).all()))
