"""HDF5 files that splitembed did not write, with the names of the datasets of words and of the matrix.

Words may be strings of fixed or variable length, integers, or a group with `utf8` and `offsets`, as in a frozen.h5.
"""

import contextlib
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VectorFormatError, VocabularyError, shortened
from splitembed.tables.atomic_files import HDF5_ERRORS
from splitembed.vectors.open_request import WORDS_APART, OpenRequest
from splitembed.vectors.pairs.frozen_tables import HDF5_MAGIC
from splitembed.vectors.pairs.npz import two_names
from splitembed.vectors.pairs.read_pair import Pair
from splitembed.vectors.pairs.rows import check_rows
from splitembed.vectors.pairs.word_lists import PackedWords
from splitembed.vectors.read_checks import decode_words
from splitembed.words import check_offsets

_MOST_LISTED = 12


class _Slices:
    """A dataset, read slice by slice. Its errors name the file."""

    def __init__(self, name: str, dataset: h5py.Dataset) -> None:
        self._name, self._dataset = name, dataset
        self.shape, self.dtype = dataset.shape, dataset.dtype

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, positions: slice) -> NDArray[Any]:
        try:
            return self._dataset[positions]  # type: ignore[no-any-return]
        except HDF5_ERRORS as error:
            raise _damaged(self._name, error) from error


class _Strings:
    """A dataset of words, decoded slice by slice."""

    def __init__(self, slices: _Slices) -> None:
        self._slices = slices

    def __len__(self) -> int:
        return len(self._slices)

    def __getitem__(self, positions: slice) -> list[str]:
        words = self._slices[positions].tolist()
        return list(map(str, words)) if self._slices.dtype.kind in "iu" else decode_words(words)


def recognise_hdf5(request: OpenRequest) -> bool:
    """Return whether the source is an HDF5 file."""
    return request.head.startswith(HDF5_MAGIC)


def open_hdf5(request: OpenRequest) -> Pair:
    """Open the words and the matrix of an HDF5 file. They can be read until `request.stack` is closed.

    Args:
        request: its option `datasets` names the words and the matrix.

    Raises:
        VectorFormatError: no names, names of other things, or a damaged file.
    """
    name = str(request.path)
    file, datasets = _open(name, request.stack), request.options.datasets
    if datasets is None:
        raise _unnamed(name, file, 'read_vectors(path, datasets=("words", "matrix"))')
    words_name, matrix_name = two_names(name, datasets)
    words = _words(name, file, words_name)
    return Pair(name, words, check_rows(name, len(words), _slices(name, file, matrix_name)))


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
    file = _open(name, request.stack)
    if dataset is None:
        raise _unnamed(name, file, 'read_vectors(VectorSource((words, path), datasets="matrix"))')
    return _slices(name, file, dataset)


def _open(name: str, stack: contextlib.ExitStack) -> h5py.File:
    try:
        return stack.enter_context(h5py.File(name, "r"))
    except HDF5_ERRORS as error:
        raise _damaged(name, error) from error


def _slices(name: str, file: h5py.File, dataset: str) -> _Slices:
    found = _get(file, dataset)
    if not isinstance(found, h5py.Dataset) or found.shape is None:
        raise VectorFormatError(f"{name}: found no dataset {dataset!r}; expected one. {_listing(file)}")
    return _Slices(name, found)


def _get(file: h5py.File, dataset: str) -> Any:
    try:
        return file.get(dataset)
    # The name is not Unicode text.
    except HDF5_ERRORS:
        return None


def _words(name: str, file: h5py.File, dataset: str) -> _Strings | PackedWords:
    found = _get(file, dataset)
    if isinstance(found, h5py.Group) and {"utf8", "offsets"} <= found.keys():
        return _packed(name, file, dataset)
    slices = _slices(name, file, dataset)
    is_text = h5py.check_string_dtype(slices.dtype) is not None or slices.dtype.kind in "iu"
    if len(slices.shape) != 1 or not is_text:
        raise VectorFormatError(
            f"{name}: found {dataset!r} of shape {slices.shape} and dtype {slices.dtype}; expected words, (num_words,) "
            'strings. Name the words first, then the matrix: datasets=("words", "matrix").'
        )
    return _Strings(slices)


def _packed(name: str, file: h5py.File, group: str) -> PackedWords:
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


def _unnamed(name: str, file: h5py.File, call: str) -> VectorFormatError:
    kind = "the weights of a Keras model" if "layers" in file else "an HDF5 file that splitembed did not write"
    return VectorFormatError(f"{name}: found {kind}; expected the names of what to read. {_listing(file)} Call {call}.")


def _listing(file: h5py.File) -> str:
    datasets: list[str] = []

    def add(name: str, found: Any) -> None:
        if isinstance(found, h5py.Dataset):
            datasets.append(f"{name!r} {found.shape} {found.dtype}")

    file.visititems(add)
    return f"It holds {shortened(datasets, _MOST_LISTED, str) or 'no datasets'}."


def _damaged(name: str, error: Exception) -> VectorFormatError:
    return VectorFormatError(
        f"{name}: found HDF5 data that cannot be read ({type(error).__name__}: {error}); expected a whole file. "
        "Copy or write it again."
    )
