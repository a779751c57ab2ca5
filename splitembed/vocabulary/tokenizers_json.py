"""Read the JSON of a Hugging Face tokenizer, from a file or from the object.

The format is that of `tokenizers.Tokenizer.save`: `model` holds the tokens (WordPiece, BPE, WordLevel: token -> id;
Unigram: a list of token and score), `added_tokens` those that are split off before the model runs. The library
tokenizers need not be installed.
"""

import json
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

from splitembed.errors import VocabularyError
from splitembed.vocabulary.marks import Marks, find_marks, spell_tokens
from splitembed.vocabulary.tokens import SourceTokens
from splitembed.vocabulary.word_index import fill_gaps

_PADDING_TOKENS = ("[PAD]", "<pad>")


def from_object(tokenizer: Any) -> SourceTokens:
    """Read a `tokenizers.Tokenizer`, or a fast tokenizer of `transformers` by its `backend_tokenizer`.

    >>> from types import SimpleNamespace
    >>> text = '{"model": {"type": "WordLevel", "vocab": {"red": 0, "sky": 1}}, "added_tokens": []}'
    >>> from_object(SimpleNamespace(to_str=lambda: text)).tokens
    ('red', 'sky')

    Raises:
        VocabularyError: the tokenizer cannot be written as JSON, or `from_tokenizers_json` raises it.
    """
    name, backend = type(tokenizer).__name__, getattr(tokenizer, "backend_tokenizer", tokenizer)
    try:
        text = backend.to_str()
    # The library raises Exception itself.
    except Exception as error:
        raise VocabularyError(
            f"{name} cannot be written as JSON, from which its tokens are read: {error} Pass a list of its tokens in "
            "id order."
        ) from error
    found = from_tokenizers_json(json.loads(text), name)
    padding = getattr(tokenizer, "pad_token_id", None)
    if isinstance(padding, int) and 0 <= padding < len(found.tokens):
        return found._replace(padding=padding, padding_conflict=None)
    return found


def from_tokenizers_json(content: Mapping[str, Any], where: str, *, as_loaded: bool = False) -> SourceTokens:
    """Read the tokens of the parsed JSON, and their marks.

    Special tokens and ids without a token are reserved. "auto" padding is `padding.pad_id`, or a special token called
    [PAD] or <pad>; "auto" unknown is the unknown token of the model.

    >>> model = {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "play": 1, "##ing": 2}}
    >>> special = {"id": 0, "content": "[UNK]", "special": True}
    >>> found = from_tokenizers_json({"model": model, "added_tokens": [special]}, "tokenizer.json")
    >>> found.tokens, found.unknown, found.spellings, found.marks
    (('[UNK]', 'play', '##ing'), 0, ('[UNK]', 'play', None), 'wordpiece')

    Args:
        content: the parsed JSON.
        where: its name in messages.
        as_loaded: whether to check that the library gives added tokens the same ids when it loads the file.

    Raises:
        VocabularyError: the JSON is not that of a tokenizer, has duplicate ids, or (`as_loaded`) other ids than the
            library.
    """
    model, added = _model_and_added_tokens(content, where)
    vocab = _vocab(model, where)
    if as_loaded:
        _check_ids_of_library(vocab, len(model["vocab"]), added, where)
    word_index = {**vocab, **{token["content"]: token["id"] for token in added}}
    if not word_index:
        raise VocabularyError(f"{where}: the tokenizer has no tokens. Train it first.")
    tokens, gaps = fill_gaps(word_index, where)
    special = {token["id"] for token in added if token.get("special")}
    literals = frozenset(token["id"] for token in added)
    marks = _marks(content, where)
    padding, conflict = _padding(content, word_index, tokens, special, where)
    return SourceTokens(
        tokens,
        padding,
        _unknown(model, word_index, where),
        frozenset(special),
        spellings=None if marks is None else spell_tokens(tokens, marks, literals),
        marks=None if marks is None else marks.rule,
        literals=literals,
        padding_conflict=conflict,
        gaps=gaps,
    )


def _marks(content: Mapping[str, Any], where: str) -> Marks | None:
    try:
        marks = find_marks(content)
    except (TypeError, AttributeError):
        marks = Marks("", "", True)
    if marks is not None and not (marks.rule and isinstance(marks.mark, str)):
        raise VocabularyError(
            f"{where}: found JSON of a tokenizer with invalid marks of subwords; expected strings, in lists of "
            "components. The file is damaged. Save the tokenizer again."
        )
    return marks


