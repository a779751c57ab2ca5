"""The rows and bytes of the tables, compared with one dense trainable layer."""

from typing import NamedTuple

from splitembed.coverage.text_table import Row, number
from splitembed.tables.storage import FLOAT32

# The rows, and the two moments that Adam keeps of each number.
ADAM_COPIES = 3
# Each unit is 1000 of the one before.
BYTE_UNITS = ("B", "kB", "MB", "GB", "TB")


class TableSizes(NamedTuple):
    """Rows and bytes of the tables, and bytes of one dense trainable layer of the same vocabulary.

    >>> sizes = TableSizes(num_tokens=1000, dim=50, num_frozen=900, num_trainable=100, frozen_bytes=180_000)
    >>> sizes.trainable_bytes, sizes.trainable_adam_bytes, sizes.dense_bytes, sizes.dense_adam_bytes
    (20000, 60000, 200000, 600000)

    Args:
        num_tokens: number of ids, reserved ones included.
        dim: length of a row.
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
        return FLOAT32.table_bytes(self.num_trainable, self.dim)

    @property
    def trainable_adam_bytes(self) -> int:
        """Bytes of the trainable rows and their two Adam slots."""
        return self.trainable_bytes * ADAM_COPIES

    @property
    def dense_bytes(self) -> int:
        """Bytes of the same vocabulary as one dense trainable layer."""
        return FLOAT32.table_bytes(self.num_tokens, self.dim)

    @property
    def dense_adam_bytes(self) -> int:
        """Bytes of that dense layer and its two Adam slots."""
        return self.dense_bytes * ADAM_COPIES

    def to_dict(self) -> dict[str, int]:
        """Return the fields and the derived bytes by name.

        >>> TableSizes(4, 2, 1, 3, 8).to_dict()["dense_bytes"]
        32
        """
        derived = ("trainable_bytes", "trainable_adam_bytes", "dense_bytes", "dense_adam_bytes")
        return {**self._asdict(), **{name: getattr(self, name) for name in derived}}


def size_rows(sizes: TableSizes) -> list[Row]:
    """Return the rows of a text table of the sizes.

    >>> from splitembed.coverage.text_table import aligned
    >>> print(*aligned(size_rows(TableSizes(1000, 50, 900, 100, 180_000))), sep="\\n")
                    rows    memory  with Adam
    frozen           900  180.0 kB
    trainable        100   20.0 kB    60.0 kB
    all trainable  1,000  200.0 kB   600.0 kB
    """
    trainable = in_bytes(sizes.trainable_bytes), in_bytes(sizes.trainable_adam_bytes)
    dense = in_bytes(sizes.dense_bytes), in_bytes(sizes.dense_adam_bytes)
    return [
        ("", "rows", "memory", "with Adam"),
        ("frozen", number(sizes.num_frozen), in_bytes(sizes.frozen_bytes), ""),
        ("trainable", number(sizes.num_trainable), *trainable),
        ("all trainable", number(sizes.num_tokens), *dense),
    ]


def in_bytes(num_bytes: int) -> str:
    """Return a number of bytes in the fitting unit.

    >>> in_bytes(999), in_bytes(1000), in_bytes(80_000_000)
    ('999 B', '1.0 kB', '80.0 MB')
    """
    if num_bytes < 1000:
        return f"{num_bytes} B"
    power = min(len(BYTE_UNITS) - 1, (len(str(num_bytes)) - 1) // 3)
    return f"{num_bytes / 1000**power:,.1f} {BYTE_UNITS[power]}"
