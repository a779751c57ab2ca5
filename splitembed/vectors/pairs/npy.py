"""Arrays in the .npy and .npz files of NumPy, mapped, so that only the rows that are read take memory.

Source of the formats: NumPy's documentation, `numpy.lib.format`. An uncompressed member of an .npz is mapped inside the
archive; a compressed one is first unpacked into a temporary file.
"""

import contextlib
import os
import re
import shutil
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from splitembed.errors import VectorFormatError
from splitembed.vectors.open_request import OpenRequest

MAGIC = b"\x93NUMPY"
_NPY = ".npy"
# gensim's `save` appends the path of the attribute that it stores apart.
_GENSIM_ARRAY = re.compile(r"(\.wv|\.trainables)?\.(vectors\w*|syn0\w*|syn1\w*)\.npy$")
# PKWARE's APPNOTE.TXT, 4.3.7: the name and the extra fields follow, and their lengths end the header.
_LOCAL_HEADER_BYTES = 30
# Compressed arrays larger than this, and than this many times the file, hold hardly anything but constant bytes.
_FREE_BYTES = 1 << 20
_MOST_EXPANSION = 500
_ERRORS = (
    *(OSError, ValueError, EOFError, RuntimeError, NotImplementedError, OverflowError, zipfile.BadZipFile, zlib.error),
    # Damaged headers of arrays and of zip archives.
    *(SystemError, TypeError, IndexError, SyntaxError, MemoryError),
    # NumPy also reads the headers of Python 2.
    tokenize.TokenError,
)


def recognise_npy(request: OpenRequest) -> bool:
    """Return whether the source is a .npy file."""
    return request.head.startswith(MAGIC)


def load_objects(request: OpenRequest) -> NDArray[Any]:
    """Load the Python objects in a .npy file, if the user allows it. An array of numbers holds no words.

    Raises:
        VectorFormatError: the file is damaged, or holds an array of numbers, or pickles are not allowed.
    """
    array = map_npy(request.source, request.options.allow_pickle)
    if array.dtype.hasobject:
        return array
    main_file = _GENSIM_ARRAY.sub("", os.path.basename(request.source))
    if main_file != os.path.basename(request.source):
        raise VectorFormatError(
            f"{request.path}: found a NumPy .npy array, which gensim has saved beside {main_file}; expected {main_file}"
            ", which holds the words. Pass that file with allow_pickle=True, and keep both in one folder."
        )
    raise VectorFormatError(
        f"{request.path}: found a NumPy .npy array, which holds no words; expected words and their rows. Pass (words, "
        "path), with the words as a list or as the path of a file with one word a line."
    )


def open_npy_matrix(request: OpenRequest) -> NDArray[Any]:
    """Map the array of a .npy file.

    Raises:
        VectorFormatError: the file is damaged or cut short, or holds Python objects.
    """
    # Objects are no matrix, whether they may be loaded or not.
    if is_pickled(request.source):
        raise VectorFormatError(
            f"{request.path}: found an array of Python objects, a pickle; expected the numbers of (words, path). If it "
            "holds a dict word -> row or (words, matrix), and you trust its author, pass the path alone with "
            "allow_pickle=True."
        )
    return map_npy(request.source)


def map_npy(path: str | os.PathLike[str], allow_pickle: bool = False) -> NDArray[Any]:
    """Map the array of a .npy file, in C or Fortran order and any byte order.

    Args:
        path: the file.
        allow_pickle: load an array of Python objects, which can run any code.

    Returns:
        The array; an array of Python objects is loaded, not mapped.

    Raises:
        VectorFormatError: the file is damaged or cut short, or holds Python objects without `allow_pickle`.
    """
    try:
        try:
            # NumPy refuses impossible sizes in a header after it has multiplied them.
            with np.errstate(over="ignore"):
                return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
        except ValueError:
            if not is_pickled(path):
                raise
        if allow_pickle:
            return np.load(path, allow_pickle=True)  # type: ignore[no-any-return]
    except _ERRORS as error:
        raise _damaged(path, error) from error
    raise _pickled(os.fspath(path))


def is_pickled(path: str | os.PathLike[str]) -> bool:
    """Return whether a .npy file holds Python objects. Nothing is loaded.

    Raises:
        VectorFormatError: the header is damaged or cut short.
    """
    try:
        with open(path, "rb") as file:
            version = npy_format.read_magic(file)
            read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
            return bool(read(file)[2].hasobject)
    except _ERRORS as error:
        raise _damaged(path, error) from error


