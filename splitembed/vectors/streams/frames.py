"""Decompress the frames of bzip2, xz and Zstandard files, one after another.

Zero bytes after the last frame are padding. Anything else there is an error, while Python's `bz2.open` and `lzma.open`
drop it silently.
"""

import importlib
import io
from collections.abc import Callable
from typing import Any

from splitembed.errors import load_library

BUFFER_BYTES = 1 << 17
# The most bytes of output at once.
OUTPUT_BYTES = 1 << 18
# The library zstandard does not bound its output, which is 128 kB for every 4 bytes of input at worst.
_ZSTANDARD_INPUT_BYTES = 1 << 10


class Frames(io.RawIOBase):
    """The content of consecutive frames, as one file.

    >>> import bz2
    >>> file = io.BufferedReader(io.BytesIO(bz2.compress(b"the 1") + bz2.compress(b" 2") + bytes(4)))
    >>> Frames(file, bz2.BZ2Decompressor).read(7)
    b'the 1'

    Args:
        file: positioned at the first byte of a frame.
        new_decompressor: returns the decompressor of one frame, an object like `bz2.BZ2Decompressor`.
    """

    def __init__(self, file: io.BufferedReader, new_decompressor: Callable[[], Any]) -> None:
        self._file, self._new_decompressor = file, new_decompressor
        self._decompressor = new_decompressor()
        self._output = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._output and self._decompress():
            pass
        count = min(len(buffer), len(self._output))
        buffer[:count], self._output = self._output[:count], self._output[count:]
        return count

    def _decompress(self) -> bool:
        """Decompress one piece, which may give no output yet; return False at the end."""
        data = b""
        if self._decompressor.eof:
            data = self._next_frame()
            if not data:
                return False
        elif self._decompressor.needs_input:
            data = self._file.read1(BUFFER_BYTES)
            if not data:
                raise EOFError("the end mark is missing")
        self._output = memoryview(self._decompressor.decompress(data, OUTPUT_BYTES))
        return True

    def _next_frame(self) -> bytes:
        """Return the first bytes of the next frame, without padding; empty at the end of the file."""
        data: bytes = self._decompressor.unused_data.lstrip(b"\0")
        while not data and (chunk := self._file.read1(BUFFER_BYTES)):
            data = chunk.lstrip(b"\0")
        if data:
            self._decompressor = self._new_decompressor()
        return data


def open_zstd(file: io.BufferedReader, path: str) -> Frames:
    """Open Zstandard frames (RFC 8878), with the standard library from Python 3.14 on, else with zstandard.

    >>> import zstandard
    >>> open_zstd(io.BufferedReader(io.BytesIO(zstandard.compress(b"the 1 2"))), "glove.txt").read(7)
    b'the 1 2'

    Args:
        file: positioned at the first byte of a frame.
        path: its name in messages.

    Returns:
        The content.

    Raises:
        ImportError: neither library is installed.
    """
    try:
        library = importlib.import_module("compression.zstd")
    except ImportError:
        library = load_library("zstandard", path, "zstd")
        return Frames(file, lambda: _LibraryFrame(library))
    return Frames(file, lambda: _StandardFrame(library))


class _StandardFrame:
    """One frame, decompressed by the standard library; its errors become EOFError."""

    def __init__(self, library: Any) -> None:
        self._frame, self._error = library.ZstdDecompressor(), library.ZstdError

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frame, name)

    def decompress(self, data: bytes, most_bytes: int) -> bytes:
        try:
            return bytes(self._frame.decompress(data, most_bytes))
        except self._error as error:
            raise EOFError(error) from error


class _LibraryFrame:
    """One frame, decompressed by the library zstandard in small pieces."""

    def __init__(self, library: Any) -> None:
        self._frame, self._error = library.ZstdDecompressor().decompressobj(), library.ZstdError
        self._input = memoryview(b"")

    @property
    def eof(self) -> bool:
        return bool(self._frame.eof)

    @property
    def needs_input(self) -> bool:
        return not self._input

    @property
    def unused_data(self) -> bytes:
        return b"".join((self._frame.unused_data, self._input))

    def decompress(self, data: bytes, _: int) -> bytes:
        if data:
            self._input = memoryview(data)
        part, self._input = self._input[:_ZSTANDARD_INPUT_BYTES], self._input[_ZSTANDARD_INPUT_BYTES:]
        try:
            return bytes(self._frame.decompress(part))
        except self._error as error:
            raise EOFError(error) from error
