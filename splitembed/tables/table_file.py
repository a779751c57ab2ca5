"""Our files, opened for reading by their head alone."""

import contextlib
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import SplitError, TableFormatError, shortened
from splitembed.paths import local_path
from splitembed.tables import mapping
from splitembed.tables.fields import HDF5_MAGIC, OPENERS, PathLike, changed, damaged
from splitembed.tables.fingerprints import little_endian
from splitembed.tables.head import (
    NUM_END_BYTES,
    Head,
    HeadError,
    NoHeadError,
    OtherVersionError,
    StoredArray,
    checksum_of_ends,
    read_head,
)
from splitembed.tables.network_files import is_on_network

if sys.platform != "win32":
    import fcntl

MemoryMap = bool | Literal["auto"]
# A process that opens a pipe would wait for its writer.
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


class TableFile:
    """A file that is open for reading, of which only the head has been read.

    Args:
        name: the path of the file, for messages.
        stream: the open file.
        head: its head.
        memory_map: whether arrays may be views of a map of the file.
    """

    def __init__(self, name: str, stream: BinaryIO, head: Head, memory_map: bool) -> None:
        self.name, self._stream, self._head = name, stream, head
        self._memory = mapping.map_file(stream.fileno(), head.file_size) if memory_map else None

    def __contains__(self, name: str) -> bool:
        return name in self._head.arrays

    def text(self, name: str) -> str:
        """Return a text attribute."""
        value = self._head.attributes.get(name)
        if not isinstance(value, str):
            raise damaged(self.name, f"its attribute `{name}` is {shortened([value], 1)}; expected text.")
        return value

    def integer(self, name: str) -> int:
        """Return an integer attribute."""
        value = self._head.attributes.get(name)
        if not isinstance(value, int):
            raise damaged(self.name, f"its attribute `{name}` is {shortened([value], 1)}; expected an integer.")
        return value

    def index(self, name: str, size: int) -> int | None:
        """Return an optional integer attribute, after checking `0 <= value < size`."""
        if name not in self._head.attributes:
            return None
        value = self.integer(name)
        if not 0 <= value < size:
            raise damaged(self.name, f"its attribute `{name}` is {value}; expected 0 to {size - 1}.")
        return value

    def array(
        self, name: str, dtypes: tuple[np.dtype[Any], ...], ndim: int, *, can_map: bool = False
    ) -> tuple[NDArray[Any], bool]:
        """Return an array, after checking its bytes: of a view of the map the ends, of a copy all that are known.

        Args:
            name: of the array.
            dtypes: the allowed ones, in native byte order.
            ndim: expected number of axes.
            can_map: whether a view of the map will do.

        Returns:
            A read-only C-contiguous array in native byte order at a multiple of 64 bytes, and whether it is a view.

        Raises:
            TableFormatError: no such array, another dtype or number of axes, or other bytes than were written.
        """
        place = self.place(name, dtypes, ndim)
        if self._memory is None or not can_map or not place.size:
            found = self._read(place)
            self._check_ends(place, found)
            self.check_whole(name, found)
            return found, False
        found = mapping.mapped(self._memory, place)
        self._check_ends(place, found)
        return found, True

    def place(self, name: str, dtypes: tuple[np.dtype[Any], ...], ndim: int) -> StoredArray:
        """Return the place of an array, after checking its dtype and number of axes."""
        place = self._head.arrays.get(name)
        if place is None:
            raise damaged(self.name, f"the array `{name}` is missing.")
        if len(place.shape) != ndim or np.dtype(place.dtype).newbyteorder("=") not in dtypes:
            expected = f"{ndim} axes and dtype {' or '.join(map(str, dtypes))}"
            found = f"shape {place.shape} and dtype {np.dtype(place.dtype)}"
            raise damaged(self.name, f"`{name}` has {found}; expected {expected}.")
        return place

    def reads_at_random(self, name: str) -> None:
        """Tell the system that the rows of a mapped array are read in random order."""
        assert self._memory is not None
        mapping.advise_random(self._memory, self._head.arrays[name])

    def check_length(self, name: str, found: int, expected: int) -> None:
        """Refuse an array of another length than expected."""
        if found != expected:
            raise damaged(self.name, f"`{name}` has length {found}; expected {expected}.")

    def check_whole(self, name: str, array: NDArray[Any]) -> None:
        """Refuse an array whose bytes are not those that were written; rows have no such check."""
        expected = self._head.arrays[name].crc32
        if expected is not None and zlib.crc32(_bytes(array)) != expected:
            raise changed(self.name, f"the bytes of `{name}` are not those that were written.")

    def check_fingerprint(self, name: str, found: str) -> None:
        """Refuse data whose fingerprint differs from the one in the attribute `name`."""
        recorded = self.text(name)
        if found != recorded:
            what = f"its content has the fingerprint {found}; expected {recorded}, its attribute `{name}`."
            raise damaged(self.name, what)

    def _read(self, place: StoredArray) -> NDArray[Any]:
        try:
            return mapping.read(self._stream, place)
        except EOFError:
            raise damaged(self.name, f"it ends before the end of `{place.name}`.") from None

    def _check_ends(self, place: StoredArray, array: NDArray[Any]) -> None:
        content = _bytes(array)
        if checksum_of_ends(content[:NUM_END_BYTES], content[-NUM_END_BYTES:]) != place.ends:
            raise changed(self.name, f"the first or last bytes of `{place.name}` are not those that were written.")


