"""Read tokens with ids: a dict, a Keras `Tokenizer` or a gensim `Dictionary`."""

import contextlib
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VocabularyError, VocabularyWarning
from splitembed.vocabulary.tokens import SourceTokens, as_text, check_writable, with_defaults

# Up to this number of ids, there may be any number of ids without a token: 20 MB of placeholders.
_MAX_PLACEHOLDERS = 100_000
# Up to this number of ids without a token there is no warning.
_FEW_GAPS = 1000
_PLACEHOLDER = re.compile(r"\[+no token [0-9]+\]+")


def from_word_index(word_index: Mapping[Any, Any], num_words: int | None = None) -> SourceTokens:
    """Read a dict token -> id, with ids from 0 or 1 without gaps.

    >>> from_word_index({"sky": 2, "red": 1, "sea": 3}, num_words=3).tokens
    ('', 'red', 'sky')

    Args:
        word_index: a mapping token -> id.
        num_words: only ids below this are kept, as Keras's `Tokenizer` does; None keeps all.

    Raises:
        VocabularyError: an invalid token or id; duplicate ids; gaps; or `num_words` keeps nothing.
    """
    tokens, ids = _checked(word_index)
    if num_words is not None:
        tokens, ids = _first_words(tokens, ids, num_words)
    order = np.argsort(ids, kind="stable")
    start = int(min(ids[order[0]], 1)) if tokens else 0
    _check_without_gaps(tokens, ids, order, start)
    ordered = tuple(tokens[index] for index in order.tolist())
    return with_defaults(("", *ordered), slots=frozenset([0])) if start else with_defaults(ordered)


def from_tokenizer(
    word_index: Mapping[Any, Any], num_words: int | None, oov_token: str | None, where: str
) -> SourceTokens:
    """Read a Keras `Tokenizer`: the ids that its sequences can hold, and id 0, its padding.

    >>> from_tokenizer({"<OOV>": 1, "the": 2, "sky": 3}, num_words=3, oov_token="<OOV>", where="Tokenizer")[:3]
    (('', '<OOV>', 'the'), 0, 1)

    Args:
        word_index: a mapping token -> id.
        num_words: only ids below this, and the id of `oov_token`, are in its sequences; None or 0 for all.
        oov_token: the token whose id stands for OOV tokens; None where these are left out.
        where: the name of the tokenizer in messages.

    Raises:
        VocabularyError: the tokenizer was not fitted; an invalid token or id; or duplicate ids.
    """
    if not word_index:
        raise VocabularyError(f"{where} has no tokens yet. Call its fit_on_texts() first.")
    _checked(word_index)
    limit = num_words or math.inf
    kept = {token: token_id for token, token_id in word_index.items() if token == oov_token or token_id < limit}
    tokens, gaps = fill_gaps(_with_padding(kept), where)
    found = with_defaults(tokens, padding=0, slots=frozenset([0]), gaps=gaps)
    return found if oov_token is None else found._replace(unknown=word_index.get(oov_token))


def _with_padding(word_index: dict[Any, Any]) -> dict[Any, Any]:
    """Add "" as id 0, which a Keras `Tokenizer` gives to no word, unless the user did."""
    return word_index if 0 in word_index.values() or "" in word_index else {"": 0, **word_index}


def from_dictionary(dictionary: Any) -> SourceTokens:
    """Read a gensim `Dictionary` by its `token2id`. Ids whose token was filtered out get placeholders.

    >>> from types import SimpleNamespace
    >>> found = from_dictionary(SimpleNamespace(token2id={"sky": 2, "red": 0}))
    >>> found.tokens, sorted(found.gaps)
    (('red', '[no token 1]', 'sky'), [1])

    Raises:
        VocabularyError: an invalid token or id; duplicate ids; or most ids have no token.
    """
    tokens, gaps = fill_gaps(dictionary.token2id, type(dictionary).__name__)
    return with_defaults(tokens, gaps=gaps)


