"""Hugging Face `tokenizers`: the JSON of a tokenizer, or an object that writes it, goes in; its tokens come out.

The format is that of the library's `Tokenizer.save`: `model` holds the tokens (WordPiece, BPE, WordLevel: token -> id;
Unigram: a list of token and score), `added_tokens` those that are found in the text before the model sees it. The
library need not be installed.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from splitembed.errors import VocabularyError
from splitembed.vocabulary.marks import Marks, find_marks, spell_tokens
from splitembed.vocabulary.tokens import SourceTokens
from splitembed.vocabulary.word_index import fill_gaps

_PADDING_TOKENS = ("[PAD]", "<pad>")


def from_object(tokenizer: Any) -> SourceTokens:
    """Reads a `tokenizers.Tokenizer`, or a fast tokenizer of `transformers` by its `backend_tokenizer`.

    >>> from types import SimpleNamespace
    >>> text = '{"model": {"type": "WordLevel", "vocab": {"red": 0, "sky": 1}}, "added_tokens": []}'
    >>> from_object(SimpleNamespace(to_str=lambda: text)).tokens
    ('red', 'sky')

    Raises:
        VocabularyError: it cannot be written as JSON, or the JSON is none that `from_tokenizers_json` reads.
    """
    name, backend = type(tokenizer).__name__, getattr(tokenizer, "backend_tokenizer", tokenizer)
    try:
        text = backend.to_str()
    except Exception as error:  # the library raises bare Exceptions
        raise VocabularyError(
            f"{name} cannot be written as JSON, which is how its tokens are read: {error} Pass a list of its tokens in "
            "id order."
        ) from error
    found = from_tokenizers_json(json.loads(text), name)
    padding = getattr(tokenizer, "pad_token_id", None)
    if isinstance(padding, int) and 0 <= padding < len(found.tokens):
        return found._replace(padding=padding, doubt=None)
    return found


def from_tokenizers_json(content: Mapping[str, Any], where: str, *, as_loaded: bool = False) -> SourceTokens:
    """Reads the tokens of the parsed JSON, and how they are marked.

    Special tokens are reserved, and so are ids that no token has. "auto" padding is `padding.pad_id`, or a special
    token called [PAD] or <pad>; "auto" unknown is the model's own.

    >>> model = {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "play": 1, "##ing": 2}}
    >>> special = {"id": 0, "content": "[UNK]", "special": True}
    >>> found = from_tokenizers_json({"model": model, "added_tokens": [special]}, "tokenizer.json")
    >>> found.tokens, found.unknown, found.spellings, found.marks
    (('[UNK]', 'play', '##ing'), 0, ('[UNK]', 'play', None), 'wordpiece')

    Args:
        content: the parsed JSON.
        where: what to call it in an error.
        as_loaded: refuse ids of added tokens that the library would not keep: it numbers them anew as it loads a file.

    Raises:
        VocabularyError: it is not such JSON, gives an id twice, or (`as_loaded`) other ids than the library does.
    """
    model, added = _parts(content, where)
    vocab = _vocab(model, where)
    if as_loaded:
        _check_ids_of_library(vocab, _size(model), added, where)
    word_index = {**vocab, **{token["content"]: token["id"] for token in added}}
    if not word_index:
        raise VocabularyError(f"{where}: the tokenizer has no tokens: train it first.")
    tokens, gaps = fill_gaps(word_index, where)
    special = {token["id"] for token in added if token.get("special")}
    literals = frozenset(token["id"] for token in added)
    marks = _marks(content, where)
    padding, doubt = _padding(content, word_index, tokens, special, where)
    return SourceTokens(
        tokens,
        padding,
        _unknown(model, word_index, where),
        gaps | special,
        spellings=None if marks is None else spell_tokens(tokens, marks, literals),
        marks=None if marks is None else marks.rule,
        literals=literals,
        doubt=doubt,
    )


def _marks(content: Mapping[str, Any], where: str) -> Marks | None:
    try:
        marks = find_marks(content)
    except (TypeError, AttributeError):
        marks = Marks("", "", True)
    if marks is not None and not (marks.rule and isinstance(marks.mark, str)):
        raise VocabularyError(
            f"{where}: the JSON of a tokenizer whose marks of subwords are no strings, or stand in no list of parts. "
            "It is damaged: save the tokenizer anew."
        )
    return marks


def is_tokenizers_json(content: Any) -> bool:
    """Says whether parsed JSON is that of a tokenizer.

    >>> is_tokenizers_json({"model": {"vocab": {}}}), is_tokenizers_json({"the": 0})
    (True, False)
    """
    return isinstance(content, Mapping) and isinstance(content.get("model"), Mapping) and "vocab" in content["model"]


def _parts(content: Mapping[str, Any], where: str) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    if not is_tokenizers_json(content):
        raise VocabularyError(f"{where}: expected the JSON of a tokenizer, with `model` and in it `vocab`.")
    added = content.get("added_tokens") or []
    for token in added if isinstance(added, list) else [added]:
        if not isinstance(token, Mapping) or not isinstance(token.get("content"), str) or not _is_id(token.get("id")):
            raise VocabularyError(
                f"{where}: `added_tokens` must be a list of objects with `id` and `content`. Received: {token!r}."
            )
    return content["model"], [token for token in added if token["content"]]  # the library leaves out empty ones


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _vocab(model: Mapping[str, Any], where: str) -> dict[str, int]:
    """Token to id; of a token that a Unigram model lists twice the last id counts, as in the library."""
    vocab = model["vocab"]
    if isinstance(vocab, Mapping):
        for token, token_id in vocab.items():
            if not _is_id(token_id):
                raise VocabularyError(
                    f"The id of token {token!r} must be an integer. Received: {token_id!r}, in {where}."
                )
        return dict(vocab)
    try:
        return {token: place for place, (token, _score) in enumerate(vocab)}
    except (TypeError, ValueError):
        raise VocabularyError(
            f"{where}: `model.vocab` must be token -> id, or a list of tokens with their scores. "
            f"Received: {type(vocab).__name__}."
        ) from None


def _size(model: Mapping[str, Any]) -> int:
    return len(model["vocab"])


def _check_ids_of_library(
    vocab: Mapping[str, int], num_tokens: int, added: Iterable[Mapping[str, Any]], where: str
) -> None:
    """Numbers added tokens as the library does: by the model, else one after the other behind its tokens.

    Where the model's ids have gaps, versions of the library disagree about what is behind: both ids must then be right.
    """
    numbered: dict[str, int] = {}
    num_new = 0
    for token in added:
        content = token["content"]
        ids = {numbered.get(content, vocab.get(content, num_tokens + num_new))}
        if content not in numbered and content not in vocab:
            ids.add(max(num_tokens, 1 + max(numbered.values(), default=-1)))
            num_new += 1
        if ids != {token["id"]}:
            raise VocabularyError(
                f"{where}: the added token {content!r} has the id {token['id']}, but the tokenizers library gives it "
                f"{' or '.join(map(str, sorted(ids)))} when it loads the file. Where this library makes your ids, pass "
                "tokenizers.Tokenizer.from_file(path); else pass a list of the tokens in id order."
            )
        numbered[content] = token["id"]


def _unknown(model: Mapping[str, Any], word_index: Mapping[str, int], where: str) -> int | None:
    """The unknown id: a Unigram model names the id, the others the token, which the vocabulary may lack."""
    if not isinstance(model["vocab"], Mapping):
        unknown = model.get("unk_id")
        if unknown is not None and (not _is_id(unknown) or not 0 <= unknown < _size(model)):
            raise VocabularyError(f"{where}: `model.unk_id` must be an id of the model. Received: {unknown!r}.")
        return unknown
    unknown = model.get("unk_token")
    return word_index.get(unknown) if isinstance(unknown, str) else None


def _padding(
    content: Mapping[str, Any], word_index: Mapping[str, int], tokens: tuple[str, ...], special: set[int], where: str
) -> tuple[int | None, str | None]:
    """The padding id, and a doubt where the JSON contradicts itself: by default the library pads with any token 0."""
    padding = content.get("padding")
    if isinstance(padding, Mapping):
        token_id, name = padding.get("pad_id"), padding.get("pad_token")
        held = tokens[token_id] if isinstance(token_id, int) and 0 <= token_id < len(tokens) else None
        if held == name and isinstance(token_id, int):
            return token_id, None
        return None, (
            f"{where}: it pads with id {token_id} and calls it {name!r}, but the token of that id is {held!r}. Pass "
            "the id or token that is padding, or padding=None if there is none."
        )
    named = [word_index[name] for name in _PADDING_TOKENS if word_index.get(name) in special]
    return (named[0] if named else None), None
