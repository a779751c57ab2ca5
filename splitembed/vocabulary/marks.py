"""Spell the tokens of a subword tokenizer as vector files do, and find the rule by which a tokenizer marks subwords.

The spelling of a token is the word that, alone between spaces, is tokenized to this token: "play", "Ġplay" and
"play</w>" are spelled "play". A token that only continues a longer word (or, with the rule "word-end", only starts one)
has no spelling, None: the "ing" of "play", "##ing" must not get the vector of the word "ing". With "metaspace" and
"byte-level", a single punctuation character or symbol is a word without its mark, because pre-tokenization always
splits it off: the "," of "red," is the comma of the files. This holds neither for digits ("20", "24" are not 2024) nor
for runs ("..", "." are not full stops).
"""

import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from splitembed.errors import VocabularyError


class Marks(NamedTuple):
    """One way to mark subwords.

    Args:
        rule: "wordpiece": the mark precedes continuations; "metaspace" and "byte-level": it precedes the starts of
            words; "word-end": it follows the ends of words.
        mark: the mark.
        in_bytes: whether characters represent bytes, as in GPT-2.
    """

    rule: str
    mark: str
    in_bytes: bool = False


# Devlin et al. 2019; Kudo and Richardson 2018; Radford et al. 2019; Sennrich et al. 2016, as GPT and CLIP write it.
USUAL = (
    Marks("wordpiece", "##"),
    Marks("metaspace", "\N{LOWER ONE EIGHTH BLOCK}"),
    Marks("byte-level", "Ġ", in_bytes=True),
    Marks("word-end", "</w>"),
)
_RULES_WITH_LONE_SIGNS = ("metaspace", "byte-level")


def usual_marks(rule: Any) -> Marks:
    """Return a rule with its usual mark.

    >>> usual_marks("wordpiece")
    Marks(rule='wordpiece', mark='##', in_bytes=False)

    Raises:
        VocabularyError: the rule is unknown.
    """
    for marks in USUAL:
        if isinstance(rule, str) and rule == marks.rule:
            return marks
    names = ", ".join(f'"{marks.rule}"' for marks in USUAL)
    raise VocabularyError(f'`marks` must be "auto", None or one of {names}. Received: {rule!r}.')


def spell_tokens(tokens: Sequence[str], marks: Marks, literals: Collection[int] = ()) -> tuple[str | None, ...]:
    """Return the spellings of tokens in vector files.

    >>> spell_tokens(["Ġthe", "ing", ",", "ĠcafÃ©"], usual_marks("byte-level"))
    ('the', None, ',', 'café')
    >>> spell_tokens(["ing", "ing</w>"], usual_marks("word-end"))
    (None, 'ing')

    Args:
        tokens: the tokens `(num_tokens,)`.
        marks: the rule and mark.
        literals: ids of tokens that have no marks.

    Returns:
        `(num_tokens,)`: words without their marks; None for continuations, white space and incomplete characters.
    """
    names = [_spell(token, marks) for token in tokens]
    for token_id in literals:
        names[token_id] = tokens[token_id]
    return tuple(names)


def _spell(token: str, marks: Marks) -> str | None:
    text: str | None
    text, is_word = _unmark(token, marks)
    if marks.in_bytes:
        text = _decode(text)
    if not text or text.isspace():
        return None
    return text if is_word or (marks.rule in _RULES_WITH_LONE_SIGNS and _is_sign(text)) else None


def _unmark(token: str, marks: Marks) -> tuple[str, bool]:
    """Return the token without its mark, and whether it is a word."""
    if marks.rule == "wordpiece":
        return token, not token.startswith(marks.mark)
    if marks.rule == "word-end":
        return token.removesuffix(marks.mark), token.endswith(marks.mark)
    return token.removeprefix(marks.mark), token.startswith(marks.mark)


def _is_sign(text: str) -> bool:
    return len(text) == 1 and unicodedata.category(text)[0] in "PS"


def _byte_of_character() -> dict[str, int]:
    """Return GPT-2's table: printable bytes of Latin-1 are themselves, the others follow from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted(set(range(0x100)) - set(printable))
    return {chr(byte): byte for byte in printable} | {chr(0x100 + index): byte for index, byte in enumerate(others)}


_BYTE_OF = _byte_of_character()


def _decode(text: str) -> str | None:
    """Return the text whose bytes the characters represent; None where the bytes are not whole characters."""
    try:
        return bytes(map(_BYTE_OF.__getitem__, text)).decode()
    except (KeyError, UnicodeDecodeError):
        return None


def find_marks(content: Mapping[str, Any]) -> Marks | None:
    """Find the marks of a tokenizer by its model, else by its pre-tokenizer, normalizer or decoder.

    >>> find_marks({"model": {"type": "BPE", "end_of_word_suffix": "</w>"}})
    Marks(rule='word-end', mark='</w>', in_bytes=False)
    >>> find_marks({"model": {"type": "Unigram"}, "decoder": {"type": "Metaspace", "replacement": "_"}})
    Marks(rule='metaspace', mark='_', in_bytes=False)

    Args:
        content: the parsed JSON of a tokenizer.

    Returns:
        The marks; None where subwords are not marked.
    """
    parts = [part for name in ("pre_tokenizer", "normalizer", "decoder") for part in _components(content.get(name))]
    in_bytes = any(part.get("type") == "ByteLevel" for part in parts)
    by_model = _marks_of_model(content["model"], in_bytes)
    if by_model is not None:
        return by_model
    if in_bytes:
        return usual_marks("byte-level")
    marks = filter(None, map(_metaspace, parts))
    return next((Marks("metaspace", mark) for mark in marks), None)


def _components(part: Any) -> Iterator[Mapping[str, Any]]:
    """Iterate over a component and, in a sequence, its components."""
    if isinstance(part, Mapping):
        yield part
        for name in ("pretokenizers", "normalizers", "decoders"):
            for each in part.get(name) or ():
                yield from _components(each)


def _marks_of_model(model: Mapping[str, Any], in_bytes: bool) -> Marks | None:
    if model.get("end_of_word_suffix"):
        return Marks("word-end", model["end_of_word_suffix"], in_bytes)
    if model.get("continuing_subword_prefix"):
        return Marks("wordpiece", model["continuing_subword_prefix"], in_bytes)
    is_wordpiece = model.get("type") == "WordPiece" and "continuing_subword_prefix" not in model
    return usual_marks("wordpiece") if is_wordpiece else None


def _metaspace(part: Mapping[str, Any]) -> str | None:
    """Return the character that replaces a space, by a Metaspace or by a Replace in either direction."""
    if part.get("type") == "Metaspace":
        return part.get("replacement") or usual_marks("metaspace").mark
    pattern = part.get("pattern")
    if part.get("type") == "Replace" and isinstance(pattern, Mapping):
        before, after = pattern.get("String"), part.get("content")
        mark = after if before == " " else before if after == " " else None
        return mark if isinstance(mark, str) and mark.strip() else None
    return None
