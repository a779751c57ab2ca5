"""Packings of a file of vectors: plain, compressed, in a zip archive, or through standard input."""

import bz2
import functools
import gzip
import io
import lzma
import sys
import zipfile

import zstandard


def zipped(content=b"", name="vectors.txt", method=zipfile.ZIP_DEFLATED, **members) -> bytes:
    """Return a zip archive of one file, or of several given by name."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for each, data in (members or {name: content}).items():
            archive.writestr(each, data)
    return stream.getvalue()


PACKERS = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": functools.partial(lzma.compress, preset=0),
    "Zstandard": zstandard.compress,
    "zip": zipped,
}
COMPRESSIONS = ("gzip", "bzip2", "xz", "Zstandard")
PACKINGS = (*PACKERS, "standard input")


class Delivery:
    """A packing, which writes content under a name that says nothing about it, and returns a source to read."""

    def __init__(self, packing, folder, monkeypatch):
        self.packing, self._path, self._monkeypatch = packing, folder / "vectors.npy", monkeypatch

    def __call__(self, content: bytes) -> str:
        if self.packing != "standard input":
            self._path.write_bytes(PACKERS[self.packing](content))
            return str(self._path)
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(_Pipe(content))))
        return "-"


class _Pipe(io.RawIOBase):
    """A pipe that gives one byte first, then a few thousand at a time, and cannot seek."""

    def __init__(self, content: bytes):
        self._content, self._position = content, 0

    def readable(self):
        return True

    def readinto(self, buffer):
        count = min(len(buffer), 5000 if self._position else 1, len(self._content) - self._position)
        buffer[:count] = self._content[self._position : self._position + count]
        self._position += count
        return count