class Member(NamedTuple):
    """An array inside an .npz, as its header describes it; the size of its content agrees."""

    path: str
    info: zipfile.ZipInfo
    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]
    # The number of bytes of the header.
    start: int

    @property
    def name(self) -> str:
        """The name of the array in `numpy.load`."""
        return self.info.filename.removesuffix(_NPY)

    def map(self, allow_pickle: bool = False) -> NDArray[Any]:
        """Map the array.

        Raises:
            VectorFormatError: damaged content, or Python objects without `allow_pickle`.
        """
        try:
            if self.dtype.hasobject:
                return self._unpickled(allow_pickle)
            with open(self.path, "rb") as file:
                return self._map(file)
        except VectorFormatError:
            raise
        except _ERRORS as error:
            raise _damaged(f"{self.path}, {self.name!r}", error) from error

    def _unpickled(self, allow_pickle: bool) -> NDArray[Any]:
        if not allow_pickle:
            raise _pickled(f"{self.path}, {self.name!r}")
        with np.load(self.path, allow_pickle=True) as arrays:
            array: NDArray[Any] = arrays[self.name]
            return array

    def _map(self, file: BinaryIO) -> NDArray[Any]:
        if not np.prod(self.shape, dtype=object):
            return np.zeros(self.shape, self.dtype)
        if self.info.compress_type == zipfile.ZIP_STORED:
            return self._mapped(file, self.start + _start_of(file, self.info))
        self._check_expansion()
        with zipfile.ZipFile(file) as archive, archive.open(self.info) as packed, tempfile.TemporaryFile() as unpacked:
            shutil.copyfileobj(packed, unpacked, 1 << 20)
            unpacked.flush()
            return self._mapped(unpacked, self.start)

    def _check_expansion(self) -> None:
        file_bytes = os.path.getsize(self.path)
        if self.info.file_size > _FREE_BYTES + _MOST_EXPANSION * file_bytes:
            raise VectorFormatError(
                f"{self.path}, {self.name!r}: found {self.info.file_size} bytes in a file of {file_bytes}; expected at "
                f"most {_MOST_EXPANSION} times its size. If you trust its author, save the arrays uncompressed, with "
                "numpy.savez."
            )

    def _mapped(self, file: Any, start: int) -> NDArray[Any]:
        return np.memmap(file, self.dtype, "r", start, self.shape, "F" if self.is_fortran else "C")


def list_npz(path: str | os.PathLike[str]) -> list[Member]:
    """Return the arrays in an .npz, without reading their content.

    Args:
        path: the file.

    Raises:
        VectorFormatError: the file is damaged or cut short.
    """
    with _reading(path) as archive:
        return [_member(path, archive, info) for info in archive.infolist() if info.filename.endswith(_NPY)]


def is_npz(path: str | os.PathLike[str]) -> bool:
    """Return whether a zip archive holds .npy files and nothing else."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except _ERRORS:
        return False
    return bool(names) and all(name.endswith(_NPY) for name in names)


@contextlib.contextmanager
def _reading(path: str | os.PathLike[str]) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except VectorFormatError:
        raise
    except _ERRORS as error:
        raise _damaged(path, error) from error


def _member(path: str | os.PathLike[str], archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    with archive.open(info) as stream:
        version = npy_format.read_magic(stream)
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, is_fortran, dtype = read(stream)
        start = stream.tell()
    num_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if not dtype.hasobject and start + num_bytes != info.file_size:
        raise VectorFormatError(
            f"{os.fspath(path)}, {info.filename!r}: found {info.file_size - start} bytes of content; expected "
            f"{num_bytes} for shape {shape} of {dtype}. The file is damaged: get it again."
        )
    return Member(os.fspath(path), info, shape, is_fortran, dtype, start)


def _start_of(file: BinaryIO, info: zipfile.ZipInfo) -> int:
    """Return the first byte of an uncompressed member: its header may be longer than the directory says."""
    file.seek(info.header_offset)
    header = file.read(_LOCAL_HEADER_BYTES)
    lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    return info.header_offset + _LOCAL_HEADER_BYTES + lengths


def _pickled(where: str) -> VectorFormatError:
    return VectorFormatError(
        f"{where}: found an array of Python objects, a pickle, which can run any code when it is loaded; expected "
        "numbers or strings. If you trust its author, pass allow_pickle=True."
    )


def _damaged(where: str | os.PathLike[str], error: Exception) -> VectorFormatError:
    return VectorFormatError(
        f"{os.fspath(where)}: found data of NumPy that is damaged or cut short ({error}); expected a whole file. "
        "Download or copy it again."
    )