def _bytes(array: NDArray[Any]) -> Any:
    return little_endian(array).reshape(-1).view(np.uint8).data


@contextlib.contextmanager
def reading(path: PathLike, format_name: str, memory_map: MemoryMap = False) -> Iterator[TableFile]:
    """Open one of our files for reading. Views of a map of it stay valid after it is closed, replaced or deleted.

    Args:
        path: the file.
        format_name: the expected format.
        memory_map: whether arrays may be views of a map; "auto": unless the file lies on a network file system.

    Raises:
        FileNotFoundError, PermissionError, IsADirectoryError: as `open` raises them.
        OSError: `path` is a pipe or a device.
        TableFormatError: the file is foreign, damaged, too new, or being written.
    """
    if memory_map not in (True, False, "auto"):
        raise SplitError(f'`memory_map` must be True, False or "auto". Received: {memory_map!r}.')
    path = local_path(path)
    with open_regular(path) as stream:
        refuse_while_written(stream.fileno(), path)
        head = _checked_head(path, stream, format_name)
        maps = not is_on_network(path) if memory_map == "auto" else bool(memory_map)
        yield TableFile(os.fspath(path), stream, head, maps)


def open_regular(path: PathLike) -> BinaryIO:
    """Open a file for reading without a buffer; a pipe or a device is refused at once.

    Raises:
        FileNotFoundError, PermissionError, IsADirectoryError: as `open` raises them.
        OSError: `path` is a pipe or a device.
    """
    name = os.fspath(path)
    stream: BinaryIO = open(name, "rb", buffering=0, opener=lambda name, _: os.open(name, _FLAGS))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(f"{name} is a pipe or a device; expected a file. Save the table as a file.")
    return stream


def format_of(path: PathLike) -> str | None:
    """Return the format of one of our files; None for a file of another kind, or without a readable head."""
    with contextlib.suppress(OSError, HeadError), open_regular(local_path(path)) as stream:
        return read_head(stream).format
    return None


def is_rewritten(path: PathLike) -> bool:
    """Return whether one of our files was cut short or written again, so that its head no longer describes it."""
    with open_regular(local_path(path)) as stream:
        try:
            head = read_head(stream)
        except HeadError:
            return False
        return os.fstat(stream.fileno()).st_size != head.file_size or any(_is_moved(stream, head))


def _is_moved(stream: BinaryIO, head: Head) -> Iterator[bool]:
    for place in head.arrays.values():
        length, ends = min(place.size, NUM_END_BYTES), []
        for start in (place.offset, place.offset + place.size - length):
            stream.seek(start)
            ends.append(stream.read(length))
        yield checksum_of_ends(*ends) != place.ends


def _checked_head(path: PathLike, stream: BinaryIO, format_name: str) -> Head:
    name, size = os.fspath(path), os.fstat(stream.fileno()).st_size
    try:
        head = read_head(stream)
    except NoHeadError:
        raise TableFormatError(_foreign(name, stream, size)) from None
    except OtherVersionError as error:
        raise TableFormatError(f"{name} {error}") from None
    except HeadError as error:
        raise damaged(path, str(error)) from None
    if head.format not in OPENERS:
        raise damaged(path, f"its format is {head.format!r}; expected {format_name!r}.")
    if head.format != format_name:
        raise TableFormatError(
            f"{name} has the format {head.format!r}; expected {format_name!r}. Open it with {OPENERS[head.format]}."
        )
    if size != head.file_size:
        raise changed(path, f"it has {size} bytes; expected {head.file_size}. It was cut short or written again.")
    return head


def _foreign(name: str, stream: BinaryIO, size: int) -> str:
    """Return the message about a file that splitembed did not write. It quotes nothing of the file."""
    if not size:
        return f"{name} is empty (0 bytes); expected a table written by splitembed. Copy or write it again."
    stream.seek(0)
    kind = "an HDF5 file" if stream.read(len(HDF5_MAGIC)) == HDF5_MAGIC else "a file"
    return (
        f"{name} is {kind} without the head of a table; expected a table written by splitembed. Use read_vectors for "
        "other files of vectors."
    )


def refuse_while_written(descriptor: int, path: PathLike) -> None:
    """Take the lock of a reader, which HDF5 takes too. A map of the file keeps it, so that no HDF5 tool edits the file.

    Raises:
        TableFormatError: a writer holds the lock.
    """
    # Windows has no such locks.
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise TableFormatError(
            f"{os.fspath(path)} is open for writing elsewhere, so it may be incomplete. Open it again when the writer "
            "has closed it. (splitembed itself never writes into an existing file, but replaces it.)"
        ) from None
    # Some network file systems have no locks.
    except OSError:
        pass
