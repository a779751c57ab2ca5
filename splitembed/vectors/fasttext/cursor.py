"""Taking a file from front to back: a reader enters; bytes leave, as many as asked for, or the error that names one."""

from typing import BinaryIO

from splitembed.errors import VectorFormatError
from splitembed.vectors.intake import Intake
from splitembed.vectors.streams import compressions

_GET_AGAIN = "The file is damaged or cut short: get it again."


class Cursor:
    """The content of a model from front to back; bytes that are missing are an error that names the place.

    Args:
        reader: at the first byte of the model.
        intake: makes the errors, which name bytes.
        size: bytes of the file, where the reader can jump in it; else None.
    """

    def __init__(self, reader: BinaryIO, intake: Intake, size: int | None = None) -> None:
        self._reader, self._intake, self._size, self._again = reader, intake, size, b""
        self.place = 0  # of the next byte

    def take(self, num_bytes: int, what: str) -> bytes:
        """Takes exactly so many bytes: few, or checked to be plausible."""
        start, self._again = self._again[:num_bytes], self._again[num_bytes:]
        data = start + self._reader.read(num_bytes - len(start)) if len(start) < num_bytes else start
        if len(data) < num_bytes:
            raise self.missing(what, len(data), num_bytes)
        self.place += num_bytes
        return data

    def take_chunk(self) -> bytes:
        """Takes whatever comes next; nothing at the end."""
        data, self._again = self._again or self._reader.read(compressions.CHUNK_BYTES), b""
        self.place += len(data)
        return data

    def give_back(self, data: bytes) -> None:
        """Puts back the last bytes taken."""
        self._again = data + self._again
        self.place -= len(data)

    def skip(self, num_bytes: int, what: str) -> None:
        """Passes over bytes that nobody reads here: counts them, or where it can, jumps."""
        found = self._count(num_bytes) if self._size is None else min(self._size - self.place, num_bytes)
        if found < num_bytes:
            raise self.missing(what, found, num_bytes)
        self.place += num_bytes
        if self._size is not None:
            self._reader.seek(self.place)
            self._again = b""

    def _count(self, num_bytes: int) -> int:
        left = num_bytes
        while left and (chunk := self._again or self._reader.read(compressions.CHUNK_BYTES)):
            self._again = chunk[left:]
            left -= min(left, len(chunk))
        return num_bytes - left

    def missing(self, what: str, found: int, expected: int) -> VectorFormatError:
        """The error for content that ends too early."""
        return self._intake.error(self.place, f"{found} bytes of {what}", f"{expected} bytes", _GET_AGAIN)

    def error(self, place: int, found: str, expected: str, advice: str = _GET_AGAIN) -> VectorFormatError:
        """The error that names a byte."""
        return self._intake.error(place, found, expected, advice)
