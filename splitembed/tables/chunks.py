"""Whether a dataset's chunks hold what its shape promises: an open dataset enters; what is wrong with it leaves.

HDF5 believes a file. A chunk whose compressed bytes give fewer numbers than its shape says crashes the process, one
that was never written reads as zeros, and memory is taken for whatever shape is claimed: all is checked before reading.
"""

import math
import zlib
from collections.abc import Iterable

import h5py

_PIECE = 1 << 20  # bytes decompressed at a time, so that what a chunk gives is counted in bounded memory
_GZIP, _SHUFFLE, _CHECKSUM = h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32
_CHECKSUM_BYTES = 4


def fault_of_chunks(dataset: h5py.Dataset) -> str:
    """Says what is wrong with the chunks of a dataset that has filters; "" if every number it promises is there.

    >>> import io
    >>> with h5py.File(io.BytesIO(), "w") as file:
    ...     whole = file.create_dataset("whole", data=range(10), chunks=(4,), compression="gzip")
    ...     partly = file.create_dataset("partly", (10,), "i4", chunks=(4,), compression="gzip")
    ...     partly[:4] = 1
    ...     fault_of_chunks(whole), fault_of_chunks(partly)
    ('', '1 of its 3 chunks were written.')

    Args:
        dataset: chunked, of an open file.
    """
    filters = tuple(_filters(dataset))
    if not set(filters) <= {_GZIP, _SHUFFLE, _CHECKSUM} or filters.count(_GZIP) > 1:
        return f"it went through the filters {filters} of HDF5; gzip, shuffle and fletcher32 alone are read here."
    found: list[h5py.h5d.StoreInfo] = []
    dataset.id.chunk_iter(found.append)
    places = {each.chunk_offset for each in found if _is_place(each.chunk_offset, dataset)}
    expected = math.prod(-(-size // length) for size, length in zip(dataset.shape, dataset.chunks, strict=True))
    if not len(places) == len(found) == expected:
        return f"{len(places)} of its {expected} chunks were written."
    if any(each.filter_mask for each in found) or sum(each.size for each in found) > _file_size(dataset):
        return "its chunks are not stored as it says."
    wrong = next((place for place in sorted(places) if not _is_whole(dataset, place, filters)), None)
    return "" if wrong is None else f"its chunk at {wrong} does not hold what it should."


def _filters(dataset: h5py.Dataset) -> Iterable[int]:
    properties = dataset.id.get_create_plist()
    return (properties.get_filter(place)[0] for place in range(properties.get_nfilters()))


def _is_place(offset: tuple[int, ...], dataset: h5py.Dataset) -> bool:
    return all(
        start % length == 0 and start < size
        for start, length, size in zip(offset, dataset.chunks, dataset.shape, strict=True)
    )


def _file_size(dataset: h5py.Dataset) -> int:
    return int(dataset.file.id.get_filesize())


def _is_whole(dataset: h5py.Dataset, place: tuple[int, ...], filters: tuple[int, ...]) -> bool:
    """Whether a chunk is as long as its shape says; the sum that ends a gzip stream is compared too."""
    _, stored = dataset.id.read_direct_chunk(place)
    promised: int = math.prod(dataset.chunks) * dataset.dtype.itemsize + _CHECKSUM_BYTES * filters.count(_CHECKSUM)
    if _GZIP not in filters:
        return len(stored) == promised
    outside = _CHECKSUM_BYTES * filters[filters.index(_GZIP) :].count(_CHECKSUM)
    return _length(stored[: len(stored) - outside], promised - outside) == promised - outside


def _length(stored: bytes, limit: int) -> int:
    """How many bytes are compressed here; -1 where they are more than the limit, or no whole stream."""
    decoder, length = zlib.decompressobj(), 0
    try:
        while not decoder.eof and length <= limit:
            piece = decoder.decompress(stored, _PIECE)
            if not piece and not decoder.eof:
                return -1
            length, stored = length + len(piece), decoder.unconsumed_tail
    except zlib.error:
        return -1
    return length if decoder.eof else -1