def is_tokenizers_json(content: Any) -> bool:
    """Return whether parsed JSON is that of a tokenizer.

    >>> is_tokenizers_json({"model": {"vocab": {}}}), is_tokenizers_json({"the": 0})
    (True, False)
    """
    return isinstance(content, Mapping) and isinstance(content.get("model"), Mapping) and "vocab" in content["model"]


def _model_and_added_tokens(
    content: Mapping[str, Any], where: str
) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    if not is_tokenizers_json(content):
        raise VocabularyError(
            f"{where}: found other JSON; expected the JSON of a tokenizer, with `vocab` in its `model`. "
            "Save the tokenizer with its save()."
        )
    added = content.get("added_tokens") or []
    for token in added if isinstance(added, list) else [added]:
        if not isinstance(token, Mapping) or not isinstance(token.get("content"), str) or not _is_id(token.get("id")):
            raise VocabularyError(
                f"{where}: `added_tokens` must be a list of objects with `id` and `content`. Received: {token!r}."
            )
    # The library leaves out empty tokens.
    return content["model"], [token for token in added if token["content"]]


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _vocab(model: Mapping[str, Any], where: str) -> dict[str, int]:
    """Return token -> id. Of duplicate tokens in a Unigram model the last id is used, as in the library."""
    vocab = model["vocab"]
    if isinstance(vocab, Mapping):
        for token, token_id in vocab.items():
            if not _is_id(token_id):
                raise VocabularyError(
                    f"The id of token {token!r} must be an integer. Received: {token_id!r}, in {where}."
                )
        return dict(vocab)
    try:
        listed = {token: token_id for token_id, (token, _score) in enumerate(vocab)}
    except (TypeError, ValueError):
        listed = {None: 0}
    if not all(isinstance(token, str) for token in listed):
        raise VocabularyError(
            f"{where}: `model.vocab` must be token -> id, or a list of tokens with their scores. "
            f"Received: {type(vocab).__name__}, {reprlib.repr(vocab)}."
        )
    return listed


def _check_ids_of_library(
    vocab: Mapping[str, int], num_tokens: int, added: Iterable[Mapping[str, Any]], where: str
) -> None:
    """Check the ids of added tokens: the library takes the model's ids, or numbers on after its tokens.

    Where the model's ids have gaps, versions of the library number differently. Both ids must then be right.
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
                f"{where}: found the added token {content!r} with id {token['id']}; expected id "
                f"{' or '.join(map(str, sorted(ids)))}, which the tokenizers library gives it when it loads the file. "
                "If you use this library, pass tokenizers.Tokenizer.from_file(path); otherwise pass a list of the "
                "tokens in id order."
            )
        numbered[content] = token["id"]


def _unknown(model: Mapping[str, Any], word_index: Mapping[str, int], where: str) -> int | None:
    """Return the unknown id, or None. A Unigram model names the id, other models the token, which may be missing."""
    if not isinstance(model["vocab"], Mapping):
        unknown = model.get("unk_id")
        if unknown is not None and (not _is_id(unknown) or not 0 <= unknown < len(model["vocab"])):
            raise VocabularyError(f"{where}: `model.unk_id` must be an id of the model. Received: {unknown!r}.")
        return unknown
    unknown = model.get("unk_token")
    return word_index.get(unknown) if isinstance(unknown, str) else None


def _padding(
    content: Mapping[str, Any], word_index: Mapping[str, int], tokens: tuple[str, ...], special: set[int], where: str
) -> tuple[int | None, str | None]:
    """Return the padding id, and an error message where pad_id and pad_token disagree, as the library allows."""
    padding = content.get("padding")
    if isinstance(padding, Mapping):
        token_id, name = padding.get("pad_id"), padding.get("pad_token")
        held = tokens[token_id] if isinstance(token_id, int) and 0 <= token_id < len(tokens) else None
        if held == name and isinstance(token_id, int):
            return token_id, None
        return None, (
            f"{where}: found padding with id {token_id} and token {name!r}, but id {token_id} is {held!r}; expected "
            "one token. Pass the id or token of the padding as `padding`, or padding=None."
        )
    named = [word_index[name] for name in _PADDING_TOKENS if word_index.get(name) in special]
    return (named[0] if named else None), None
