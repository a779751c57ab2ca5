"""HDF5 files that splitembed did not write, with the names of the datasets of words and of the matrix.

Words may be strings of fixed or variable length, integers, or a group with `utf8` and `offsets`, as in a frozen.h5.
The file is read in a child process, because a damaged one can crash or hang libhdf5.
"""

from typing import Any

import numpy as np

from splitembed.errors import VectorFormatError, VocabularyError, shortened
from splitembed.foreign.hdf5_file import ForeignHdf5
from splitembed.tables import MAGIC
from splitembed.tables.fields import HDF5_MAGIC
from splitembed.tables.storage import STORAGES, Storage
from splitembed.vectors.open_request import WORDS_APART, OpenRequest
from splitembed.vectors.pairs.npz import two_names
from splitembed.vectors.pairs.read_pair import Pair
from splitembed.vectors.pairs.rows import check_rows
from splitembed.vectors.pairs.word_lists import PackedWords
from splitembed.vectors.read_checks import decode_words
from splitembed.words import check_offsets

_MOST_LISTED = 12


class _Slices:
    """A dataset of a file in a child process, read slice by slice."""

    def __init__(self, file: ForeignHdf5, dataset: str, described: dict[str, Any]) -> None:
        self._file, self._dataset = file, dataset
        self.shape, self.dtype = tuple(described["shape"]), np.dtype(described["dtype"])
        self.is_text: bool = described["is_text"]

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, positions: slice) -> Any:
        start, stop, _ = positions.indices(len(self))
        return self._file.slice(self._dataset, start, stop)


class _StoredRows:
    """The rows of a frozen table in a file in a child process, widened to float32 slice by slice."""

    def __init__(self, stored: _Slices, scale: _Slices | None, storage: Storage) -> None:
        self._stored, self._scale, self._storage = stored, scale, storage
        self.shape, self.dtype = stored.shape, np.dtype(np.float32)

    def __len__(self) -> int:
        return len(self._stored)

    def __getitem__(self, positions: slice) -> Any:
        scale = None if self._scale is None else self._scale[positions]
        return self._storage.decode(self._stored[positions], scale)


class _Strings:
    """A dataset of words, decoded slice by slice."""

    def __init__(self, slices: _Slices) -> None:
        self._slices = slices

    def __len__(self) -> int:
        return len(self._slices)

    def __getitem__(self, positions: slice) -> list[str]:
        found = self._slices[positions]
        words = found if isinstance(found, list) else found.tolist()
        return list(map(str, words)) if self._slices.dtype.kind in "iu" else decode_words(words)


def recognise_hdf5(request: OpenRequest) -> bool:
    """Return whether the source is an HDF5 file; of splitembed, one that another tool wrote again."""
    return request.head.startswith((HDF5_MAGIC, MAGIC))


def open_hdf5(request: OpenRequest) -> Pair:
    """Open the words and the matrix of an HDF5 file. They can be read until `request.stack` is closed.

    Args:
        request: its option `datasets` names the words and the matrix.

    Raises:
        VectorFormatError: no names, names of other things, or a damaged file.
    """
    name = str(request.path)
    file, datasets = ForeignHdf5(name, request.stack), request.options.datasets
    dtype = file.ask(do="frozen")[0]["dtype"]
    if datasets is None and dtype in STORAGES:
        return _rewritten(name, file, STORAGES[dtype])
    if datasets is None:
        raise _unnamed(name, file, 'read_vectors(path, datasets=("words", "matrix"))')
    words_name, matrix_name = two_names(name, datasets)
    words = _words(name, file, words_name)
    return Pair(name, words, check_rows(name, len(words), _slices(name, file, matrix_name)))


