"""Heads: enough of a file to tell its format by, and no more."""

import io

import pytest

from splitembed.vectors.streams import heads
from splitembed.vectors.streams.heads import read_head


@pytest.mark.parametrize(
    ("content", "num_bytes"),
    [
        (b"", 0),
        (b"ab", 2),
        (b"1234567\n", 8),
        (b"1\n2\n5678", 8),
        (b"1\n2\n56789", 8),
        (b"x" * 15 + b"\n3\n\n.", 16),
        (b"x" * 40, 32),
    ],
)
def test_a_head_has_two_lines_unless_they_are_too_long(monkeypatch, content, num_bytes):
    monkeypatch.setattr(heads, "HEAD_BYTES", 8)
    monkeypatch.setattr(heads, "LONG_HEAD_BYTES", 32)
    head, is_all = read_head(io.BytesIO(content))
    if content.startswith(b"x" * 15):
        assert head.count(b"\n") >= 2 or num_bytes == 32
    assert content.startswith(head) and len(head) >= min(num_bytes, len(content))
    assert not is_all or head == content
