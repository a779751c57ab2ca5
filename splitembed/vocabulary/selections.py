"""Resolve a selection of rows (tokens, ids, both mixed, or a boolean mask) to ids."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import SplitError, TokenIdError, UnknownTokenError
from splitembed.vocabulary.labels import labels_of_mask


def out_of_range(token_id: Any, num_tokens: int) -> str:
    """Return the message of an error for an id outside the vocabulary.

    >>> out_of_range(7, 4)
    'Token id 7 is out of range: there are 4 tokens, so ids run from 0 to 3.'
    """
    return f"Token id {token_id} is out of range: there are {num_tokens} tokens, so ids run from 0 to {num_tokens - 1}."


def check_ids(ids: NDArray[Any], num_tokens: int) -> None:
    """Refuse ids outside the vocabulary.

    Args:
        ids: whole numbers of any shape and width.
        num_tokens: number of ids.

    Raises:
        TokenIdError: an id outside `[0, num_tokens)`.
    """
    outside = (ids < 0) | (ids >= num_tokens)
    if outside.any():
        raise TokenIdError(out_of_range(int(ids[outside][0]), num_tokens))


def resolve_ids(
    selection: Any, num_tokens: int, index: Mapping[str, int] | Callable[[], Mapping[str, int]] | None = None
) -> NDArray[np.int64]:
    """Resolve tokens, ids, both mixed, or a boolean mask to ids.

    >>> resolve_ids(["b", 0], 3, {"a": 0, "b": 1, "c": 2}).tolist()
    [1, 0]
    >>> resolve_ids([False, True, True], 3).tolist()
    [1, 2]

    Args:
        selection: a token, an id, an iterable of tokens and ids, or a boolean mask `(num_tokens,)`. A pandas mask with
            an index selects by that: tokens, or ids if they are integers.
        num_tokens: number of ids.
        index: a mapping token -> id; or a function that returns it, called only for a selection with tokens; None for
            ids without strings.

    Returns:
        int64 `(num_selected,)` in the order of the selection, with its repetitions; ascending for a mask or a set.

    Raises:
        TokenIdError: an id is outside `[0, num_tokens)`.
        UnknownTokenError: a token is not in the index.
        SplitError: a mask has another length, or an item is neither a token nor an id.
    """
    if isinstance(selection, (str, int, np.integer)) and not isinstance(selection, bool):
        selection = [selection]
    labels = labels_of_mask(selection)
    selection = selection if labels is None else labels
    if isinstance(selection, (bytes, bytearray)) or not isinstance(selection, Iterable):
        raise _invalid_selection(selection)
    if isinstance(selection, np.ndarray) and (selection.dtype.kind in "iub" or selection.ndim != 1):
        return _ids_of_array(selection, num_tokens)
    items = list(selection)
    kinds = set(map(type, items))
    if kinds and kinds <= {bool, np.bool_}:
        return _ids_of_array(np.array(items), num_tokens)
    for kind in kinds:
        if not issubclass(kind, (str, int, np.integer)) or kind is bool:
            raise _invalid_selection(next(item for item in items if type(item) is kind))
    if any(issubclass(kind, str) for kind in kinds):
        items = _ids_of_tokens(items, num_tokens, index() if callable(index) else index)
    ids = _ids_of_array(np.array(items, object), num_tokens)
    return np.sort(ids) if isinstance(selection, (set, frozenset)) else ids


def _invalid_selection(item: Any) -> SplitError:
    return SplitError(
        f"Rows must be selected by tokens (str), ids (int) or a boolean mask. Received: {item!r} of type "
        f"{type(item).__name__}."
    )


def _ids_of_tokens(items: list[Any], num_tokens: int, index: Mapping[str, int] | None) -> list[Any]:
    if index is None:
        token = next(item for item in items if isinstance(item, str))
        raise UnknownTokenError(
            f"Token {token!r} cannot be looked up, because there is no vocabulary. Pass ids instead."
        )
    try:
        return [index[item] if isinstance(item, str) else item for item in items]
    except KeyError:
        token = next(item for item in items if isinstance(item, str) and item not in index)
        raise UnknownTokenError(
            f"Token {token!r} is not among the {num_tokens} tokens of the vocabulary. Check its spelling and case."
        ) from None


def _ids_of_array(array: NDArray[Any], num_tokens: int) -> NDArray[np.int64]:
    """Return the ids of a mask, or of integers of any width, which are checked before the cast to int64."""
    if array.ndim != 1 or (array.dtype == bool and len(array) != num_tokens):
        expected = f"one-dimensional; a mask has one value for each of the {num_tokens} tokens"
        raise SplitError(f"A selection of rows must be {expected}. Received: shape {array.shape}, {array.dtype}.")
    if array.dtype == bool:
        return np.flatnonzero(array)
    check_ids(array, num_tokens)
    return array.astype(np.int64)
