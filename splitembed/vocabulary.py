"""The user's vocabulary: a list, a text file, a Keras lookup layer or a word_index goes in; a `Vocabulary` comes out.

Row i belongs to what the user's own pipeline sends to i: nothing is sorted, stripped or cleared of duplicates.
Longer than most modules, for it holds every way in which tokens and ids are named: sources, selections and counts.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from splitembed.errors import SplitError, TokenIdError, UnknownTokenError, VocabularyError
from splitembed.words import encode_word

UNKNOWN_TOKEN = "[UNK]"  # what Keras's lookup layers call their out-of-vocabulary slot
_FOREIGN = {b"\x1f\x8b": "gzip data", b"PK\x03\x04": "a zip archive", b"\x89HDF": "an HDF5 file", b"BZh": "bzip2 data"}
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, repr=False)
class Vocabulary:
    """The tokens in id order, and the ids that are no ordinary words.

    >>> vocabulary = read_vocabulary(["", "[UNK]", "sky", "red"])
    >>> vocabulary
    Vocabulary(num_tokens=4, padding=0, unknown=1, num_reserved=2)
    >>> vocabulary.index["red"], vocabulary.is_ordinary.tolist()
    (3, [False, False, True, True])

    Args:
        tokens: the tokens; `tokens[id]` belongs to `id`.
        padding: the id whose row is zero and frozen, or None.
        reserved: ids that never match a pretrained word: padding, `[UNK]`, out-of-vocabulary slots, blank lines.
        unknown: the id that stands for tokens outside the vocabulary, or None.
    """

    tokens: tuple[str, ...]
    padding: int | None
    reserved: frozenset[int]
    unknown: int | None

    @property
    def num_tokens(self) -> int:
        """Number of ids: every id is in `0 <= id < num_tokens`."""
        return len(self.tokens)

    @cached_property
    def index(self) -> dict[str, int]:
        """Token to id: of ids with the same token the first ordinary one, else the first reserved one."""
        backwards = range(self.num_tokens - 1, -1, -1)
        index = dict(zip(reversed(self.tokens), backwards, strict=True))
        if len(index) < self.num_tokens:
            index.update((self.tokens[place], place) for place in backwards if place not in self.reserved)
        return index

    @cached_property
    def is_ordinary(self) -> NDArray[np.bool_]:
        """`(num_tokens,)` bool: False where the id is reserved; read-only."""
        ordinary = np.ones(self.num_tokens, bool)
        ordinary[list(self.reserved)] = False
        ordinary.flags.writeable = False
        return ordinary

    def ids(self, selection: Any) -> NDArray[np.int64]:
        """Turns tokens, ids, both mixed, or a boolean mask into ids: `resolve_ids` with this vocabulary.

        >>> read_vocabulary(["sky", "red", "blue"]).ids(["blue", 0]).tolist()
        [2, 0]
        """
        return resolve_ids(selection, self.num_tokens, lambda: self.index)

    def __repr__(self) -> str:
        return (
            f"Vocabulary(num_tokens={self.num_tokens}, padding={self.padding}, unknown={self.unknown}, "
            f"num_reserved={len(self.reserved)})"
        )


class _Found(NamedTuple):
    """What a source says: its tokens, what "auto" means in it, and the ids that are reserved in any case."""

    tokens: tuple[str, ...]
    padding: int | None
    unknown: int | None
    slots: frozenset[int] = frozenset()


def read_vocabulary(
    source: Any, *, padding: int | str | None = "auto", unknown: int | str | None = "auto", keep_lines: bool = False
) -> Vocabulary:
    """Reads the tokens in id order from whatever lists them.

    A Keras `Tokenizer`'s word_index starts at 1, so its row 0 is padding:

    >>> vocabulary = read_vocabulary({"red": 1, "sky": 2})
    >>> vocabulary.tokens, vocabulary.padding
    (('', 'red', 'sky'), 0)

    Args:
        source: a list, tuple or array of str; the path of a text file with one token a line (UTF-8; LF or CRLF; a BOM
            is dropped, nothing is stripped from a token; a blank first line is padding, as Keras writes it); a Keras
            `StringLookup` or `TextVectorization` layer; a dict token -> id, from 0 or from 1 without gaps; or a
            `Vocabulary`.
        padding: the id or token whose row is zero and frozen; None for none; "auto": the mask token of a Keras layer,
            "" at id 0, or id 0 of a dict that starts at 1.
        unknown: the id or token that stands for tokens outside the vocabulary; None for none; "auto": the first
            out-of-vocabulary slot of a Keras layer, else the token "[UNK]".
        keep_lines: for a text file: ids are the line numbers, counted from 0, whatever the lines hold. Blank lines are
            reserved; the ids of a duplicate are tokens of their own that match alike.

    Raises:
        VocabularyError: no tokens, duplicates, blank lines, gaps, tokens that are not text, or a layer that sends no
            tokens to ids.
        TokenIdError: `padding` or `unknown` is an id outside the vocabulary.
        UnknownTokenError: `padding` or `unknown` is a token that the vocabulary does not hold.
    """
    if keep_lines and not _is_path(source):
        raise VocabularyError(f"`keep_lines` is for text files. Received: a source of type {type(source).__name__}.")
    found = _find_tokens(source, keep_lines)
    bare = Vocabulary(found.tokens, None, found.slots, None)
    padding_id = _choose("padding", padding, found.padding, bare)
    unknown_id = _choose("unknown", unknown, found.unknown, bare)
    if padding_id is not None and padding_id == unknown_id:
        raise VocabularyError(f"Id {padding_id} cannot be both padding and unknown: name another, or None, for one.")
    named = {place for place in (padding_id, unknown_id) if place is not None}
    return Vocabulary(found.tokens, padding_id, found.slots | named, unknown_id)


def _choose(name: str, choice: Any, automatic: int | None, vocabulary: Vocabulary) -> int | None:
    if choice is None or (isinstance(choice, str) and choice == "auto"):
        return automatic if choice is not None else None
    if isinstance(choice, bool) or not isinstance(choice, (str, int, np.integer)):
        raise VocabularyError(f'`{name}` must be "auto", None, an id or a token. Received: {choice!r}.')
    return int(vocabulary.ids(choice)[0])


def _is_path(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike))


def _find_tokens(source: Any, keep_lines: bool) -> _Found:
    if isinstance(source, Vocabulary):
        slots = source.reserved - {source.padding, source.unknown}
        return _Found(source.tokens, source.padding, source.unknown, frozenset(slots))
    if _is_path(source):
        return _from_file(Path(source), keep_lines)
    if hasattr(source, "get_vocabulary"):
        return _from_layer(source)
    if isinstance(source, Mapping) and not isinstance(source, Counter):
        return _from_word_index(source)
    if isinstance(source, Sequence) and not isinstance(source, (bytes, bytearray)):
        return _from_list(source)
    if isinstance(source, np.ndarray) and source.ndim == 1:
        return _from_list(source.tolist())
    hint = " Pass its `word_index`." if hasattr(source, "word_index") else ""
    raise VocabularyError(
        "A vocabulary must be a list of tokens in id order, the path of a text file, a Keras StringLookup or "
        f"TextVectorization layer, or a dict token -> id. Received: {type(source).__name__}.{hint}"
    )


def _from_list(source: Sequence[Any]) -> _Found:
    tokens = _as_text(source)
    _check_writable(tokens)
    _check_distinct(tokens, "id {}", first=0)
    return _with_defaults(tokens)


def _from_file(path: Path, keep_lines: bool) -> _Found:
    tokens = tuple(_read_lines(path))
    if keep_lines:
        blanks = frozenset(place for place, token in enumerate(tokens) if not token)
        return _with_defaults(tokens, slots=blanks)
    if "" in tokens[1:]:
        raise VocabularyError(
            f"{path}, line {tokens.index('', 1) + 1}: a blank line. Remove it (only a blank first line has a meaning, "
            "padding), or pass read_vocabulary(path, keep_lines=True) where ids are line numbers."
        )
    _check_distinct(tokens, f"{path}, line {{}}", first=1)
    return _with_defaults(tokens)


def _read_lines(path: Path) -> list[str]:
    """The lines of a text file: only LF or CRLF ends one, as in vector files, and invalid UTF-8 is kept as escapes."""
    raw = path.read_bytes()
    kinds = [kind for magic, kind in _FOREIGN.items() if raw.startswith(magic)]
    if raw.startswith(_UTF16_MARKS) and b"\0" in raw[:4]:
        kinds = ["UTF-16 text"]
    if kinds:
        raise VocabularyError(f"{path}: {kinds[0]}, where a UTF-8 text file with one token a line was expected.")
    lines = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def _from_layer(layer: Any) -> _Found:
    """Reads a Keras lookup layer by its attributes: Keras itself need not be imported here."""
    lookup = getattr(layer, "_lookup_layer", layer)  # TextVectorization keeps its StringLookup there
    name = type(layer).__name__
    if not all(hasattr(lookup, attribute) for attribute in ("num_oov_indices", "mask_token", "oov_token")):
        raise VocabularyError(f"{name} is no Keras lookup layer. Pass the list that its get_vocabulary() returns.")
    if getattr(lookup, "invert", False):
        raise VocabularyError(f"{name} has invert=True: it turns ids into tokens. Pass the layer that makes the ids.")
    if getattr(lookup, "output_mode", "int") != "int":
        raise VocabularyError(f'{name} must have output_mode="int". Received: output_mode={lookup.output_mode!r}.')
    first_slot = int(lookup.mask_token is not None)
    slots = range(first_slot, first_slot + lookup.num_oov_indices)
    tokens = layer.get_vocabulary()
    if len(tokens) <= slots.stop:
        raise VocabularyError(f"{name} has no tokens yet: call its adapt() or set_vocabulary() first.")
    if lookup.oov_token is None:  # then get_vocabulary() holds None in the slots
        tokens = [*tokens[:first_slot], *[UNKNOWN_TOKEN] * len(slots), *tokens[slots.stop :]]
    tokens = _as_text(tokens)
    unknown = slots.start if slots else None
    return _with_defaults(tokens, 0 if first_slot else None, unknown, frozenset(range(slots.stop)))


def _from_word_index(word_index: Mapping[Any, Any]) -> _Found:
    tokens = _as_text(list(word_index))
    _check_writable(tokens)
    values = list(word_index.values())
    ids = _as_ids(tokens, values)
    order = np.argsort(ids, kind="stable")
    start = int(min(ids[order[0]], 1)) if tokens else 0
    _check_without_gaps(tokens, ids, order, start)
    ordered = tuple(tokens[place] for place in order.tolist())
    return _with_defaults(("", *ordered), slots=frozenset([0])) if start else _with_defaults(ordered)


def _as_ids(tokens: Sequence[str], values: list[Any]) -> NDArray[np.int64]:
    whole = {kind for kind in set(map(type, values)) if issubclass(kind, (int, np.integer)) and kind is not bool}
    limit = np.iinfo(np.int64).max
    for token, value in zip(tokens, values, strict=True):
        if type(value) not in whole or not 0 <= value <= limit:
            raise VocabularyError(
                f"The id of token {token!r} must be an integer, 0 or more. "
                f"Received: {value!r} of type {type(value).__name__}."
            )
    return np.array(values, np.int64)


def _check_without_gaps(tokens: Sequence[str], ids: NDArray[Any], order: NDArray[Any], start: int) -> None:
    wrong = np.flatnonzero(ids[order] != np.arange(start, start + len(ids)))
    if not wrong.size:
        return
    place = int(wrong[0])
    token, token_id = tokens[order[place]], int(ids[order[place]])
    if place and token_id == ids[order[place - 1]]:
        raise VocabularyError(f"Tokens {tokens[order[place - 1]]!r} and {token!r} have the same id {token_id}.")
    raise VocabularyError(
        f"No token has the id {start + place}; the next one, {token!r}, has {token_id}. Ids must run from 0 or 1 "
        "without gaps: number the tokens anew, or pass a list with a token of your own for each gap."
    )


def _with_defaults(
    tokens: tuple[str, ...],
    padding: int | None = None,
    unknown: int | None = None,
    slots: frozenset[int] = frozenset(),
) -> _Found:
    if not tokens:
        raise VocabularyError("The vocabulary is empty: at least one token is needed.")
    if padding is None and tokens[0] == "":
        padding = 0
    if unknown is None and UNKNOWN_TOKEN in tokens:
        unknown = tokens.index(UNKNOWN_TOKEN)
    return _Found(tokens, padding, unknown, slots)


def _as_text(tokens: Sequence[Any]) -> tuple[str, ...]:
    kinds = set(map(type, tokens))
    if kinds <= {str}:
        return tuple(tokens)
    if all(issubclass(kind, str) for kind in kinds):
        return tuple(map(str.__str__, tokens))  # np.str_, and enumerations of str: the text alone
    place = next(place for place, token in enumerate(tokens) if not isinstance(token, str))
    token, hint = tokens[place], "ids without strings need no vocabulary"
    if isinstance(token, bytes):
        hint = "decode it"
    raise VocabularyError(
        f"Tokens must be str. Received: {token!r} of type {type(token).__name__} at place {place}; {hint}."
    )


def _check_writable(tokens: Sequence[str]) -> None:
    """Refuses text that our files could not give back, now and not after the training."""
    try:
        "".join(tokens).encode()
    except UnicodeEncodeError:
        for token in tokens:
            encode_word(token)


def _check_distinct(tokens: Sequence[str], where: str, *, first: int) -> None:
    if len(set(tokens)) == len(tokens):
        return
    seen: dict[str, int] = {}
    place = next(place for place, token in enumerate(tokens) if seen.setdefault(token, place) != place)
    raise VocabularyError(
        f"{where.format(place + first)}: the token {tokens[place]!r} again, first at {seen[tokens[place]] + first}. "
        "Remove one of them: a token has one id."
    )


def out_of_range(token_id: Any, num_tokens: int) -> str:
    """The one message for an id outside the vocabulary, wherever it is met.

    >>> out_of_range(7, 4)
    'Token id 7 is out of range: there are 4 tokens, so ids run from 0 to 3.'
    """
    return f"Token id {token_id} is out of range: there are {num_tokens} tokens, so ids run from 0 to {num_tokens - 1}."


def resolve_ids(
    selection: Any, num_tokens: int, index: Mapping[str, int] | Callable[[], Mapping[str, int]] | None = None
) -> NDArray[np.int64]:
    """Turns tokens, ids, both mixed, or a boolean mask into ids.

    >>> resolve_ids(["b", 0], 3, {"a": 0, "b": 1, "c": 2}).tolist()
    [1, 0]
    >>> resolve_ids([False, True, True], 3).tolist()
    [1, 2]

    Args:
        selection: a token, an id, an iterable of tokens and ids, or a boolean mask `(num_tokens,)`.
        num_tokens: number of ids.
        index: token to id; or a function that returns it, called only where a token is named; None where ids have no
            strings.

    Returns:
        int64 `(num_selected,)` in the order and with the repeats of the selection; ascending for a mask or a set.

    Raises:
        TokenIdError: an id outside `[0, num_tokens)`.
        UnknownTokenError: a token that is not in the index.
        SplitError: a mask of another length, or what is neither token nor id.
    """
    if isinstance(selection, (str, int, np.integer)) and not isinstance(selection, bool):
        selection = [selection]
    if isinstance(selection, (bytes, bytearray)) or not isinstance(selection, Iterable):
        raise _no_selection(selection)
    if isinstance(selection, np.ndarray) and (selection.dtype.kind in "iub" or selection.ndim != 1):
        return _ids_of_array(selection, num_tokens)
    items = list(selection)
    kinds = set(map(type, items))
    if kinds and kinds <= {bool, np.bool_}:
        return _ids_of_array(np.array(items), num_tokens)
    for kind in kinds:
        if not issubclass(kind, (str, int, np.integer)) or kind is bool:
            raise _no_selection(next(item for item in items if type(item) is kind))
    if any(issubclass(kind, str) for kind in kinds):
        items = _ids_of_tokens(items, num_tokens, index() if callable(index) else index)
    ids = _ids_of_array(np.array(items, object), num_tokens)
    return np.sort(ids) if isinstance(selection, (set, frozenset)) else ids


def _no_selection(item: Any) -> SplitError:
    return SplitError(
        f"Rows are named by tokens (str), ids (int) or a boolean mask. Received: {item!r} ({type(item).__name__})."
    )


def _ids_of_tokens(items: list[Any], num_tokens: int, index: Mapping[str, int] | None) -> list[Any]:
    if index is None:
        token = next(item for item in items if isinstance(item, str))
        raise UnknownTokenError(f"Token {token!r} cannot be looked up, as there is no vocabulary: name ids instead.")
    try:
        return [index[item] if isinstance(item, str) else item for item in items]
    except KeyError:
        token = next(item for item in items if isinstance(item, str) and item not in index)
        raise UnknownTokenError(
            f"Token {token!r} is not among the {num_tokens} tokens of the vocabulary: check its spelling and case."
        ) from None


def _ids_of_array(array: NDArray[Any], num_tokens: int) -> NDArray[np.int64]:
    """Ids of a mask or of integers of any width, compared before they are narrowed to int64."""
    if array.ndim != 1 or (array.dtype == bool and len(array) != num_tokens):
        expected = f"one-dimensional; a mask has one value for each of the {num_tokens} tokens"
        raise SplitError(f"A selection of rows must be {expected}. Received: shape {array.shape}, {array.dtype}.")
    if array.dtype == bool:
        return np.flatnonzero(array)
    outside = (array < 0) | (array >= num_tokens)
    if outside.any():
        raise TokenIdError(out_of_range(array[outside][0], num_tokens))
    return array.astype(np.int64)


def align_counts(
    counts: Mapping[str, float] | ArrayLike, vocabulary: Vocabulary
) -> NDArray[np.int64] | NDArray[np.float64]:
    """Puts the counts of tokens in id order.

    >>> from collections import Counter
    >>> align_counts(Counter("a rose is a rose".split()), read_vocabulary(["a", "rose", "sky"]))
    array([2, 2, 0])

    Args:
        counts: how often each token occurs: a dict (or a `Counter`, or a pandas Series) token -> count, in which
            tokens may be missing (0) or beyond the vocabulary (ignored); or an array `(num_tokens,)` in id order.
        vocabulary: the tokens.

    Returns:
        `(num_tokens,)`, int64 for whole counts and float64 for weights.

    Raises:
        VocabularyError: counts that are negative, not finite, no numbers, of another length, or not by token.
    """
    table = counts.to_dict() if hasattr(counts, "to_dict") else counts
    array = np.asarray(_counts_by_token(table, vocabulary) if isinstance(table, Mapping) else table)
    if array.shape != (vocabulary.num_tokens,):
        raise VocabularyError(
            f"`counts` must have one count for each of the {vocabulary.num_tokens} tokens. "
            f"Received: shape {array.shape}."
        )
    if array.dtype.kind not in "iuf" or (array.dtype.kind == "u" and array.max() > np.iinfo(np.int64).max):
        raise VocabularyError(f"`counts` must be numbers that int64 or float64 hold. Received: dtype {array.dtype}.")
    wrong = ~np.isfinite(array) | (array < 0)
    if wrong.any():
        place = int(np.argmax(wrong))
        token = vocabulary.tokens[place]
        raise VocabularyError(f"The count of token {token!r} (id {place}) must be 0 or more. Received: {array[place]}.")
    return array.astype(np.float64) if array.dtype.kind == "f" else array.astype(np.int64)


def _counts_by_token(counts: Mapping[Any, Any], vocabulary: Vocabulary) -> list[Any]:
    for key_type in set(map(type, counts)):
        if not issubclass(key_type, str):
            raise VocabularyError(
                f"`counts` must be by token (str). Received: keys of type {key_type.__name__}. "
                "Counts by id go in an array in id order."
            )
    return [counts.get(token, 0) for token in vocabulary.tokens]
