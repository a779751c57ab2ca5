"""NumPy's .npy and .npz: paths enter; arrays leave, mapped, so that only the rows that are read take memory.

Source of the formats: NumPy's documentation, `numpy.lib.format`. What a member of an .npz holds uncompressed is mapped
where it lies; a compressed one is first unpacked into a temporary file.
"""

import contextlib
import os
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
_LOCAL_HEADER_BYTES = 30  # PKWARE's APPNOTE.TXT, 4.3.7: then the name and extra fields, whose lengths end it
_ERRORS = (
    *(OSError, ValueError, EOFError, RuntimeError, NotImplementedError, OverflowError, zipfile.BadZipFile, zlib.error),
    tokenize.TokenError,  # NumPy reads headers of Python 2, too
)


def recognise_npy(request: OpenRequest) -> bool:
    """Return whether the source is a .npy file."""
    return request.head.startswith(MAGIC)


def refuse_npy(request: OpenRequest) -> Any:
    """Raise the error that says how to pass words with a .npy file.

    Raises:
        VectorFormatError: always.
    """
    raise VectorFormatError(
        f"{request.path}: found a NumPy .npy array, which holds no words; expected words and their rows. Pass (words, "
        "path), with the words as a list or as the path of a file with one word a line."
    )


def open_npy_matrix(request: OpenRequest) -> NDArray[Any]:
    """Map the array of a .npy file.

    Raises:
        VectorFormatError: the file is damaged or cut short, or holds Python objects.
    """
    return map_npy(request.source)


def map_npy(path: str | os.PathLike[str], allow_pickle: bool = False) -> NDArray[Any]:
    """Maps the array of a .npy file, in C or Fortran order and any byte order.

    Args:
        path: the file.
        allow_pickle: load an array of Python objects, which can run any code.

    Raises:
        VectorFormatError: a file that is damaged or cut short, or holds Python objects.
    """
    try:
        try:
            with np.errstate(over="ignore"):  # sizes in a header may be anything: NumPy refuses them after multiplying
                return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
        except ValueError:
            if not _is_pickle(path):
                raise
        if allow_pickle:
            return np.load(path, allow_pickle=True)  # type: ignore[no-any-return]
    except _ERRORS as error:
        raise _damaged(path, error) from error
    raise _pickled(os.fspath(path))


class Member(NamedTuple):
    """An array inside an .npz: what its header says, which its size bears out."""

    path: str
    info: zipfile.ZipInfo
    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]
    start: int  # bytes of its header

    @property
    def name(self) -> str:
        """As `numpy.load` calls it."""
        return self.info.filename.removesuffix(_NPY)

    def map(self, allow_pickle: bool = False) -> NDArray[Any]:
        """Maps the array.

        Raises:
            VectorFormatError: damaged content, or Python objects.
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
        with zipfile.ZipFile(file) as archive, archive.open(self.info) as packed, tempfile.TemporaryFile() as unpacked:
            shutil.copyfileobj(packed, unpacked, 1 << 20)
            unpacked.flush()
            return self._mapped(unpacked, self.start)

    def _mapped(self, file: Any, start: int) -> NDArray[Any]:
        return np.memmap(file, self.dtype, "r", start, self.shape, "F" if self.is_fortran else "C")


def list_npz(path: str | os.PathLike[str]) -> list[Member]:
    """Reads the headers of the arrays in an .npz.

    Args:
        path: the file.

    Raises:
        VectorFormatError: a file that is damaged or cut short.
    """
    with _reading(path) as archive:
        return [_member(path, archive, info) for info in archive.infolist() if info.filename.endswith(_NPY)]


def is_npz(path: str | os.PathLike[str]) -> bool:
    """Says whether all that a zip archive holds are arrays of NumPy."""
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
    """Where the content of an uncompressed member starts: its own header may be longer than the directory says."""
    file.seek(info.header_offset)
    header = file.read(_LOCAL_HEADER_BYTES)
    lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    return info.header_offset + _LOCAL_HEADER_BYTES + lengths


def _is_pickle(path: str | os.PathLike[str]) -> bool:
    with open(path, "rb") as file:
        version = npy_format.read_magic(file)
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        return bool(read(file)[2].hasobject)


def _pickled(where: str) -> VectorFormatError:
    return VectorFormatError(
        f"{where}: found an array of Python objects, a pickle, which can run any code when it is loaded; expected "
        "numbers or strings. If you trust it, pass allow_pickle=True."
    )


def _damaged(where: str | os.PathLike[str], error: Exception) -> VectorFormatError:
    return VectorFormatError(
        f"{os.fspath(where)}: found data of NumPy that is damaged or cut short ({error}); expected a whole file. "
        "Download or copy it again."
    )
