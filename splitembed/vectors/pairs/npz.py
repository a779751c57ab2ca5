"""Words and a matrix inside one .npz. Both arrays are mapped."""

from typing import Any

from splitembed.errors import VectorFormatError
from splitembed.vectors.open_request import WORDS_APART, OpenRequest
from splitembed.vectors.pairs.npy import Member, is_npz, list_npz
from splitembed.vectors.pairs.read_pair import Pair
from splitembed.vectors.pairs.rows import check_rows
from splitembed.vectors.pairs.word_lists import ArrayWords

ZIP_MAGIC = b"PK\x03\x04"


def recognise_npz(request: OpenRequest) -> bool:
    """Return whether the source is a zip archive of .npy files alone."""
    return request.head.startswith(ZIP_MAGIC) and is_npz(request.source)


def open_npz(request: OpenRequest) -> Pair:
    """Open the words and the matrix of an .npz. Both are mapped.

    Args:
        request: its option `datasets` names the words and the matrix; None takes the only matrix and the only list of
            words.

    Raises:
        VectorFormatError: a damaged file; no such arrays, or several; Python objects without `allow_pickle`.
    """
    name = str(request.path)
    members, datasets = list_npz(name), request.options.datasets
    if datasets is None:
        lists = [each for each in members if _is_words(each)]
        words, matrix = _only(name, members, lists, "one list of words (num_words,)"), _matrix(name, members)
    else:
        words, matrix = (_named(name, members, each) for each in two_names(name, datasets))
    listed = _as_words(name, words.map(request.options.allow_pickle))
    return Pair(name, listed, check_rows(name, len(listed), matrix.map(request.options.allow_pickle)))


def open_npz_matrix(request: OpenRequest) -> Any:
    """Map the matrix of an .npz.

    Args:
        request: its option `datasets` names the matrix; None takes the only one.

    Returns:
        `(num_rows, dim)`.

    Raises:
        VectorFormatError: a damaged file; no matrix, or several.
    """
    dataset, name = request.dataset_name(WORDS_APART), str(request.path)
    members = list_npz(name)
    matrix = _matrix(name, members) if dataset is None else _named(name, members, dataset)
    return matrix.map(request.options.allow_pickle)


def two_names(path: str, datasets: Any) -> tuple[str, str]:
    """Return the names of the words and of the matrix.

    >>> two_names("v.npz", ["words", "matrix"])
    ('words', 'matrix')

    Raises:
        VectorFormatError: `datasets` is anything but two strings.
    """
    is_pair = isinstance(datasets, (tuple, list)) and len(datasets) == 2
    if not is_pair or not all(isinstance(name, str) for name in datasets):
        raise VectorFormatError(
            f"{path}: found datasets={datasets!r}; expected the names of the words and of the matrix, as in "
            'datasets=("words", "matrix").'
        )
    return datasets[0], datasets[1]


def _matrix(path: str, members: list[Member]) -> Member:
    matrices = [each for each in members if len(each.shape) == 2 and each.dtype.kind in "fiu"]
    return _only(path, members, matrices, "one matrix of numbers (num_words, dim)")


def _is_words(member: Member) -> bool:
    return len(member.shape) == 1 and member.dtype.kind in "USO"


def _as_words(path: str, words: Any) -> ArrayWords:
    if words.ndim != 1 or words.dtype.kind not in "iuUSO":
        raise VectorFormatError(
            f"{path}: found words of shape {words.shape} and dtype {words.dtype}; expected (num_words,) strings. Name "
            'the words first, then the matrix: datasets=("words", "matrix").'
        )
    return ArrayWords(words)


def _named(path: str, members: list[Member], name: str) -> Member:
    found = [each for each in members if each.name == name]
    if not found:
        raise VectorFormatError(f"{path}: found no array {name!r}; expected one. {_listing(members)}")
    return found[-1]


def _only(path: str, members: list[Member], found: list[Member], expected: str) -> Member:
    if len(found) != 1:
        raise VectorFormatError(
            f"{path}: found {len(found)} arrays that may be meant; expected {expected}. {_listing(members)} Name two: "
            'read_vectors(path, datasets=("words", "matrix")); or pass (words, path).'
        )
    return found[0]


def _listing(members: list[Member]) -> str:
    return "It holds " + ", ".join(f"{each.name!r} {each.shape} {each.dtype}" for each in members) + "."
