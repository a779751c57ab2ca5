"""Read tokens from a text file with one token a line, or from JSON."""

import json
import re
import warnings
from collections.abc import Mapping
from typing import Any

from splitembed.errors import NoMatchWarning, VocabularyError
from splitembed.paths import name_source, open_bytes
from splitembed.vocabulary.tokenizers_json import from_tokenizers_json, is_tokenizers_json
from splitembed.vocabulary.tokens import SourceTokens, check_distinct, with_defaults
from splitembed.vocabulary.word_index import errors_named, from_tokenizer, from_word_index

_FOREIGN = {
    b"\x1f\x8b": "gzip data",
    b"PK\x03\x04": "a zip archive",
    b"\x89HDF": "an HDF5 file",
    b"BZh91AY&SY": "bzip2 data",
    b"\xfd7zXZ": "xz data",
    b"\x28\xb5\x2f\xfd": "zstd data",
    b"\x93NUMPY": "a NumPy .npy array",
    b"\x80\x02": "a Python pickle",
    b"\x80\x03": "a Python pickle",
    b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle",
}
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_JSON_OBJECT = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"')
_JSON_LIST = re.compile(rb'(?:\xef\xbb\xbf)?\s*\[\s*"')
_PATH = re.compile(r"[^\n]*(?:[\\/][^\n]*|\.\w+)")
_NUM_SAMPLE_LINES = 1000
# Measured: the longest token of published tokenizers, a run of spaces, has some hundred.
_MOST_CHARACTERS = 10_000
_FIELDS = re.compile(r"(\S+)(?:[ \t]+[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)+")


def from_file(source: Any, keep_lines: bool, num_words: int | None = None) -> SourceTokens:
    r"""Read a text file with one token a line, or JSON: of a tokenizer, or token -> id.

    >>> import io
    >>> from_file(io.BytesIO(b"the\nsky\n"), keep_lines=False).tokens
    ('the', 'sky')

    Args:
        source: the path, "-" for standard input, or a file opened in binary mode.
        keep_lines: whether ids are the line numbers, including blank and duplicate lines.
        num_words: for JSON token -> id: only ids below this are kept.

    Raises:
        OSError: the file cannot be opened.
        VocabularyError: the file has another format, blank or duplicate lines, or lines of tokens and numbers.
    """
    name, raw = name_source(source), _read(source)
    found = _from_bytes(name, raw, keep_lines, num_words)
    _check_lengths(name, found.tokens)
    return found


def _from_bytes(name: str, raw: bytes, keep_lines: bool, num_words: int | None) -> SourceTokens:
    if not keep_lines and _JSON_OBJECT.match(raw):
        return _from_json(name, raw, num_words)
    if num_words is not None:
        raise VocabularyError(f"`num_words` is only for a dict token -> id. Received: {name}, which is a text file.")
    tokens = tuple(_lines(name, raw))
    if not keep_lines:
        _check_no_json_list(name, raw)
    if keep_lines:
        blanks = frozenset(token_id for token_id, token in enumerate(tokens) if not token)
        return with_defaults(tokens, gaps=blanks)
    _check_lines(name, tokens)
    return with_defaults(tokens)


def _check_lengths(name: str, tokens: tuple[str, ...]) -> None:
    """Raise an error for a very long token, because Keras's lookup layers return all tokens padded to its length."""
    longest = max(tokens, key=len)
    if len(longest) > _MOST_CHARACTERS:
        raise VocabularyError(
            f"{name}: found a token of {len(longest):,} characters, {longest[:20]!r}..., with id "
            f"{tokens.index(longest)}; expected at most {_MOST_CHARACTERS:,}. Remove it, or cut the text into tokens."
        )


def _read(source: Any) -> bytes:
    try:
        with open_bytes(source) as file:
            raw: bytes = file.read()
            return raw
    # A ValueError for NUL in a path.
    except (OSError, ValueError) as error:
        if not isinstance(source, str) or _PATH.fullmatch(source):
            raise
        hint = "a str must be the path of a file; pass one token as a list, the number of ids without strings as an int"
        if isinstance(error, OSError):
            # OSError picks the subclass by the number.
            raise OSError(error.errno, f"{error.strerror} ({hint})", source[:60]) from None
        raise VocabularyError(f"{source[:60]!r} is not a path: {hint}.") from None


def _lines(name: str, raw: bytes) -> list[str]:
    """Return the lines of a text file, ended by LF or CRLF as in vector files; invalid UTF-8 is kept as escapes."""
    kinds = [kind for magic, kind in _FOREIGN.items() if raw.startswith(magic)]
    if raw.startswith(_UTF16_MARKS) and b"\0" in raw[:4]:
        kinds = ["UTF-16 text"]
    if _is_sentencepiece(raw):
        kinds = ["a SentencePiece model (its tokenizer.json can be read)"]
    if kinds:
        raise VocabularyError(f"{name}: found {kinds[0]}; expected a UTF-8 text file with one token a line.")
    lines = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def _is_sentencepiece(raw: bytes) -> bool:
    """Return whether a file starts like a protobuf of pieces: a message with a piece, then its score."""
    return len(raw) > 3 and raw[:1] == raw[2:3] == b"\n" and raw[4 + raw[3] : 5 + raw[3]] == b"\x15"


