"""Read a binary file from front to back, with errors that name the byte."""

from typing import BinaryIO

from splitembed.errors import VectorFormatError
from splitembed.vectors.read_checks import ReadChecks
from splitembed.vectors.streams import compressions

_DOWNLOAD_AGAIN = "The file is damaged or cut short. Download it again."


class Cursor:
    """A position in the content of a model, which moves forward; missing bytes are an error that names the position.

    `position` is that of the next byte.

    Args:
        reader: positioned at the first byte of the model.
        checks: makes the errors, which name bytes.
        size: bytes of the file where the reader can seek; None where it cannot.
    """

    def __init__(self, reader: BinaryIO, checks: ReadChecks, size: int | None = None) -> None:
        self._reader, self._checks, self._size, self._unread = reader, checks, size, b""
        self.position = 0

    def take(self, num_bytes: int, what: str) -> bytes:
        """Read exactly `num_bytes` bytes, a number that is small or was checked to be plausible."""
        start, self._unread = self._unread[:num_bytes], self._unread[num_bytes:]
        data = start + self._reader.read(num_bytes - len(start)) if len(start) < num_bytes else start
        if len(data) < num_bytes:
            raise self.missing(what, len(data), num_bytes)
        self.position += num_bytes
        return data

    def take_chunk(self) -> bytes:
        """Read the next bytes; empty at the end."""
        data, self._unread = self._unread or self._reader.read(compressions.CHUNK_BYTES), b""
        self.position += len(data)
        return data

    def put_back(self, data: bytes) -> None:
        """Put back the last bytes read."""
        self._unread = data + self._unread
        self.position -= len(data)

    def skip(self, num_bytes: int, what: str) -> None:
        """Skip bytes: seek where the reader can, else read and count them."""
        found = self._count(num_bytes) if self._size is None else min(self._size - self.position, num_bytes)
        if found < num_bytes:
            raise self.missing(what, found, num_bytes)
        self.position += num_bytes
        if self._size is not None:
            self._reader.seek(self.position)
            self._unread = b""

    def _count(self, num_bytes: int) -> int:
        left = num_bytes
        while left and (chunk := self._unread or self._reader.read(compressions.CHUNK_BYTES)):
            self._unread = chunk[left:]
            left -= min(left, len(chunk))
        return num_bytes - left

    def missing(self, what: str, found: int, expected: int) -> VectorFormatError:
        """Return the error for content that ends too early."""
        return self._checks.error(self.position, f"{found} bytes of {what}", f"{expected} bytes", _DOWNLOAD_AGAIN)

    def error(self, position: int, found: str, expected: str, advice: str = _DOWNLOAD_AGAIN) -> VectorFormatError:
        """Return the error that names a byte."""
        return self._checks.error(position, found, expected, advice)
