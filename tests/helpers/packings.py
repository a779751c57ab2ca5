"""Every way in which a file of vectors can come, for the tests of all of them."""

import bz2
import functools
import gzip
import io
import lzma
import sys
import zipfile

import zstandard


def zipped(content=b"", name="vectors.txt", method=zipfile.ZIP_DEFLATED, **members) -> bytes:
    """A zip archive of one file, or of several given by name."""
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
    """Gives content to a reader, each time anew, under a name that says nothing or something else (CASES X3)."""

    def __init__(self, packing, folder, monkeypatch):
        self.packing, self._path, self._monkeypatch = packing, folder / "vectors.npy", monkeypatch

    def __call__(self, content: bytes) -> str:
        if self.packing != "standard input":
            self._path.write_bytes(PACKERS[self.packing](content))
            return str(self._path)
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(_Pipe(content))))
        return "-"


class _Pipe(io.RawIOBase):
    """Gives a byte first, then a few thousand at a time, and cannot go back."""

    def __init__(self, content: bytes):
        self._content, self._place = content, 0

    def readable(self):
        return True

    def readinto(self, buffer):
        count = min(len(buffer), 5000 if self._place else 1, len(self._content) - self._place)
        buffer[:count] = self._content[self._place : self._place + count]
        self._place += count
        return count
