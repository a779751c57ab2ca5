"""Files and folders that hold words and a matrix apart: a path enters; a frozen table or a `Pair` leaves."""

import contextlib
import errno
import os
from pathlib import Path
from typing import Any

from splitembed.errors import VectorFormatError
from splitembed.tables import FrozenTable, open_frozen
from splitembed.vectors.intake import Intake
from splitembed.vectors.pairs.frozen_tables import HDF5_MAGIC
from splitembed.vectors.pairs.hdf5 import hdf5_matrix, hdf5_pair, is_ours
from splitembed.vectors.pairs.npy import MAGIC, is_npz, map_npy
from splitembed.vectors.pairs.npz import npz_matrix, npz_pair
from splitembed.vectors.pairs.read_pair import Pair
from splitembed.vectors.pairs.safetensors import TENSORS, TOKENIZER, safetensors_matrix, tokenizer_pair
from splitembed.vectors.pairs.spacy import find_spacy_folders, is_spacy_folder, spacy_pair
from splitembed.vectors.source import VectorSource, refuse_datasets

FROZEN = "frozen.h5"
NESTED = "0_StaticEmbedding"  # where sentence-transformers keeps the files of a model2vec folder
ACCEPTED = (
    "the path of a file of vectors (text, word2vec binary, fastText .bin, frozen.h5, .npz, HDF5 with `datasets`, a .kv "
    'with allow_pickle=True) or of a folder (spaCy, model2vec), "-", a file object, a dict word -> row, (words, '
    "matrix), KeyedVectors, WordVectors or FrozenTable"
)
_ZIP_MAGIC = b"PK\x03\x04"
_HEAD_BYTES = 16


def open_container(
    path: Path, asked: VectorSource, intake: Intake, stack: contextlib.ExitStack
) -> FrozenTable | Pair | None:
    """Opens what holds words and a matrix apart.

    Args:
        path: a file or a folder.
        asked: the options.
        intake: what is wanted, and what becomes of doubts.
        stack: closes what stays open while rows are read.

    Returns:
        A frozen table, words and rows, or None for a file to be read from front to back.

    Raises:
        VectorFormatError: a matrix without words, a folder without vectors, or anything damaged.
        OSError: as `open` raises it; of a missing path the message says what is accepted.
    """
    if path.is_dir():
        return _from_folder(path, asked, intake, stack)
    head = read_head(path)
    if head.startswith(HDF5_MAGIC):
        if is_ours(path, unless_damaged=asked.datasets is None):
            return _from_ours(path, asked)
        return hdf5_pair(path, asked.datasets, stack)
    if head.startswith(MAGIC):
        return _from_npy(path, asked, intake)
    if head.startswith(_ZIP_MAGIC) and is_npz(path):
        return npz_pair(path, asked.datasets, asked.allow_pickle)
    return _from_safetensors(path, asked, stack) if _is_safetensors(head) else None


def open_matrix(path: Path, asked: VectorSource, stack: contextlib.ExitStack) -> Any:
    """Opens the matrix of (words, path).

    Args:
        path: of a .npy, .npz, HDF5 or safetensors file.
        asked: the options: `datasets` is the name of the matrix inside, None takes the only one.
        stack: closes what stays open while rows are read.

    Returns:
        Something with `shape` and `dtype` that gives slices.

    Raises:
        VectorFormatError: a file of another kind, or damaged.
        OSError: as `open` raises it.
    """
    dataset = _one_name(path, asked, "for the words are beside it")
    head = read_head(path)
    if head.startswith(MAGIC):
        refuse_datasets(asked)
        return map_npy(path)
    if head.startswith(_ZIP_MAGIC) and is_npz(path):
        return npz_matrix(path, dataset)
    if head.startswith(HDF5_MAGIC):
        return hdf5_matrix(path, dataset, stack)
    if _is_safetensors(head):
        return safetensors_matrix(path, dataset, stack)
    raise VectorFormatError(
        f"{path}: found a file that starts with {head!r}; expected the matrix of (words, matrix): .npy, .npz, .h5 or "
        ".safetensors. A file that holds words as well is a source by itself."
    )


def _from_ours(path: Path, asked: VectorSource) -> FrozenTable:
    refuse_datasets(asked)
    return open_frozen(path)


def _from_npy(path: Path, asked: VectorSource, intake: Intake) -> Pair:
    if is_spacy_folder(path.parent):
        refuse_datasets(asked)
        return spacy_pair(path.parent, intake)
    raise VectorFormatError(
        f"{path}: found a NumPy .npy array, which holds no words; expected words and their rows. Pass (words, path), "
        "with the words as a list or as the path of a file with one word a line."
    )


def _from_safetensors(path: Path, asked: VectorSource, stack: contextlib.ExitStack) -> Pair:
    if path.name == TENSORS and (path.parent / TOKENIZER).is_file():
        return _from_tokenizer(path.parent, asked, stack)
    raise VectorFormatError(
        f"{path}: found a safetensors file, which holds no words, and no {TOKENIZER} beside it; expected words and "
        "their rows. Pass (words, path), with the words as a list, a path of one word a line, or a tokenizer."
    )


def _from_tokenizer(folder: Path, asked: VectorSource, stack: contextlib.ExitStack) -> Pair:
    return tokenizer_pair(folder, _one_name(folder, asked, "for the words are the tokenizer's"), stack)


def _from_folder(folder: Path, asked: VectorSource, intake: Intake, stack: contextlib.ExitStack) -> FrozenTable | Pair:
    if (folder / FROZEN).is_file():
        return _from_ours(folder / FROZEN, asked)
    found = find_spacy_folders(folder)
    if len(found) == 1:
        refuse_datasets(asked)
        return spacy_pair(found[0], intake)
    for each in (folder, folder / NESTED):
        if (each / TENSORS).is_file() and (each / TOKENIZER).is_file():
            return _from_tokenizer(each, asked, stack)
    told = f"the vectors of {len(found)} pipelines, {', '.join(map(str, found))}" if found else "none of them"
    raise VectorFormatError(
        f"{folder}: found {told}; expected a folder with {FROZEN}, with spaCy's `vectors` and `key2row` (also in its "
        f"`vocab`), or with {TENSORS} and {TOKENIZER}. Pass such a folder, or the file of vectors itself."
    )


def _one_name(path: Path, asked: VectorSource, because: str) -> str | None:
    if asked.datasets is None or isinstance(asked.datasets, str):
        return asked.datasets
    raise VectorFormatError(
        f"{path}: found datasets={asked.datasets!r}; expected the name of the matrix alone, {because}."
    )


def read_head(path: Path) -> bytes:
    """The first bytes of a regular file; of a pipe none, for it can be read only once."""
    if not path.exists():
        message = f"No such file or folder of vectors, looked for in {os.getcwd()}. `source` must be {ACCEPTED}"
        raise FileNotFoundError(errno.ENOENT, message, os.fspath(path))
    if not path.is_file():
        return b""
    with open(path, "rb") as file:
        return file.read(_HEAD_BYTES)


def _is_safetensors(head: bytes) -> bool:
    return len(head) > 8 and head[4:8] == bytes(4) and head[8:9] == b"{"
