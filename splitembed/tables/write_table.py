"""Writing of our files: h5py lays out an HDF5 file, the arrays are written to their places, the head comes last.

libhdf5 reports a full disk late and as RuntimeError. So it writes only its own kilobytes, and a file object the arrays.
"""

import contextlib
import errno
import math
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from splitembed.errors import SplitError
from splitembed.paths import local_path
from splitembed.tables.atomic_files import refuse_foreign, replacing
from splitembed.tables.fields import FORMAT_VERSION, PathLike
from splitembed.tables.fingerprints import Fingerprint, little_endian, row_blocks
from splitembed.tables.head import NUM_END_BYTES, Head, HeadError, StoredArray, block_bytes, checksum_of_ends

# The oldest format with checksums of its metadata, readable since 2008.
_LIBRARY_VERSIONS = ("v108", "v108")


class TableWriter:
    """A file that is being written.

    Args:
        file: the HDF5 file, open in h5py.
        stream: the same file, open in binary mode.
    """

    def __init__(self, file: Any, stream: Any) -> None:
        self._file, self._stream = file, stream
        self.attributes: dict[str, str | int] = {}
        self.arrays: dict[str, StoredArray] = {}

    def text(self, **attributes: str) -> None:
        """Write text attributes of fixed length; file names that are not UTF-8 keep their bytes."""
        import h5py

        for name, text in attributes.items():
            # HDF5 has no text of length 0: "" is one NUL.
            raw = text.encode("utf-8", "surrogateescape")
            self._file.attrs.create(name, raw, dtype=h5py.string_dtype("utf-8", max(1, len(raw))))
            self.attributes[name] = text

    def integer(self, name: str, value: int) -> None:
        """Write an integer attribute."""
        self._file.attrs[name] = np.int64(value)
        self.attributes[name] = int(value)

    def array(self, name: str, array: Any, fingerprint: Fingerprint | None = None) -> None:
        """Copy an array or a memory map into the file, about 4 MiB at a time.

        Args:
            name: of the array.
            array: the numbers.
            fingerprint: to which they are added.
        """
        blocks = row_blocks(len(array), array.dtype.itemsize * math.prod(array.shape[1:]))
        self.blocks(name, array.shape, array.dtype, (array[block] for block in blocks), fingerprint)

    def blocks(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: DTypeLike,
        blocks: Iterable[NDArray[Any]],
        fingerprint: Fingerprint | None = None,
    ) -> None:
        """Write an array block by block.

        Args:
            name: of the array.
            shape: of the array.
            dtype: of the array.
            blocks: consecutive rows of it.
            fingerprint: to which the numbers are added.
        """
        dataset = _create(self._file, name, shape, np.dtype(dtype).newbyteorder("<"))
        size = math.prod(shape) * dataset.dtype.itemsize
        offset = int(dataset.id.get_offset()) if size else 0
        is_rows = len(shape) == 2
        whole, first, last = 0, b"", b""
        self._stream.seek(offset)
        for block in blocks:
            part = little_endian(block)
            content = part.reshape(-1).view(np.uint8).data
            self._stream.write(content)
            first += content[: NUM_END_BYTES - len(first)]
            last = (last + content[-NUM_END_BYTES:])[-NUM_END_BYTES:]
            whole = whole if is_rows else zlib.crc32(content, whole)
            if fingerprint is not None:
                fingerprint.add(part)
        ends, crc32 = checksum_of_ends(first, last), None if is_rows else whole
        self.arrays[name] = StoredArray(name, dataset.dtype.str, tuple(shape), offset, size, ends, crc32)


def _create(file: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Make a contiguous dataset whose place is known and which libhdf5 does not fill."""
    import h5py

    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.CONTIGUOUS)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    properties.set_obj_track_times(False)
    links = h5py.h5p.create(h5py.h5p.LINK_CREATE)
    links.set_create_intermediate_group(True)
    space, kind = h5py.h5s.create_simple(shape), h5py.h5t.py_create(dtype)
    return h5py.Dataset(h5py.h5d.create(file.id, name.encode(), kind, space, properties, lcpl=links))


@contextlib.contextmanager
def publishing(path: PathLike, format_name: str, *, alignment: int, **attributes: str) -> Iterator[TableWriter]:
    """Write one of our files as `replacing` does.

    Args:
        path: the file to make or replace.
        format_name: its format.
        alignment: every array starts at a multiple of so many bytes.
        **attributes: text attributes of any length.

    Raises:
        SplitError: text that cannot be stored.
        TableFormatError: `path` is a file of another format.
        OSError: the disk is full.
    """
    size = _block_bytes(attributes)
    path = local_path(path)
    refuse_foreign(path, format_name)
    with replacing(path) as temporary, open(temporary, "r+b", buffering=0) as stream:
        with _laid_out(temporary, size, alignment) as file:
            writer = TableWriter(file, _WholeWrites(stream))
            writer.text(format=format_name)
            writer.integer("format_version", FORMAT_VERSION)
            writer.text(**attributes)
            yield writer
        # The end of the last array may be behind the last byte that was written.
        stream.seek(0, os.SEEK_END)
        head = Head(format_name, stream.tell(), writer.attributes, writer.arrays)
        stream.seek(0)
        writer._stream.write(head.encode(size))


class _WholeWrites:
    """A file object without a buffer whose `write` writes all bytes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.seek = stream.seek

    def write(self, content: Any) -> None:
        view = memoryview(content)
        while len(view):
            view = view[self._stream.write(view) :]


def _block_bytes(attributes: dict[str, str]) -> int:
    for name, text in attributes.items():
        if "\0" in text:
            raise SplitError(f"`{name}` must not contain NUL characters. Received: {text!r}.")
    try:
        return block_bytes(attributes)
    except HeadError as error:
        raise SplitError(f"{', '.join(attributes)}: too long for the head of a file: {error}") from None


@contextlib.contextmanager
def _laid_out(path: Path, block_size: int, alignment: int) -> Iterator[Any]:
    """Yield an HDF5 file in h5py. Of an error the first is raised, and those of libhdf5 as OSError."""
    import h5py

    layout = {"alignment_threshold": 1, "alignment_interval": alignment, "libver": _LIBRARY_VERSIONS}
    file = _as_os_error(lambda: h5py.File(path, "w", userblock_size=block_size, locking=False, **layout))
    try:
        yield file
    except BaseException:
        with contextlib.suppress(Exception):
            file.close()
        raise
    _as_os_error(file.close)


def _as_os_error(call: Any) -> Any:
    try:
        return call()
    except (RuntimeError, ValueError) as error:
        raise OSError(errno.EIO, f"libhdf5 could not write the file. Is the disk full? ({error})") from error
