"""Numbers, sizes and tokens for people: records of a report enter; aligned text for a terminal leaves."""

from collections.abc import Sequence

from splitembed.coverage.records import Number, TableSizes

LABEL_WIDTH = 40  # characters of a token that the table shows
BYTE_UNITS = ("B", "kB", "MB", "GB", "TB")  # of 1000 each

Row = tuple[str, str, str, str]


def size_rows(sizes: TableSizes) -> list[Row]:
    """A table of what the tables weigh.

    >>> print(*aligned(size_rows(TableSizes(1000, 50, 900, 100, 180_000))), sep="\\n")
                    rows    memory  with Adam
    frozen           900  180.0 kB
    trainable        100   20.0 kB    60.0 kB
    all trainable  1,000  200.0 kB   600.0 kB
    """
    trained = in_bytes(sizes.trainable_bytes), in_bytes(sizes.trainable_adam_bytes)
    dense = in_bytes(sizes.dense_bytes), in_bytes(sizes.dense_adam_bytes)
    return [
        ("", "rows", "memory", "with Adam"),
        ("frozen", number(sizes.num_frozen), in_bytes(sizes.frozen_bytes), ""),
        ("trainable", number(sizes.num_trainable), *trained),
        ("all trainable", number(sizes.num_tokens), *dense),
    ]


def aligned(rows: Sequence[Row]) -> list[str]:
    """Lines of equal columns: the first to the left, the others to the right.

    >>> aligned([("a", "12", "", ""), ("total", "3", "4", "")])
    ['a      12', 'total   3  4']
    """
    label, *numbers = (max(map(len, column)) for column in zip(*rows, strict=True))
    layout = "  ".join([f"{{:<{label}}}", *(f"{{:>{width}}}" for width in numbers)])
    return [layout.format(*row).rstrip() for row in rows]


def number(value: Number | None) -> str:
    """A count or weight for people.

    >>> number(1234567), number(0.25), number(None)
    ('1,234,567', '0.25', '')
    """
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def in_bytes(num_bytes: int) -> str:
    """A size for people, in units of 1000.

    >>> in_bytes(999), in_bytes(1000), in_bytes(80_000_000)
    ('999 B', '1.0 kB', '80.0 MB')
    """
    if num_bytes < 1000:
        return f"{num_bytes} B"
    power = min(len(BYTE_UNITS) - 1, (len(str(num_bytes)) - 1) // 3)
    return f"{num_bytes / 1000**power:,.1f} {BYTE_UNITS[power]}"


def printable(token: str) -> str:
    """The token as a terminal can show it: odd characters escaped, the end of a long one left out.

    >>> printable("usr"), printable("a b"), printable(" lead")
    ('usr', 'a b', "' lead'")
    """
    shown = token if token.isprintable() and token.strip() == token != "" else ascii(token)
    return shown if len(shown) <= LABEL_WIDTH else shown[: LABEL_WIDTH - 3] + "..."
