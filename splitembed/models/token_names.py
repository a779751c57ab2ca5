"""The names of a model's tokens: ids of chosen tokens, and of new ones."""

from collections.abc import Iterator, KeysView, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import SplitError, TokenIdError, UnknownTokenError, VocabularyError
from splitembed.models.new_tokens import NewTokens, checked, refuse_gaps
from splitembed.vocabulary import read_vocabulary, resolve_ids


class Names:
    """The names of a model's tokens, and of tokens that are added.

    Args:
        index: token to id; None where tokens have no names.
        tokens: the names in id order where the split is to keep them, else None.
        num_tokens: the number of rows of the model's table.
        num_known: the number of ids that have a token; None where that is unknown.
    """

    def __init__(
        self,
        index: Mapping[str, int] | None,
        tokens: Sequence[str] | None,
        num_tokens: int,
        num_known: int | None = None,
    ) -> None:
        self.index, self.tokens, self.num_tokens, self.num_known = index, tokens, num_tokens, num_known

    def chosen(self, selection: Any) -> NDArray[np.int64]:
        """Return the ids of chosen tokens, ascending, each once; see `resolve_ids`."""
        if self.index is None and isinstance(selection, str | list | tuple):
            self._refuse_names(selection)
        try:
            return np.unique(resolve_ids(selection, self.num_tokens, self.index))
        except TokenIdError:
            for name in [selection] if isinstance(selection, str) else selection:
                if isinstance(name, str) and self.index is not None and self.index.get(name, 0) >= self.num_tokens:
                    raise TokenIdError(
                        f"{name!r} has the id {self.index[name]} in the vocabulary, and the model has "
                        f"{self.num_tokens} tokens. Pass it in `new_tokens`."
                    ) from None
            raise

    def _refuse_names(self, selection: Any) -> None:
        for name in [selection] if isinstance(selection, str) else selection:
            if isinstance(name, str):
                raise UnknownTokenError(
                    f"Token {name!r} cannot be looked up, because the names of the model's tokens are unknown. Pass "
                    "`vocabulary`, a list of them or a tokenizer, or pass ids."
                )

    def new(self, new_tokens: Any) -> NewTokens:
        """Return the new tokens with their ids: those given, else those that follow the last known token.

        Raises:
            SplitError: `new_tokens` is neither a number, nor different names, nor different names with different ids; a
                name or an id belongs to another token; an id would leave a gap after the table; or the vocabulary has
                too few names for the number.
        """
        given = checked(new_tokens)
        if isinstance(given, Mapping):
            names: list[str] | None = list(given)
            ids = list(given.values())
        else:
            # rows after the last known token are reserved: a tokenizer that grows uses their ids
            known = self.num_tokens if self.num_known is None else min(self.num_known, self.num_tokens)
            names = self._following(given) if isinstance(given, int) else given
            count = len(given) if isinstance(given, list) else given
            ids = list(range(known, known + count))
        if names is not None:
            for name, token_id in zip(names, ids, strict=True):
                self._refuse_other_token(name, token_id, isinstance(given, Mapping))
            refuse_gaps(ids, names, self.num_tokens)
        return NewTokens(ids, names, self.num_tokens, self.tokens is not None)

    def like(self, like: Mapping[Any, Any] | None, new: NewTokens) -> dict[int, NDArray[np.int64]]:
        """Return the ids of the model's tokens whose rows a new token starts as the mean of.

        Args:
            like: for the name or the id of a new token, a text for the model's tokenizer, or tokens and ids.
            new: the new tokens.

        Raises:
            SplitError: not such a dict, a token that is not new, or no tokens.
            UnknownTokenError, TokenIdError: a token that the model does not have.
        """
        if not isinstance(like, Mapping | None):
            raise SplitError(f"`like` must be a dict from a new token to others. Received: {type(like).__name__}.")
        ids_of_names = dict(zip(new.names or (), new.ids, strict=False))
        found = {}
        for token, others in (like or {}).items():
            token_id = ids_of_names.get(token, token)
            if token_id not in new.ids:
                raise SplitError(
                    f"`like` must name new tokens. Received: {token!r}; the new ones are {new.described()}."
                )
            selection = [others] if isinstance(others, str) else others
            if isinstance(others, str) and isinstance(self.index, TokenizerIndex):
                selection = self.index.encode(others)
            ids = resolve_ids(selection, self.num_tokens, self.index)
            if not len(ids):
                raise SplitError(f"`like` must name at least one token for {token!r}. Received: {others!r}.")
            found[token_id] = ids
        return found

    def _following(self, count: int) -> list[str] | None:
        """Return the names that the vocabulary has for a number of tokens after the table; None without names."""
        if self.tokens is None:
            return None
        names = list(self.tokens[self.num_tokens : self.num_tokens + count])
        if len(names) < count:
            raise SplitError(
                f"`new_tokens` is {count}, but the vocabulary has {len(names)} names after the model's "
                f"{self.num_tokens} tokens. Pass the names as `new_tokens`, or a `vocabulary` with all of them."
            )
        return names

    def _refuse_other_token(self, name: str, token_id: int, is_given: bool) -> None:
        if self.index is None:
            return
        found = self.index.get(name)
        if found is None and token_id < (self.num_known or 0):
            raise SplitError(
                f"The new token {name!r} would get the id {token_id}, which the vocabulary of {self.num_known} tokens "
                f"has for another one. Pass the vocabulary that the new tokens are part of."
            )
        if found is None or found == token_id:
            return
        if found < self.num_tokens and not is_given:
            raise SplitError(
                f"{name!r} is not new: it has the id {found}. Pass it in `trainable_tokens` to start from its row, or "
                f"as new_tokens={{{name!r}: {found}}} to start a new one."
            )
        raise SplitError(
            f"The new token {name!r} has the id {found} in the vocabulary, and would get the id {token_id}: the model "
            f"has {self.num_tokens} rows, and new ones follow in the given order."
        )


