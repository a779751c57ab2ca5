"""Marks of subwords: the tokens of a tokenizer go in; what each is called in files of vectors comes out.

A token is called by the word that, alone between spaces, becomes this one token: so "play", "Ġplay" and "play</w>" are
"play". One that only continues (or, by the rule "word-end", only begins) a longer word is no word, and is called None:
the "ing" of "play", "##ing" must never get the vector of a word "ing". Only a single character of punctuation or a
symbol is a word without its mark, by "metaspace" and "byte-level": pre-tokenization splits it off whatever it touches,
and the "," of "red," is the comma of the files. Not so digits ("20", "24" are not 2024), nor runs ("..", "." is no
full stop).
"""

import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from splitembed.errors import VocabularyError


class Marks(NamedTuple):
    """One way to mark subwords.

    Args:
        rule: "wordpiece": the mark is in front of continuations; "metaspace" and "byte-level": it is in front of the
            beginnings of words; "word-end": it is behind their ends.
        mark: the mark itself.
        in_bytes: whether characters stand for bytes, as GPT-2 writes them.
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
_SIGNS_STAND_ALONE = ("metaspace", "byte-level")


def usual_marks(rule: Any) -> Marks:
    """Looks up a rule by its name, with the mark that it usually has.

    >>> usual_marks("wordpiece")
    Marks(rule='wordpiece', mark='##', in_bytes=False)

    Raises:
        VocabularyError: there is no such rule.
    """
    for marks in USUAL:
        if isinstance(rule, str) and rule == marks.rule:
            return marks
    names = ", ".join(f'"{marks.rule}"' for marks in USUAL)
    raise VocabularyError(f'`marks` must be "auto", None or one of {names}. Received: {rule!r}.')


def spell_tokens(tokens: Sequence[str], marks: Marks, literals: Collection[int] = ()) -> tuple[str | None, ...]:
    """Says what tokens are called in files of vectors.

    >>> spell_tokens(["Ġthe", "ing", ",", "ĠcafÃ©"], usual_marks("byte-level"))
    ('the', None, ',', 'café')
    >>> spell_tokens(["ing", "ing</w>"], usual_marks("word-end"))
    (None, 'ing')

    Args:
        tokens: the tokens `(num_tokens,)`.
        marks: how they are marked.
        literals: ids of tokens that are words as they stand.

    Returns:
        `(num_tokens,)`: words without their marks; None for what is no word: continuations, nothing but white space,
        bytes that are no whole characters.
    """
    names = [_spell(token, marks) for token in tokens]
    for place in literals:
        names[place] = tokens[place]
    return tuple(names)


def _spell(token: str, marks: Marks) -> str | None:
    text: str | None
    text, is_word = _unmark(token, marks)
    if marks.in_bytes:
        text = _decode(text)
    if not text or text.isspace():
        return None
    return text if is_word or (marks.rule in _SIGNS_STAND_ALONE and _is_sign(text)) else None


def _unmark(token: str, marks: Marks) -> tuple[str, bool]:
    """The token without its mark, and whether it is a word."""
    if marks.rule == "wordpiece":
        return token, not token.startswith(marks.mark)
    if marks.rule == "word-end":
        return token.removesuffix(marks.mark), token.endswith(marks.mark)
    return token.removeprefix(marks.mark), token.startswith(marks.mark)


def _is_sign(text: str) -> bool:
    return len(text) == 1 and unicodedata.category(text)[0] in "PS"


def _byte_of_character() -> dict[str, int]:
    """GPT-2's table: printable bytes of Latin-1 are themselves, the others follow from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted(set(range(0x100)) - set(printable))
    return {chr(byte): byte for byte in printable} | {chr(0x100 + place): byte for place, byte in enumerate(others)}


_BYTE_OF = _byte_of_character()


def _decode(text: str) -> str | None:
    """The text whose bytes the characters stand for; None where they are no whole characters."""
    try:
        return bytes(map(_BYTE_OF.__getitem__, text)).decode()
    except (KeyError, UnicodeDecodeError):
        return None


def find_marks(content: Mapping[str, Any]) -> Marks | None:
    """Finds the rule by the model, else by what splits the text, else by what joins the tokens again.

    >>> find_marks({"model": {"type": "BPE", "end_of_word_suffix": "</w>"}})
    Marks(rule='word-end', mark='</w>', in_bytes=False)
    >>> find_marks({"model": {"type": "Unigram"}, "decoder": {"type": "Metaspace", "replacement": "_"}})
    Marks(rule='metaspace', mark='_', in_bytes=False)

    Args:
        content: the parsed JSON of a tokenizer.

    Returns:
        The marks; None where nothing marks subwords.
    """
    parts = [part for name in ("pre_tokenizer", "normalizer", "decoder") for part in _parts(content.get(name))]
    in_bytes = any(part.get("type") == "ByteLevel" for part in parts)
    by_model = _marks_of_model(content["model"], in_bytes)
    if by_model is not None:
        return by_model
    if in_bytes:
        return usual_marks("byte-level")
    marks = filter(None, map(_metaspace, parts))
    return next((Marks("metaspace", mark) for mark in marks), None)


def _parts(part: Any) -> Iterator[Mapping[str, Any]]:
    """A component and, where it is a sequence of others, those."""
    if isinstance(part, Mapping):
        yield part
        for name in ("pretokenizers", "normalizers", "decoders"):
            for each in part.get(name) or ():
                yield from _parts(each)


def _marks_of_model(model: Mapping[str, Any], in_bytes: bool) -> Marks | None:
    if model.get("end_of_word_suffix"):
        return Marks("word-end", model["end_of_word_suffix"], in_bytes)
    if model.get("continuing_subword_prefix"):
        return Marks("wordpiece", model["continuing_subword_prefix"], in_bytes)
    is_wordpiece = model.get("type") == "WordPiece" and "continuing_subword_prefix" not in model
    return usual_marks("wordpiece") if is_wordpiece else None


def _metaspace(part: Mapping[str, Any]) -> str | None:
    """What stands for a space: by Metaspace itself, or by a Replace in either direction."""
    if part.get("type") == "Metaspace":
        return part.get("replacement") or usual_marks("metaspace").mark
    pattern = part.get("pattern")
    if part.get("type") == "Replace" and isinstance(pattern, Mapping):
        before, after = pattern.get("String"), part.get("content")
        mark = after if before == " " else before if after == " " else None
        return mark if isinstance(mark, str) and mark.strip() else None
    return None