def _rewritten(name: str, file: ForeignHdf5, storage: Storage) -> Pair:
    """Open a frozen table that another tool wrote again."""
    stored, words = _slices(name, file, "vectors"), _words(name, file, "words")
    if len(stored.shape) != 2 or stored.dtype.newbyteorder("=") != storage.stored_dtype:
        found = f"`vectors` of shape {stored.shape} and dtype {stored.dtype}"
        raise VectorFormatError(f"{name}: found {found}; expected {storage.name} rows. Use another copy.")
    rows = _StoredRows(stored, _slices(name, file, "scale") if storage.has_scale else None, storage)
    described, _ = file.ask(do="describe", name="words/rows")
    row_of = _slices(name, file, "words/rows")[:].astype(np.int64) if "shape" in described else None
    if len(words) != len(rows if row_of is None else row_of):
        raise VectorFormatError(f"{name}: found {len(words)} words and {len(rows)} rows. Use another copy.")
    if row_of is not None and len(row_of) and not 0 <= row_of.min() <= row_of.max() < len(rows):
        raise VectorFormatError(f"{name}: found words of rows that do not exist. Use another copy.")
    return Pair(name, words, check_rows(name, len(rows), rows), row_of)


def open_hdf5_matrix(request: OpenRequest) -> Any:
    """Open the matrix of an HDF5 file. It can be read until `request.stack` is closed.

    Args:
        request: its option `datasets` names the matrix.

    Returns:
        An object with `shape` and `dtype` that gives slices.

    Raises:
        VectorFormatError: no name, the name of another thing, or a damaged file.
    """
    dataset, name = request.dataset_name(WORDS_APART), str(request.path)
    file = ForeignHdf5(name, request.stack)
    if dataset is None:
        raise _unnamed(name, file, 'read_vectors(VectorSource((words, path), datasets="matrix"))')
    return _slices(name, file, dataset)


def _slices(name: str, file: ForeignHdf5, dataset: str) -> _Slices:
    described, _ = file.ask(do="describe", name=dataset)
    if "shape" not in described:
        raise VectorFormatError(f"{name}: found no dataset {dataset!r}; expected one. {_listing(file)}")
    return _Slices(file, dataset, described)


def _words(name: str, file: ForeignHdf5, dataset: str) -> _Strings | PackedWords:
    described, _ = file.ask(do="describe", name=dataset)
    if {"utf8", "offsets"} <= set(described.get("group", ())):
        return _packed(name, file, dataset)
    slices = _slices(name, file, dataset)
    if len(slices.shape) != 1 or not (slices.is_text or slices.dtype.kind in "iu"):
        raise VectorFormatError(
            f"{name}: found {dataset!r} of shape {slices.shape} and dtype {slices.dtype}; expected words, (num_words,) "
            'strings. Name the words first, then the matrix: datasets=("words", "matrix").'
        )
    return _Strings(slices)


def _packed(name: str, file: ForeignHdf5, group: str) -> PackedWords:
    parts = [_slices(name, file, f"{group}/{part}") for part in ("utf8", "offsets")]
    if [(part.dtype.kind, len(part.shape)) for part in parts] != [("u", 1), ("u", 1)] or parts[0].dtype.itemsize > 1:
        found = " and ".join(f"{part.dtype} {part.shape}" for part in parts)
        raise VectorFormatError(
            f"{name}: found {found} as `utf8` and `offsets` of {group!r}; expected uint8 (num_bytes,) and uint64 "
            "(num_words + 1,). Name a dataset of strings instead, or write the group again."
        )
    utf8, offsets = (part[:] for part in parts)
    try:
        check_offsets(offsets, len(utf8))
    except VocabularyError as error:
        raise VectorFormatError(f"{name}, {group!r}: {error}") from error
    ends = offsets.astype(np.int64)
    return PackedWords(utf8.tobytes(), ends[:-1], ends[1:])


def _unnamed(name: str, file: ForeignHdf5, call: str) -> VectorFormatError:
    is_keras = file.ask(do="list")[0]["is_keras"]
    kind = "the weights of a Keras model" if is_keras else "an HDF5 file that splitembed did not write"
    return VectorFormatError(f"{name}: found {kind}; expected the names of what to read. {_listing(file)} Call {call}.")


def _listing(file: ForeignHdf5) -> str:
    lines = file.ask(do="list")[0]["lines"]
    return f"It holds {shortened(lines, _MOST_LISTED, str) or 'no datasets'}."
