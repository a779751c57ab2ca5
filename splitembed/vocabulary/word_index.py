"""Tokens by their ids: a dict, a Keras `Tokenizer` or a gensim `Dictionary` goes in; tokens in id order come out."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import VocabularyError
from splitembed.vocabulary.tokens import SourceTokens, as_text, check_writable, with_defaults

_MOST_GAPS = 1_000_000  # ids without a token that are believed however few tokens there are: 100 MB of placeholders


def from_word_index(word_index: Mapping[Any, Any], num_words: int | None = None) -> SourceTokens:
    """Reads a dict token -> id, from 0 or from 1 without gaps.

    >>> from_word_index({"sky": 2, "red": 1, "sea": 3}, num_words=3).tokens
    ('', 'red', 'sky')

    Args:
        word_index: the ids by their tokens.
        num_words: only ids below this are kept, as Keras's `Tokenizer` does; None keeps all.

    Raises:
        VocabularyError: what is no token or no id; an id twice; gaps; or `num_words` keeps nothing.
    """
    tokens, ids = _checked(word_index)
    if num_words is not None:
        tokens, ids = _first_words(tokens, ids, num_words)
    order = np.argsort(ids, kind="stable")
    start = int(min(ids[order[0]], 1)) if tokens else 0
    _check_without_gaps(tokens, ids, order, start)
    ordered = tuple(tokens[place] for place in order.tolist())
    return with_defaults(("", *ordered), slots=frozenset([0])) if start else with_defaults(ordered)


def from_tokenizer(
    word_index: Mapping[Any, Any], num_words: int | None, oov_token: str | None, where: str
) -> SourceTokens:
    """Reads what a Keras `Tokenizer` knows: kept are the ids that it sends anything to, and id 0, its padding.

    >>> from_tokenizer({"<OOV>": 1, "the": 2, "sky": 3}, num_words=3, oov_token="<OOV>", where="Tokenizer")[:3]
    (('', '<OOV>', 'the'), 0, 1)

    Args:
        word_index: the ids by their tokens.
        num_words: only ids below this, and the id of `oov_token`, are sent anything; None or 0 for all.
        oov_token: the token to whose id goes what is not in `word_index`; None for none.
        where: what to call the tokenizer in an error.

    Raises:
        VocabularyError: it was not fitted; what is no token or no id; or an id twice.
    """
    if not word_index:
        raise VocabularyError(f"{where} has no tokens yet: call its fit_on_texts() first.")
    _checked(word_index)
    limit = num_words or math.inf
    kept = {token: token_id for token, token_id in word_index.items() if token == oov_token or token_id < limit}
    tokens, slots = fill_gaps(_with_padding(kept), where)
    found = with_defaults(tokens, padding=0, slots=slots | {0})
    return found if oov_token is None else found._replace(unknown=word_index.get(oov_token))


def _with_padding(word_index: dict[Any, Any]) -> dict[Any, Any]:
    """With "" for id 0, which a Keras `Tokenizer` gives to no word, unless the user gave it to one."""
    return word_index if 0 in word_index.values() or "" in word_index else {"": 0, **word_index}


def from_dictionary(dictionary: Any) -> SourceTokens:
    """Reads a gensim `Dictionary` by its `token2id`; ids that filtering left without a token stay where they are.

    >>> from types import SimpleNamespace
    >>> found = from_dictionary(SimpleNamespace(token2id={"sky": 2, "red": 0}))
    >>> found.tokens, sorted(found.slots)
    (('red', '[no token 1]', 'sky'), [1])

    Raises:
        VocabularyError: what is no token or no id; an id twice; or ids of which most have no token.
    """
    tokens, slots = fill_gaps(dictionary.token2id, type(dictionary).__name__)
    return with_defaults(tokens, slots=slots)


def fill_gaps(word_index: Mapping[Any, Any], where: str) -> tuple[tuple[str, ...], frozenset[int]]:
    """Puts tokens in id order, with a placeholder, which is no token, at each id that none has.

    >>> fill_gaps({"b": 2, "a": 0}, "vocab")
    (('a', '[no token 1]', 'b'), frozenset({1}))

    Args:
        word_index: the ids by their tokens.
        where: what to call the source in an error.

    Returns:
        The tokens, and the ids of the placeholders.

    Raises:
        VocabularyError: what is no token or no id; an id twice; or ids of which most have no token.
    """
    tokens, ids = _checked(word_index)
    num_tokens = int(ids.max()) + 1 if tokens else 0
    if num_tokens > max(_MOST_GAPS, 10 * len(tokens)):
        raise VocabularyError(
            f"{where}: {tokens[int(ids.argmax())]!r} has the id {num_tokens - 1}, but there are only {len(tokens)} "
            "tokens: most ids would have none. Number the tokens anew."
        )
    ordered: list[str | None] = [None] * num_tokens
    for token, token_id in zip(tokens, ids.tolist(), strict=True):
        if ordered[token_id] is not None:
            raise _same_id(ordered[token_id], token, token_id)
        ordered[token_id] = token
    gaps = frozenset(place for place, token in enumerate(ordered) if token is None)
    taken = word_index.keys()
    return tuple(_placeholder(place, taken) if token is None else token for place, token in enumerate(ordered)), gaps


def _placeholder(token_id: int, taken: Any) -> str:
    name = f"[no token {token_id}]"
    while name in taken:
        name = f"[{name}]"
    return name


def _checked(word_index: Mapping[Any, Any]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    tokens = as_text(list(word_index))
    check_writable(tokens)
    return tokens, _as_ids(tokens, list(word_index.values()))


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


def _first_words(
    tokens: tuple[str, ...], ids: NDArray[np.int64], num_words: Any
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    if isinstance(num_words, bool) or not isinstance(num_words, (int, np.integer)):
        raise VocabularyError(f"`num_words` must be an integer or None. Received: {num_words!r}.")
    kept = np.flatnonzero(ids < num_words).tolist()
    if tokens and not kept:
        raise VocabularyError(
            f"`num_words`={num_words} keeps no token: ids start at {ids.min()}, and only those below it are kept."
        )
    return tuple(tokens[place] for place in kept), ids[kept]


def _check_without_gaps(tokens: Sequence[str], ids: NDArray[Any], order: NDArray[Any], start: int) -> None:
    wrong = np.flatnonzero(ids[order] != np.arange(start, start + len(ids)))
    if not wrong.size:
        return
    place = int(wrong[0])
    token, token_id = tokens[order[place]], int(ids[order[place]])
    if place and token_id == ids[order[place - 1]]:
        raise _same_id(tokens[order[place - 1]], token, token_id)
    raise VocabularyError(
        f"No token has the id {start + place}; the next one, {token!r}, has {token_id}. Ids must run from 0 or 1 "
        "without gaps: number the tokens anew, or pass a list with a token of your own for each gap."
    )


def _same_id(first: str | None, second: str, token_id: int) -> VocabularyError:
    return VocabularyError(f"Tokens {first!r} and {second!r} have the same id {token_id}.")