def names_of(model: Any, vocabulary: Any, num_tokens: int) -> Names:
    """Return the names of a model's tokens.

    Args:
        model: a KerasHub task, whose tokenizer is used by default, or any other model.
        vocabulary: what `read_vocabulary` reads, a KerasHub tokenizer, or None for the default.
        num_tokens: the rows of the embedding: more than names where a table was padded, fewer where names of new
            tokens follow.
    """
    if vocabulary is None or _is_tokenizer(vocabulary):
        tokenizer = vocabulary or tokenizer_of(model)
        if tokenizer is None:
            return Names(None, None, num_tokens)
        index = TokenizerIndex(tokenizer)
        return Names(index, None, num_tokens, len(index))
    # a KerasHub tokenizer's get_vocabulary()
    if isinstance(vocabulary, KeysView):
        vocabulary = list(vocabulary)
    read = read_vocabulary(vocabulary, padding=None, unknown=None)
    if not read.has_strings:
        raise VocabularyError("`vocabulary` must have strings. Leave it out and pass ids instead of tokens.")
    tokens = read.tokens if read.num_tokens >= num_tokens else None
    return Names(read.index, tokens, num_tokens, read.num_tokens)


def tokenizer_of(model: Any) -> Any:
    """Return the tokenizer of a KerasHub task, or None."""
    tokenizer = getattr(getattr(model, "preprocessor", None), "tokenizer", None)
    return tokenizer if _is_tokenizer(tokenizer) else None


def _is_tokenizer(value: Any) -> bool:
    return hasattr(value, "token_to_id") and hasattr(value, "id_to_token")


class TokenizerIndex(Mapping[str, int]):
    """The ids of a KerasHub tokenizer's tokens, looked up one by one, as its vocabulary may have 256,000.

    >>> from types import SimpleNamespace
    >>> tokens = ["<unk>", "the"]
    >>> tokenizer = SimpleNamespace(
    ...     token_to_id=lambda token: tokens.index(token) if token in tokens else 0, id_to_token=tokens.__getitem__)
    >>> index = TokenizerIndex(tokenizer)
    >>> index["the"], "cat" in index
    (1, False)
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __getitem__(self, token: str) -> int:
        try:
            found = self._tokenizer.token_to_id(token)
        # some tokenizers raise, others return the id of the unknown token, or None
        except (KeyError, ValueError):
            raise KeyError(token) from None
        if found is None or self._tokenizer.id_to_token(int(found)) != token:
            raise KeyError(token)
        return int(found)

    def encode(self, text: str) -> NDArray[np.int64]:
        """Return the ids of a text's tokens."""
        return np.asarray(self._tokenizer(text), np.int64).ravel()

    def __len__(self) -> int:
        return int(self._tokenizer.vocabulary_size())

    def __iter__(self) -> Iterator[str]:
        return iter(self._tokenizer.get_vocabulary())