def _check_lines(name: str, tokens: tuple[str, ...]) -> None:
    if not tokens:
        raise VocabularyError(f"{name}: found an empty file; expected at least one token. Check the path.")
    is_text = _is_running_text(tokens)
    if is_text and ("" in tokens[1:] or len(set(tokens)) < len(tokens)):
        raise VocabularyError(_text_message(name))
    if "" in tokens[1:]:
        raise VocabularyError(
            f"{name}, line {tokens.index('', 1) + 1}: found a blank line; expected a token. Remove it (only a blank "
            "first line is allowed, as padding), or pass read_vocabulary(path, keep_lines=True) where ids are line "
            "numbers."
        )
    check_distinct(tokens, "line", first=1, source=f"{name}, ")
    _check_no_numbers(name, tokens)
    if is_text:
        warnings.warn(_text_message(name), NoMatchWarning, stacklevel=2)


def _is_running_text(tokens: tuple[str, ...]) -> bool:
    """Return whether most lines hold three words or more, which few tokens do."""
    sample = list(filter(None, tokens[:_NUM_SAMPLE_LINES]))
    return 2 * sum(sum(map(str.isalpha, token.split())) > 2 for token in sample) > len(sample)


def _text_message(name: str) -> str:
    return (
        f"{name}: found lines of several words, like running text; expected one token a line. Make a vocabulary of the "
        "text first, such as keras.layers.TextVectorization after `adapt`. (Where whole lines are tokens, "
        "read_vocabulary(path, keep_lines=True) reads them as they are.)"
    )


def _check_no_numbers(name: str, tokens: tuple[str, ...]) -> None:
    """Raise an error for a file of vectors, counts or ids: every line is a different token with numbers after it."""
    names = set()
    for token in tokens:
        fields = _FIELDS.fullmatch(token)
        if fields is None or fields[1] in names:
            return
        names.add(fields[1])
    if len(tokens) > 1:
        raise VocabularyError(
            f"{name}, line 1: found a token and numbers, {tokens[0][:60]!r}, as in every line; expected one token a "
            "line. Pass a file of vectors as the second argument, remove counts and ids, or pass "
            "read_vocabulary(path, keep_lines=True) where whole lines are tokens."
        )


def _check_no_json_list(name: str, raw: bytes) -> None:
    """Raise an error for a JSON list, whose lines would be read as tokens with brackets and quotes."""
    listed = _json_or_none(raw.removeprefix(b"\xef\xbb\xbf")) if _JSON_LIST.match(raw) else None
    # A list of one item may be a token that is spelled like this.
    if isinstance(listed, list) and len(listed) > 1:
        raise VocabularyError(
            f"{name}: found a JSON list; expected one token a line, or JSON of a tokenizer or of token -> id. "
            "Pass json.load(file), or read_vocabulary(path, keep_lines=True) where whole lines are tokens."
        )


def _json_or_none(text: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None


def _from_json(name: str, raw: bytes, num_words: int | None) -> SourceTokens:
    content = _parse(name, raw)
    is_tokenizer = is_tokenizers_json(content)
    if num_words is not None and (is_tokenizer or _is_keras_tokenizer(content)):
        raise VocabularyError(f"`num_words` is only for a dict token -> id. Received: {name}, the JSON of a tokenizer.")
    if is_tokenizer:
        return from_tokenizers_json(content, name, as_loaded=True)
    if _is_keras_tokenizer(content):
        return _from_keras_tokenizer(name, content["config"])
    if any(isinstance(value, (Mapping, list, str)) for value in content.values()):
        raise VocabularyError(
            f"{name}: found JSON with the keys {str(list(content))[:60]}; expected JSON of token -> id, or of a "
            "tokenizer with `vocab` in its `model`. Pass the file of the tokenizer, or a list of its tokens in id "
            "order."
        )
    with errors_named(name):
        return from_word_index(content, num_words)


def _parse(name: str, raw: bytes) -> Any:
    try:
        return json.loads(raw.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as error:
        raise VocabularyError(
            f"{name}: found an invalid JSON object ({error}); expected JSON of a tokenizer or of token -> id. Pass "
            "read_vocabulary(path, keep_lines=True) if it is a text file with one token a line."
        ) from None


def _from_keras_tokenizer(name: str, config: Mapping[str, Any]) -> SourceTokens:
    word_index = _json_or_none(config["word_index"])
    num_words, oov_token = config["num_words"], config["oov_token"]
    is_valid = isinstance(num_words, int | None) and isinstance(oov_token, str | None)
    if not isinstance(word_index, Mapping) or not is_valid:
        raise VocabularyError(
            f"{name}: found JSON of a Keras Tokenizer with `word_index` {str(config['word_index'])[:60]!r}, "
            f"`num_words` {num_words!r} and `oov_token` {oov_token!r}; expected JSON of token -> id, an "
            "integer or null, a token or null. Write the file with to_json()."
        )
    return from_tokenizer(word_index, num_words, oov_token, name)


def _is_keras_tokenizer(content: Any) -> bool:
    """Return whether parsed JSON is from `to_json` of Keras's `Tokenizer`, whose word_index is JSON within JSON."""
    config = content.get("config")
    return isinstance(config, Mapping) and {"word_index", "num_words", "oov_token"} <= config.keys()