def fill_gaps(word_index: Mapping[Any, Any], where: str) -> tuple[tuple[str, ...], frozenset[int]]:
    """Return the tokens in id order, with a placeholder for each id without a token.

    >>> fill_gaps({"b": 2, "a": 0}, "vocab")
    (('a', '[no token 1]', 'b'), frozenset({1}))

    Args:
        word_index: a mapping token -> id.
        where: the name of the source in messages.

    Returns:
        The tokens, and the ids of the placeholders.

    Raises:
        VocabularyError: an invalid token or id; duplicate ids; or most ids have no token.
    """
    with errors_named(where):
        tokens, ids = _checked(word_index)
    num_tokens = int(ids.max()) + 1 if tokens else 0
    if num_tokens > max(_MAX_PLACEHOLDERS, 10 * len(tokens)):
        raise VocabularyError(
            f"{where}: found {tokens[int(ids.argmax())]!r} with id {num_tokens - 1}, but only {len(tokens)} tokens; "
            "expected a token for most ids. Renumber the tokens."
        )
    ordered: list[str | None] = [None] * num_tokens
    for token, token_id in zip(tokens, ids.tolist(), strict=True):
        if ordered[token_id] is not None:
            with errors_named(where):
                raise _same_id(ordered[token_id], token, token_id)
        ordered[token_id] = token
    gaps = frozenset(token_id for token_id, token in enumerate(ordered) if token is None)
    _warn_of_many(gaps, tokens[int(ids.argmax())] if tokens else "", num_tokens, where)
    filled = (_placeholder(token_id, word_index) if token is None else token for token_id, token in enumerate(ordered))
    return tuple(filled), gaps


@contextlib.contextmanager
def errors_named(where: str) -> Iterator[None]:
    """Add the name of a source to the errors of its tokens and ids.

    >>> with errors_named("tokens.json"):
    ...     from_word_index({"a": -1})
    Traceback (most recent call last):
    splitembed.errors.VocabularyError: tokens.json: The id of token 'a' must be an integer, 0 or more. Received: -1 of
    type int.
    """
    try:
        yield
    except VocabularyError as error:
        raise VocabularyError(f"{where}: {error}") from None


def _warn_of_many(gaps: frozenset[int], last: str, num_tokens: int, where: str) -> None:
    if len(gaps) > max(_FEW_GAPS, num_tokens // 2):
        warnings.warn(
            f"{where}: {len(gaps):,} of {num_tokens:,} ids have no token; the highest id is that of {last!r}. They "
            "share one frozen zero row, but each takes memory. Renumber the tokens if that id is a mistake.",
            VocabularyWarning,
            stacklevel=5,
        )


def is_placeholder(token: str) -> bool:
    """Return whether a token is the placeholder of an id without a token, as `fill_gaps` names it.

    >>> is_placeholder("[no token 7]"), is_placeholder("[[no token 7]]"), is_placeholder("[UNK]")
    (True, True, False)
    """
    return token[:1] == "[" and _PLACEHOLDER.fullmatch(token) is not None


def _placeholder(token_id: int, word_index: Mapping[Any, Any]) -> str:
    name = f"[no token {token_id}]"
    while name in word_index:
        name = f"[{name}]"
    return name


def _checked(word_index: Mapping[Any, Any]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    tokens = as_text(list(word_index))
    check_writable(tokens)
    return tokens, _as_ids(tokens, list(word_index.values()))


def _as_ids(tokens: Sequence[str], values: list[Any]) -> NDArray[np.int64]:
    integer_types = {
        kind for kind in set(map(type, values)) if issubclass(kind, (int, np.integer)) and kind is not bool
    }
    limit = np.iinfo(np.int64).max
    for token, value in zip(tokens, values, strict=True):
        if type(value) not in integer_types or not 0 <= value <= limit:
            raise VocabularyError(
                f"The id of token {token!r} must be an integer, 0 or more. "
                f"Received: {value!r} of type {type(value).__name__}."
            )
    return np.array(values, np.int64)


def _first_words(
    tokens: tuple[str, ...], ids: NDArray[np.int64], num_words: Any
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    if isinstance(num_words, bool) or not isinstance(num_words, (int, np.integer)):
        raise VocabularyError(f"`num_words` must be an integer or None. Received: {num_words!r}.")
    kept = np.flatnonzero(ids < num_words).tolist()
    if tokens and not kept:
        raise VocabularyError(
            f"`num_words` must be above {ids.min()}, the smallest id, to keep any token. Received: {num_words}."
        )
    return tuple(tokens[index] for index in kept), ids[kept]


def _check_without_gaps(tokens: Sequence[str], ids: NDArray[Any], order: NDArray[Any], start: int) -> None:
    wrong = np.flatnonzero(ids[order] != np.arange(start, start + len(ids)))
    if not wrong.size:
        return
    index = int(wrong[0])
    token, token_id = tokens[order[index]], int(ids[order[index]])
    if index and token_id == ids[order[index - 1]]:
        raise _same_id(tokens[order[index - 1]], token, token_id)
    raise VocabularyError(
        f"Ids must run from 0 or 1 without gaps. Received: no token with id {start + index}, the next one, {token!r}, "
        f"has {token_id}. Renumber the tokens, or pass a list with a placeholder for each gap."
    )


def _same_id(first: str | None, second: str, token_id: int) -> VocabularyError:
    return VocabularyError(
        f"Ids must be distinct. Received: the tokens {first!r} and {second!r} with the same id {token_id}."
    )
