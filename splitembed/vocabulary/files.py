"""Files of tokens: a path goes in; the tokens of its lines, or of the JSON that it holds, come out."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from splitembed.errors import VocabularyError
from splitembed.vocabulary.tokenizers_json import from_tokenizers_json, is_tokenizers_json
from splitembed.vocabulary.tokens import SourceTokens, check_distinct, with_defaults
from splitembed.vocabulary.word_index import from_tokenizer, from_word_index

_FOREIGN = {
    b"\x1f\x8b": "gzip data",
    b"PK\x03\x04": "a zip archive",
    b"\x89HDF": "an HDF5 file",
    b"BZh91AY&SY": "bzip2 data",
    b"\xfd7zXZ": "xz data",
    b"\x28\xb5\x2f\xfd": "zstd data",
    b"\x80\x02": "a Python pickle",
    b"\x80\x03": "a Python pickle",
    b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle",
}
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_JSON_OBJECT = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"')
_JSON_LIST = re.compile(rb'(?:\xef\xbb\xbf)?\s*\[\s*"')
_PATH = re.compile(r"[^\n]*(?:[\\/][^\n]*|\.\w+)")
_FIELDS = re.compile(r"(\S+)(?:[ \t]+[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)+")


def from_file(source: str | os.PathLike[str], keep_lines: bool, num_words: int | None = None) -> SourceTokens:
    r"""Reads a text file with one token a line, or JSON: of a tokenizer, or token -> id.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "vocabulary.txt"
    ...     _ = path.write_bytes(b"the\nsky\n")
    ...     from_file(path, keep_lines=False).tokens
    ('the', 'sky')

    Args:
        source: the path.
        keep_lines: ids are the line numbers, whatever the lines hold.
        num_words: of token -> id, only ids below this are kept.

    Raises:
        OSError: the file cannot be opened.
        VocabularyError: another kind of file; blank or repeated lines; lines of tokens and numbers.
    """
    path, raw = Path(source), _read(source)
    if not keep_lines and _JSON_OBJECT.match(raw):
        return _from_json(path, raw, num_words)
    if num_words is not None:
        raise VocabularyError(f"`num_words` is for a dict token -> id. Received: {path}, which is a text file.")
    tokens = tuple(_lines(path, raw))
    if not keep_lines:
        _refuse_json_list(path, raw)
    if keep_lines:
        blanks = frozenset(place for place, token in enumerate(tokens) if not token)
        return with_defaults(tokens, slots=blanks)
    _check_lines(path, tokens)
    return with_defaults(tokens)


def _read(source: str | os.PathLike[str]) -> bytes:
    try:
        return Path(source).read_bytes()
    except (OSError, ValueError) as error:  # a ValueError for NUL in a path
        if not isinstance(source, str) or _PATH.fullmatch(source):
            raise
        hint = "a str must be the path of a file; one token goes in a list, the number of ids without strings is an int"
        if isinstance(error, OSError):
            raise OSError(error.errno, f"{error.strerror} ({hint})", source[:60]) from None  # of the kind of its number
        raise VocabularyError(f"{source[:60]!r} is no path: {hint}.") from None


def _lines(path: Path, raw: bytes) -> list[str]:
    """The lines of a text file: only LF or CRLF ends one, as in vector files, and invalid UTF-8 is kept as escapes."""
    kinds = [kind for magic, kind in _FOREIGN.items() if raw.startswith(magic)]
    if raw.startswith(_UTF16_MARKS) and b"\0" in raw[:4]:
        kinds = ["UTF-16 text"]
    if _is_sentencepiece(raw):
        kinds = ["a SentencePiece model (its tokenizer.json can be read)"]
    if kinds:
        raise VocabularyError(f"{path}: {kinds[0]}, where a UTF-8 text file with one token a line was expected.")
    lines = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def _is_sentencepiece(raw: bytes) -> bool:
    """Whether it begins as a protobuf of pieces: a message, in it the piece and, behind that, its score."""
    return len(raw) > 3 and raw[:1] == raw[2:3] == b"\n" and raw[4 + raw[3] : 5 + raw[3]] == b"\x15"


def _check_lines(path: Path, tokens: tuple[str, ...]) -> None:
    if "" in tokens[1:]:
        raise VocabularyError(
            f"{path}, line {tokens.index('', 1) + 1}: a blank line. Remove it (only a blank first line has a meaning, "
            "padding), or pass read_vocabulary(path, keep_lines=True) where ids are line numbers."
        )
    check_distinct(tokens, f"{path}, line {{}}", first=1)
    _check_no_numbers(path, tokens)


def _check_no_numbers(path: Path, tokens: tuple[str, ...]) -> None:
    """Refuses a file of vectors, of counts or of ids: every line a token of its own, and behind it numbers."""
    names = set()
    for token in tokens:
        fields = _FIELDS.fullmatch(token)
        if fields is None or fields[1] in names:
            return
        names.add(fields[1])
    if len(tokens) > 1:
        raise VocabularyError(
            f"{path}, line 1: {tokens[0][:60]!r}, and like it every line, is a token and numbers, where one token a "
            "line was expected. A file of vectors is the second argument, not the first; remove counts and ids; or "
            "pass read_vocabulary(path, keep_lines=True) where whole lines are tokens."
        )


def _refuse_json_list(path: Path, raw: bytes) -> None:
    """Refuses JSON whose lines, with brackets and quotes, would be taken for tokens."""
    listed = _json_or_none(raw.removeprefix(b"\xef\xbb\xbf")) if _JSON_LIST.match(raw) else None
    if isinstance(listed, list) and len(listed) > 1:  # a single one may be a token that is spelled so
        raise VocabularyError(
            f"{path}: a list in JSON, where one token a line, or JSON of a tokenizer or of token -> id, was expected. "
            "Pass json.load(file), or read_vocabulary(path, keep_lines=True) where whole lines are tokens."
        )


def _json_or_none(text: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None


def _from_json(path: Path, raw: bytes, num_words: int | None) -> SourceTokens:
    content = _parse(path, raw)
    is_tokenizer = is_tokenizers_json(content)
    if num_words is not None and (is_tokenizer or _is_keras_tokenizer(content)):
        raise VocabularyError(f"`num_words` is for a dict token -> id. Received: {path}, the JSON of a tokenizer.")
    if is_tokenizer:
        return from_tokenizers_json(content, str(path), as_loaded=True)
    if _is_keras_tokenizer(content):
        return _from_keras_tokenizer(path, content["config"])
    if any(isinstance(value, (Mapping, list, str)) for value in content.values()):
        raise VocabularyError(
            f"{path}: JSON with the keys {str(list(content))[:60]}, where the JSON of a tokenizer (`model` and in it "
            "`vocab`) or token -> id was expected."
        )
    return from_word_index(content, num_words)


def _parse(path: Path, raw: bytes) -> Any:
    try:
        return json.loads(raw.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as error:
        raise VocabularyError(
            f"{path}: it begins as JSON, but cannot be read as JSON: {error}. Pass read_vocabulary(path, "
            "keep_lines=True) if it is a text file with one token a line."
        ) from None


def _from_keras_tokenizer(path: Path, config: Mapping[str, Any]) -> SourceTokens:
    word_index = _json_or_none(config["word_index"])
    num_words, oov_token = config["num_words"], config["oov_token"]
    is_whole = isinstance(num_words, int | None) and isinstance(oov_token, str | None)
    if not isinstance(word_index, Mapping) or not is_whole:
        raise VocabularyError(
            f"{path}: the JSON of a Keras Tokenizer with `word_index` {str(config['word_index'])[:60]!r}, `num_words` "
            f"{num_words!r} and `oov_token` {oov_token!r}; expected JSON of token -> id, an integer or null, a token "
            "or null. Write it by to_json()."
        )
    return from_tokenizer(word_index, num_words, oov_token, str(path))


def _is_keras_tokenizer(content: Any) -> bool:
    """Whether it is what the `to_json` of Keras's `Tokenizer` writes: JSON within JSON."""
    config = content.get("config")
    return isinstance(config, Mapping) and {"word_index", "num_words", "oov_token"} <= config.keys()
