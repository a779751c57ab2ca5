"""The names of a model's tokens: ids of chosen tokens, and names of new ones."""

from collections.abc import Iterator, KeysView, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.errors import SplitError, TokenIdError, UnknownTokenError, VocabularyError
from splitembed.vocabulary import read_vocabulary, resolve_ids


class Names:
    """The names of a model's tokens, and of tokens that are added.

    Args:
        index: token to id; None where tokens have no names.
        tokens: the names in id order where the split is to keep them, else None.
        num_tokens: the number of tokens of the model.
    """

    def __init__(self, index: Mapping[str, int] | None, tokens: Sequence[str] | None, num_tokens: int) -> None:
        self.index, self.tokens, self.num_tokens = index, tokens, num_tokens

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

    def new(self, new_tokens: Any) -> list[str] | int:
        """Return what to add: names where the split keeps names, else a number.

        Raises:
            SplitError: `new_tokens` is neither a number nor different names; a name belongs to another id; or the
                vocabulary has too few names for the number.
        """
        if isinstance(new_tokens, (int, np.integer)) and not isinstance(new_tokens, bool) and new_tokens >= 0:
            return int(new_tokens) if self.tokens is None else self._following(int(new_tokens))
        names = [new_tokens] if isinstance(new_tokens, str) else new_tokens
        if not isinstance(names, (list, tuple)) or not all(isinstance(each, str) and each for each in names):
            raise SplitError(f"`new_tokens` must be a number or a list of names. Received: {new_tokens!r}.")
        if len(set(names)) != len(names):
            raise SplitError(f"`new_tokens` must be different names. Received: {names!r}.")
        for expected, name in enumerate(names, self.num_tokens):
            self._refuse_other_id(name, expected)
        return len(names) if self.tokens is None else list(names)

    def _following(self, count: int) -> list[str]:
        names = [] if self.tokens is None else list(self.tokens[self.num_tokens : self.num_tokens + count])
        if len(names) < count:
            raise SplitError(
                f"`new_tokens` is {count}, but the vocabulary has {len(names)} names after the model's "
                f"{self.num_tokens} tokens. Pass the names as `new_tokens`, or a `vocabulary` with all of them."
            )
        return names

    def _refuse_other_id(self, name: str, expected: int) -> None:
        if self.index is None or name not in self.index:
            return
        found = self.index[name]
        if found < self.num_tokens:
            raise SplitError(f"{name!r} is not new: it has the id {found}. Pass it in `trainable_tokens`.")
        if found != expected:
            raise SplitError(
                f"The new token {name!r} has the id {found} in the vocabulary, and would get the id {expected}: the "
                f"model has {self.num_tokens} tokens, and new ones follow in the given order."
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
        tokenizer = vocabulary or getattr(getattr(model, "preprocessor", None), "tokenizer", None)
        return Names(TokenizerIndex(tokenizer) if _is_tokenizer(tokenizer) else None, None, num_tokens)
    # a KerasHub tokenizer's get_vocabulary()
    if isinstance(vocabulary, KeysView):
        vocabulary = list(vocabulary)
    read = read_vocabulary(vocabulary, padding=None, unknown=None)
    if not read.has_strings:
        raise VocabularyError("`vocabulary` must have strings. Leave it out and pass ids instead of tokens.")
    return Names(read.index, read.tokens if read.num_tokens >= num_tokens else None, num_tokens)


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

    def __len__(self) -> int:
        return int(self._tokenizer.vocabulary_size())

    def __iter__(self) -> Iterator[str]:
        return iter(self._tokenizer.get_vocabulary())
