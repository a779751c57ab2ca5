"""Bytes of a source: opened by content, decompressed, taken out of archives."""
