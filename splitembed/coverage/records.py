"""The small parts of a report, each a few numbers with names."""

import math
from typing import NamedTuple

Number = int | float

FLOAT32_BYTES = 4
ADAM_COPIES = 3  # the rows, and the two moments that Adam keeps of each number


def share(part: Number, whole: Number) -> float:
    """The part of a whole, from 0 to 1; NaN of nothing.

    >>> share(1, 4), share(0, 0)
    (0.25, nan)
    """
    return part / whole if whole else math.nan


class RuleCoverage(NamedTuple):
    """What one rule matched: its name, how many tokens, and the sum of their counts (None without counts)."""

    name: str
    num_types: int
    running_tokens: Number | None = None


class Suggestion(NamedTuple):
    """A word that has a vector and may be what a token means, and the fallback that would match it, if one would."""

    word: str
    fallback: str | None = None


class RankPoint(NamedTuple):
    """Of the `rank` most frequent tokens: how many are matched, the sum of their counts, and of the matched ones'."""

    rank: int
    num_matched: int
    running_tokens: Number
    running_matched: Number


class TableSizes(NamedTuple):
    """What the tables hold, in rows and bytes, and what one dense trainable layer would hold.

    >>> sizes = TableSizes(num_tokens=1000, dim=50, num_frozen=900, num_trainable=100, frozen_bytes=180_000)
    >>> sizes.trainable_bytes, sizes.trainable_adam_bytes, sizes.dense_bytes, sizes.dense_adam_bytes
    (20000, 60000, 200000, 600000)

    Args:
        num_tokens: number of ids, reserved ones included.
        dim: numbers a row.
        num_frozen: number of frozen rows.
        num_trainable: number of trainable rows, which are float32.
        frozen_bytes: bytes of the frozen rows as they are stored.
    """

    num_tokens: int
    dim: int
    num_frozen: int
    num_trainable: int
    frozen_bytes: int

    @property
    def trainable_bytes(self) -> int:
        """Bytes of the trainable rows."""
        return self.num_trainable * self.dim * FLOAT32_BYTES

    @property
    def trainable_adam_bytes(self) -> int:
        """Bytes of the trainable rows and the two slots that Adam keeps beside them."""
        return self.trainable_bytes * ADAM_COPIES

    @property
    def dense_bytes(self) -> int:
        """Bytes of the same vocabulary as one dense trainable layer."""
        return self.num_tokens * self.dim * FLOAT32_BYTES

    @property
    def dense_adam_bytes(self) -> int:
        """Bytes of that layer and Adam's two slots beside it."""
        return self.dense_bytes * ADAM_COPIES
