"""How a tokenizer marks subwords: its JSON goes in; the rule, with the mark that it uses, comes out."""

from collections.abc import Iterator, Mapping
from typing import Any

from splitembed.vocabulary.marks import Marks, usual_marks


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
