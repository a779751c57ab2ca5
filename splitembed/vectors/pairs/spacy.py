"""Vectors of a spaCy pipeline, whose many words share few rows.

    vectors       the rows, a .npy file (num_rows, dim)
    key2row       msgpack: 64-bit key of a string -> row; older folders have `keys`, a .npy file, the key of each row
    strings.json  the strings, sorted
    vectors.cfg   JSON, {"mode": "default"}; in the mode "floret" the rows are those of hashed n-grams, not of words

Source of the format: spaCy, `vectors.pyx` and `strings.pyx`.
"""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VectorFormatError, load_library
from splitembed.vectors.open_request import OpenRequest
from splitembed.vectors.pairs.npy import MAGIC, map_npy
from splitembed.vectors.pairs.read_pair import Pair
from splitembed.vectors.pairs.spacy_keys import SYMBOLS, keys_of
from splitembed.vectors.read_checks import ReadChecks

ROWS, KEYS, OLD_KEYS, STRINGS, SETTINGS = "vectors", "key2row", "keys", "strings.json", "vectors.cfg"
NO_STRING = "keys whose string is not in strings.json, left out"


def recognise_spacy(request: OpenRequest) -> bool:
    """Return whether the source is the folder of one spaCy pipeline or of its vectors, or the file of its rows."""
    if request.folder is not None:
        return len(find_spacy_folders(request.folder)) == 1
    return request.head.startswith(MAGIC) and _holds_vectors(Path(request.source).parent)


def find_spacy_folders(folder: Path) -> list[Path]:
    """Return the folders with vectors: the given one, else its `vocab`, else the `vocab` of each pipeline in it."""
    for found in ([folder], [folder / "vocab"], sorted(folder.glob("*/vocab"))):
        with_vectors = [each for each in found if _holds_vectors(each)]
        if with_vectors:
            return with_vectors
    return []


def _holds_vectors(folder: Path) -> bool:
    return (folder / ROWS).is_file() and any((folder / name).is_file() for name in (KEYS, OLD_KEYS))


def open_spacy(request: OpenRequest) -> Pair:
    """Open the words and rows. The rows are mapped.

    Args:
        request: with a vocabulary, its words are looked up by their keys; without one, the strings are read.

    Returns:
        Words in the order of `key2row`, with the row of each.

    Raises:
        VectorFormatError: floret vectors; damaged files, or files of different pipelines.
        ImportError: msgpack is not installed.
    """
    folder = Path(request.source).parent if request.folder is None else find_spacy_folders(request.folder)[0]
    return _open_folder(folder, request.checks)


def _open_folder(folder: Path, checks: ReadChecks) -> Pair:
    _refuse_floret(folder)
    rows = map_npy(folder / ROWS)
    if rows.ndim != 2:
        raise _damaged(folder / ROWS, f"rows of shape {rows.shape}", "(num_rows, dim)")
    keys, row_of = _keys(folder)
    if len(row_of) and not 0 <= int(row_of.min()) <= int(row_of.max()) < len(rows):
        found = f"rows {row_of.min()} to {row_of.max()} in the keys"
        raise _damaged(folder / ROWS, found, f"rows 0 to {len(rows) - 1}")
    strings = _strings(folder) if checks.wanted is None else sorted(checks.wanted)
    positions, words = _matched(keys, strings)
    if checks.wanted is None and len(positions) < len(keys):
        missing = np.setdiff1d(np.arange(len(keys)), positions)
        checks.warnings.add(NO_STRING, f"key {keys[missing[0]]}", len(missing))
    return Pair(str(folder), words, rows, row_of[positions])


def _matched(keys: NDArray[np.uint64], strings: list[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Return the positions of the keys that belong to one of the strings, in order, and those strings."""
    known, first = np.unique(keys_of(strings), return_index=True)
    nearest = np.searchsorted(known, keys)
    is_found = nearest < len(known)
    is_found[is_found] = known[nearest[is_found]] == keys[is_found]
    positions = np.flatnonzero(is_found)
    return positions, [strings[index] for index in first[nearest[positions]].tolist()]


def _refuse_floret(folder: Path) -> None:
    path = folder / SETTINGS
    settings = _json(path) if path.is_file() else {}
    if not isinstance(settings, dict):
        raise _damaged(path, f"a {type(settings).__name__}", "an object with `mode`")
    mode = settings.get("mode", "default")
    if mode != "default":
        raise VectorFormatError(
            f'{path}: found vectors in the mode "{mode}", whose rows belong to hashed n-grams; expected one row for '
            "each word. Ask spaCy for the rows of your words, nlp.vocab.get_vector(word), and pass (words, matrix)."
        )


def _keys(folder: Path) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return all keys, and the row of each."""
    path = folder / KEYS
    if not path.is_file():
        keys = map_npy(folder / OLD_KEYS)
        if keys.ndim != 1 or keys.dtype.kind != "u":
            raise _damaged(
                folder / OLD_KEYS, f"keys of shape {keys.shape} and dtype {keys.dtype}", "(num_rows,) uint64"
            )
        return keys.astype(np.uint64), np.arange(len(keys))
    msgpack = load_library("msgpack", str(path), "spacy")
    try:
        row_of_key = msgpack.unpackb(path.read_bytes(), strict_map_key=False)
        return _integers(row_of_key.keys(), np.uint64), _integers(row_of_key.values(), np.int64)
    except (ValueError, TypeError, AttributeError, OverflowError, msgpack.UnpackException) as error:
        raise _damaged(path, f"data other than a map of keys to rows ({error})", "msgpack: key -> row") from error


def _integers(numbers: Collection[Any], dtype: Any) -> NDArray[Any]:
    # NumPy would cut 1.5 to 1.
    if not set(map(type, numbers)) <= {int}:
        raise TypeError("not all are integers")
    return np.fromiter(numbers, dtype, len(numbers))


def _strings(folder: Path) -> list[str]:
    path = folder / STRINGS
    if not path.is_file():
        raise VectorFormatError(
            f"{path}: found no such file, so the keys have no strings; expected it beside {ROWS}. Pass a vocabulary, "
            "whose words are looked up by their keys, or save the pipeline's whole `vocab` folder."
        )
    strings = _json(path)
    if not isinstance(strings, list) or not all(isinstance(string, str) for string in strings):
        raise _damaged(path, f"a {type(strings).__name__}", "a list of strings")
    # spaCy does not write its own symbols to the file.
    return [*SYMBOLS[1:], *strings]


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"invalid JSON ({error})", "JSON") from error


def _damaged(path: Path, found: str, expected: str) -> VectorFormatError:
    return VectorFormatError(f"{path}: found {found}; expected {expected}. The folder is damaged: get it again.")
