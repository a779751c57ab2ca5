"""Read a vocabulary from any supported source."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from splitembed.errors import VocabularyError
from splitembed.paths import holds_bytes
from splitembed.vocabulary.files import from_file
from splitembed.vocabulary.keras_layers import from_layer
from splitembed.vocabulary.marks import spell_tokens, usual_marks
from splitembed.vocabulary.tokenizers_json import from_object
from splitembed.vocabulary.tokens import SourceTokens, from_list, from_number
from splitembed.vocabulary.vocabulary import Vocabulary
from splitembed.vocabulary.word_index import from_dictionary, from_tokenizer, from_word_index


def read_vocabulary(
    source: Any,
    *,
    padding: int | str | None = "auto",
    unknown: int | str | None = "auto",
    keep_lines: bool = False,
    num_words: int | None = None,
    marks: str | None = "auto",
) -> Vocabulary:
    """Read a vocabulary: tokens in id order, padding, unknown and reserved ids.

    A Keras `Tokenizer`'s word_index starts at 1, so its row 0 is padding:

    >>> vocabulary = read_vocabulary({"red": 1, "sky": 2})
    >>> vocabulary.tokens, vocabulary.padding
    (('', 'red', 'sky'), 0)

    Ids of items or products need no strings:

    >>> read_vocabulary(1000, padding=0)
    Vocabulary(num_tokens=1000, padding=0, unknown=None, num_reserved=1)

    Args:
        source: one of
            - a list, tuple or array of str or of integers, which are tokens: 1001 is the token "1001";
            - a text file with one token a line (UTF-8; LF or CRLF; a BOM is dropped, tokens are not stripped; a blank
              first line is padding, as Keras writes it): its path, "-" for standard input, or a file opened in binary
              mode;
            - a Keras `StringLookup`, `TextVectorization` or `IntegerLookup` layer;
            - a dict token -> id, from 0 or from 1 without gaps; a file of such JSON; or a Keras `Tokenizer`;
            - a Hugging Face tokenizer.json as a file, a `tokenizers.Tokenizer` or a fast tokenizer of `transformers`:
              special tokens and ids without a token are reserved;
            - a gensim `Dictionary`, or another object with `token2id`: ids without a token are reserved;
            - an integer N, or range(N), for the ids 0 to N - 1 without strings;
            - a `Vocabulary`.
        padding: the id or token whose row is zero and frozen; None for no padding; "auto": the mask token of a Keras
            layer, "" at id 0, id 0 of a Keras `Tokenizer` or of a dict that starts at 1, or the padding of a tokenizer
            (else its special token [PAD] or <pad>).
        unknown: the id or token that stands for tokens outside the vocabulary; None for no such id; "auto": the first
            OOV slot of a Keras layer, the `oov_token` or `unk_token` of a tokenizer, else the token "[UNK]".
        keep_lines: for a text file: whether ids are the line numbers, counted from 0, including blank and duplicate
            lines. Blank lines are reserved; every id of a duplicate matches the same vector.
        num_words: for a dict: only ids below this are kept, as Keras's `Tokenizer` does.
        marks: the marks of subwords, so that each token is matched as the word that it is, and a continuation is not
            matched: "wordpiece" (play, ##ing), "metaspace" and "byte-level" (a mark before words), "word-end"
            (ing</w>); None: tokens are matched as they are; "auto": the marks of a tokenizer, else None. This sets
            `spellings`; `tokens`, which a split stores, are unchanged.

    Returns:
        The vocabulary.

    Raises:
        VocabularyError: there are no tokens, duplicates, blank lines, gaps, tokens that are neither str nor int, a
            layer that does not map tokens to ids, or an option that the source does not support.
        TokenIdError: `padding` or `unknown` is an id outside the vocabulary.
        UnknownTokenError: `padding` or `unknown` is a token outside the vocabulary.
        OSError: a file cannot be opened.
        SplitError: a file that was opened as text, or an address of remote storage.
    """
    if keep_lines and not holds_bytes(source):
        raise VocabularyError(
            f"`keep_lines` is only for text files. Received: a source of type {type(source).__name__}."
        )
    found = _find_tokens(source, keep_lines, num_words)
    bare = Vocabulary(found.tokens, None, found.slots, None, has_strings=found.has_strings)
    if found.padding_conflict and isinstance(padding, str) and padding == "auto":
        raise VocabularyError(found.padding_conflict)
    padding_id = _choose("padding", padding, found.padding, bare)
    unknown_id = _choose("unknown", unknown, found.unknown, bare)
    if padding_id is not None and padding_id == unknown_id:
        raise VocabularyError(
            f"`padding` and `unknown` must be different ids. Received: {padding_id} for both. Pass another id, or "
            "None, for one of them."
        )
    special = {token_id for token_id in (padding_id, unknown_id) if token_id is not None}
    spellings, rule = _spell(found, marks)
    return Vocabulary(
        found.tokens,
        padding_id,
        found.slots.union(found.gaps, special),
        unknown_id,
        spellings,
        rule,
        has_strings=found.has_strings,
        gaps=found.gaps if special.isdisjoint(found.gaps) else found.gaps - special,
    )


def _choose(name: str, choice: Any, automatic: int | None, vocabulary: Vocabulary) -> int | None:
    if choice is None or (isinstance(choice, str) and choice == "auto"):
        return automatic if choice is not None else None
    if isinstance(choice, bool) or not isinstance(choice, (str, int, np.integer)):
        raise VocabularyError(f'`{name}` must be "auto", None, an id or a token. Received: {choice!r}.')
    return int(vocabulary.ids(choice)[0])


def _spell(found: SourceTokens, choice: Any) -> tuple[tuple[str | None, ...] | None, str | None]:
    """Return the spellings of tokens in vector files, and the rule."""
    if choice is None:
        return None, None
    if isinstance(choice, str) and choice in ("auto", found.marks):
        return found.spellings, found.marks
    marks = usual_marks(choice)
    if not found.has_strings:
        raise VocabularyError(f'`marks` must be "auto" or None for ids without strings. Received: {choice!r}.')
    return spell_tokens(found.tokens, marks, found.literals), marks.rule


def _find_tokens(source: Any, keep_lines: bool, num_words: Any) -> SourceTokens:
    if holds_bytes(source):
        return from_file(source, keep_lines, num_words)
    if isinstance(source, Mapping) and not isinstance(source, Counter) and not hasattr(source, "token2id"):
        return from_word_index(source, num_words)
    if num_words is not None:
        raise VocabularyError(f"`num_words` is only for a dict token -> id. Received: {type(source).__name__}.")
    if isinstance(source, Vocabulary):
        return _from_vocabulary(source)
    from_library = _from_library_object(source)
    if from_library is not None:
        return from_library
    if isinstance(source, (int, np.integer, range)) and not isinstance(source, bool):
        return from_number(source)
    if isinstance(source, Sequence) and not isinstance(source, (bytes, bytearray)):
        return from_list(source)
    if isinstance(source, np.ndarray) and source.ndim == 1:
        return from_list(source.tolist())
    raise VocabularyError(
        "A vocabulary must be a list of tokens in id order, the path of a text file or of a tokenizer.json, an open "
        "file, a Keras StringLookup, TextVectorization or IntegerLookup layer, a dict token -> id, a Keras Tokenizer, "
        "a Hugging Face tokenizer, a gensim Dictionary, or the number of ids without strings. "
        f"Received: {type(source).__name__}.{_hint(source)}"
    )


def _from_vocabulary(vocabulary: Vocabulary) -> SourceTokens:
    return SourceTokens(
        vocabulary.tokens,
        vocabulary.padding,
        vocabulary.unknown,
        vocabulary.reserved - vocabulary.gaps - {vocabulary.padding, vocabulary.unknown},
        vocabulary.spellings,
        vocabulary.marks,
        has_strings=vocabulary.has_strings,
        gaps=vocabulary.gaps,
    )


def _from_library_object(source: Any) -> SourceTokens | None:
    """Read objects of other libraries, recognized by their attributes, so that no library need be imported."""
    if hasattr(source, "get_vocabulary"):
        return from_layer(source)
    if hasattr(source, "token2id"):
        return from_dictionary(source)
    if all(hasattr(source, name) for name in ("word_index", "num_words", "oov_token")):
        return from_tokenizer(source.word_index, source.num_words, source.oov_token, type(source).__name__)
    if hasattr(source, "backend_tokenizer") or hasattr(source, "to_str"):
        return from_object(source)
    return None


def _hint(source: Any) -> str:
    for name in ("word_index", "index_to_key", "num_bins"):
        if hasattr(source, name):
            return f" Pass its `{name}`."
    return ""
