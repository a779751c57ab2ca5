"""Datasets of our files, checked before they are read.

HDF5 trusts a file: a chunk that decompresses to too few numbers crashes the process, a chunk that was never written
reads as zeros, and memory is allocated for any shape that is claimed.
"""

import math
import zlib
from collections.abc import Iterable
from typing import Any

import h5py
import numpy as np

from splitembed.tables.fields import damaged

# Bytes to decompress at a time, so that the output of a chunk is counted in bounded memory.
_BLOCK_BYTES = 1 << 20
_GZIP, _SHUFFLE, _CHECKSUM = h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32
_CHECKSUM_BYTES = 4


def dataset(file: h5py.File, name: str, dtypes: tuple[np.dtype[Any], ...], ndim: int) -> h5py.Dataset:
    """Return a dataset, after checking that it is complete, stored in this file, and of one of the dtypes.

    Args:
        file: the open file.
        name: of the dataset, such as `words/utf8`.
        dtypes: allowed NumPy dtypes, in any byte order.
        ndim: expected number of axes.

    Raises:
        TableFormatError: no such dataset, another dtype or number of axes, or missing bytes.
    """
    # `get` would hide the reason why HDF5 cannot open a dataset.
    found = file[name] if name in file else None  # noqa: SIM401
    if not isinstance(found, h5py.Dataset) or _is_outside(found, file):
        raise damaged(file, f"the dataset `{name}` is missing, or is stored outside the file.")
    if found.ndim != ndim or found.dtype.newbyteorder("=") not in dtypes:
        expected = f"{ndim} axes and dtype {' or '.join(map(str, dtypes))}"
        raise damaged(file, f"`{name}` has shape {found.shape} and dtype {found.dtype}; expected {expected}.")
    fault = _fault_of_bytes(found)
    if fault:
        raise damaged(file, f"`{name}` has shape {found.shape}: {fault}")
    return found


def _fault_of_bytes(found: h5py.Dataset) -> str:
    if found.chunks and found.id.get_create_plist().get_nfilters():
        return fault_of_chunks(found)
    num_bytes, stored = math.prod(found.shape) * found.dtype.itemsize, found.id.get_storage_size()
    return f"{stored} of its {num_bytes} bytes were written." if stored < num_bytes else ""


def _is_outside(found: h5py.Dataset, file: h5py.File) -> bool:
    """Return whether a dataset is a view of data outside the file, which HDF5 allows for any path."""
    return bool(found.is_virtual or found.external or found.file.filename != file.filename)


def check_length(file: h5py.File, name: str, found: int, expected: int) -> None:
    """Refuse a dataset of another length than expected."""
    if found != expected:
        raise damaged(file, f"`{name}` has length {found}; expected {expected}.")


def fault_of_chunks(dataset: h5py.Dataset) -> str:
    """Return what is wrong with the chunks of a dataset with filters; "" if all of its numbers are stored.

    >>> import io
    >>> with h5py.File(io.BytesIO(), "w") as file:
    ...     whole = file.create_dataset("whole", data=range(10), chunks=(4,), compression="gzip")
    ...     partly = file.create_dataset("partly", (10,), "i4", chunks=(4,), compression="gzip")
    ...     partly[:4] = 1
    ...     fault_of_chunks(whole), fault_of_chunks(partly)
    ('', '1 of its 3 chunks were written.')

    Args:
        dataset: a chunked dataset of an open file.
    """
    filters = tuple(_filters(dataset))
    if not set(filters) <= {_GZIP, _SHUFFLE, _CHECKSUM} or filters.count(_GZIP) > 1:
        return f"it has the HDF5 filters {filters}; expected only gzip, shuffle and fletcher32."
    found: list[h5py.h5d.StoreInfo] = []
    dataset.id.chunk_iter(found.append)
    offsets = {each.chunk_offset for each in found if _is_offset(each.chunk_offset, dataset)}
    expected = math.prod(-(-size // length) for size, length in zip(dataset.shape, dataset.chunks, strict=True))
    if not len(offsets) == len(found) == expected:
        return f"{len(offsets)} of its {expected} chunks were written."
    if any(each.filter_mask for each in found) or sum(each.size for each in found) > _file_size(dataset):
        return "its chunks are not stored with its filters, or are larger than the file."
    wrong = next((offset for offset in sorted(offsets) if not _is_complete(dataset, offset, filters)), None)
    return "" if wrong is None else f"its chunk at {wrong} is damaged."


def _filters(dataset: h5py.Dataset) -> Iterable[int]:
    properties = dataset.id.get_create_plist()
    return (properties.get_filter(index)[0] for index in range(properties.get_nfilters()))


def _is_offset(offset: tuple[int, ...], dataset: h5py.Dataset) -> bool:
    return all(
        start % length == 0 and start < size
        for start, length, size in zip(offset, dataset.chunks, dataset.shape, strict=True)
    )


def _file_size(dataset: h5py.Dataset) -> int:
    return int(dataset.file.id.get_filesize())


def _is_complete(dataset: h5py.Dataset, offset: tuple[int, ...], filters: tuple[int, ...]) -> bool:
    """Return whether a chunk has the length of its shape and, with gzip, the right checksum."""
    _, stored = dataset.id.read_direct_chunk(offset)
    expected: int = math.prod(dataset.chunks) * dataset.dtype.itemsize + _CHECKSUM_BYTES * filters.count(_CHECKSUM)
    if _GZIP not in filters:
        return len(stored) == expected
    outside = _CHECKSUM_BYTES * filters[filters.index(_GZIP) :].count(_CHECKSUM)
    return _length(stored[: len(stored) - outside], expected - outside) == expected - outside


def _length(stored: bytes, limit: int) -> int:
    """Return the number of bytes after decompression; -1 if the stream is incomplete or longer than the limit."""
    decoder, length = zlib.decompressobj(), 0
    try:
        while not decoder.eof and length <= limit:
            block = decoder.decompress(stored, _BLOCK_BYTES)
            if not block and not decoder.eof:
                return -1
            length, stored = length + len(block), decoder.unconsumed_tail
    except zlib.error:
        return -1
    return length if decoder.eof else -1
