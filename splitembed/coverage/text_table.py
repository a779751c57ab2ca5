"""Text tables for a terminal: aligned columns, and tokens and numbers as their cells."""

from collections.abc import Sequence

Number = int | float
Row = tuple[str, ...]

LABEL_WIDTH = 40


def aligned(rows: Sequence[Row], alignments: str = "<>>>") -> list[str]:
    """Return lines with columns of equal width.

    >>> aligned([("a", "12", "", ""), ("total", "3", "4", "")])
    ['a      12', 'total   3  4']

    Args:
        rows: the cells of each line.
        alignments: "<" for each column that is aligned to the left, ">" for each aligned to the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    layout = "  ".join(f"{{:{side}{width}}}" for side, width in zip(alignments, widths, strict=True))
    return [layout.format(*row).rstrip() for row in rows]


def number(value: Number | None) -> str:
    """Return a count or weight with thousands separators.

    >>> number(1234567), number(0.25), number(None)
    ('1,234,567', '0.25', '')
    """
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def printable(token: str, width: int = LABEL_WIDTH) -> str:
    """Return the token with unprintable characters escaped, cut to a number of characters.

    >>> printable("usr"), printable("a b"), printable(" lead"), printable("sunflower", width=6)
    ('usr', 'a b', "' lead'", 'sun...')
    """
    shown = token if token.isprintable() and token.strip() == token != "" else ascii(token)
    return shown if len(shown) <= width else shown[: width - 3] + "..."
