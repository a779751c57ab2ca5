"""A file's first bytes enter; whether it is a fastText .bin model, and the dim of one, leaves."""

import re

MAGIC = b"\xba\x16\x4f\x2f"
# Without magic: dim and five options, all small, then loss and model, each 1 to 3.
_OLD_HEAD = re.compile(rb"([\s\S]{2}\x00\x00){6}([\x01-\x03]\x00\x00\x00){2}")


def is_fasttext(head: bytes) -> bool:
    r"""Says whether a file starts as a fastText .bin model does.

    >>> is_fasttext(b"\xba\x16\x4f\x2f\x0c\0\0\0"), is_fasttext(b"the 0.1 0.2\n")
    (True, False)
    """
    return head.startswith(MAGIC) or _OLD_HEAD.match(head) is not None


def read_dim(head: bytes) -> int:
    r"""Reads the dim of a fastText .bin model from its first bytes; 0 where they end before it.

    >>> read_dim(b"\xba\x16\x4f\x2f\x0c\0\0\0\x64\0\0\0\5\0\0\0")
    100
    """
    start = 8 if head.startswith(MAGIC) else 0
    return int.from_bytes(head[start : start + 4], "little", signed=True) if len(head) >= start + 4 else 0
