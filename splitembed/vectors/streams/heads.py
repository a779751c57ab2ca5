"""The first bytes of a file of vectors, by which its format is told: a reader enters, a `Head` leaves."""

import io
from dataclasses import dataclass

HEAD_BYTES = 1 << 20
LONG_HEAD_BYTES = 1 << 26  # where the first two lines are longer than HEAD_BYTES


@dataclass
class Head:
    """How a file begins, and what is known of it beforehand."""

    path: str  # what messages call it: a path, "standard input", "glove.zip: glove.6B.50d.txt"
    head: bytes  # the first bytes, at least two lines of them where there are two
    head_is_all: bool  # nothing comes after the head
    size: int | None  # bytes of content where the file tells: an uncompressed, regular one


def read_head(reader: io.RawIOBase | io.BufferedIOBase) -> tuple[bytes, bool]:
    """Reads the first bytes.

    >>> read_head(io.BytesIO(b"the 1 2"))
    (b'the 1 2', True)

    Args:
        reader: at its first byte.

    Returns:
        The bytes, and whether they are all that there are.
    """
    head = bytearray()
    enough = HEAD_BYTES
    while chunk := reader.read(enough - len(head)):
        head += chunk
        if len(head) == enough:
            if enough == LONG_HEAD_BYTES or head.count(b"\n") >= 2:
                break
            enough *= 2
    return bytes(head), not chunk
