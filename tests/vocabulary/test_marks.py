"""Marks of subwords: spellings by each rule, and the rule of a tokenizer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import VocabularyError
from splitembed.vocabulary.marks import USUAL, Marks, find_marks, spell_tokens, usual_marks

SPACE_TO_MARK = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
MARK_TO_SPACE = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
METASPACE, BYTE_LEVEL, BYTES = Marks("metaspace", "▁"), Marks("byte-level", "Ġ", True), {"type": "ByteLevel"}
WHITESPACE = {"type": "Whitespace"}


@pytest.mark.parametrize(
    ("rule", "spellings"),
    [
        ("wordpiece", {"play": "play", "##ing": None, "##": None, "#": "#", "##,": None, ",": ",", "a##": "a##"}),
        (
            "metaspace",
            {
                "▁play": "play",
                "ing": None,
                "▁": None,
                "▁▁": "▁",
                ",": ",",
                "▁,": ",",
                "$": "$",
                "...": None,
                "▁...": "...",
                "7": None,
                "▁7": "7",
                "的": None,
                "▁的": "的",
                "<0x41>": None,
                "▁\xa0": None,
                "▁New▁York": "New▁York",
                "\u0301": None,
            },
        ),
        (
            "byte-level",
            {
                "Ġplay": "play",
                "ing": None,
                "Ġ": None,
                "ĠĠ": None,
                "ĊĊ": None,
                ",": ",",
                "Ġ,": ",",
                "âĢĶ": "—",
                "Ġâ": None,
                "ĠcafÃ©": "café",
                "Ã©": None,
                "'s": None,
                "Ġ2020": "2020",
                "2020": None,
                "ĠðŁĺĢ": "😀",
                "ðŁĺĢ": "😀",
                "Ġ\u4e00": None,
            },
        ),
        ("word-end", {"ing</w>": "ing", "play": None, "</w>": None, ",": None, ",</w>": ",", "é</w>": "é"}),
    ],
)
def test_spellings_of_each_rule(rule, spellings):
    found = spell_tokens(list(spellings), usual_marks(rule))
    assert dict(zip(spellings, found, strict=True)) == spellings


def test_other_marks_and_marks_in_bytes():
    assert spell_tokens(["_the", "the"], Marks("metaspace", "_")) == ("the", None)
    assert spell_tokens(["@@ing", "play"], Marks("wordpiece", "@@")) == (None, "play")
    assert spell_tokens(["cafÃ©</w>", "ca", "Ã</w>"], Marks("word-end", "</w>", in_bytes=True)) == ("café", None, None)


def test_literals_are_spelled_as_they_are():
    assert spell_tokens(["ing", "▁a", "<x>"], usual_marks("metaspace"), {0, 2}) == ("ing", "a", "<x>")


@given(st.text(min_size=1).filter(lambda text: not text.isspace()), st.sampled_from(USUAL))
def test_a_marked_word_is_spelled_without_its_mark(word, marks):
    written = "".join(map(byte_characters().__getitem__, word.encode())) if marks.in_bytes else word
    token = {"wordpiece": written, "word-end": written + marks.mark}.get(marks.rule, marks.mark + written)
    if marks.rule != "wordpiece" or not word.startswith("##"):
        assert spell_tokens([token], marks) == (word,)


@given(st.text(st.characters(categories=["L", "N", "M"]), min_size=1), st.sampled_from(USUAL))
def test_a_continuation_has_no_spelling(text, marks):
    written = "".join(map(byte_characters().__getitem__, text.encode())) if marks.in_bytes else text
    token = marks.mark + written if marks.rule == "wordpiece" else written
    assert spell_tokens([token], marks) == (None,)


def byte_characters():
    """Byte to character, as GPT-2's `bytes_to_unicode` has them."""
    kept = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    characters, number = {}, 0
    for byte in range(256):
        characters[byte] = chr(byte if byte in kept else 256 + number)
        number += byte not in kept
    return characters


def test_bytes_are_written_as_in_the_library():
    tokenizers = pytest.importorskip("tokenizers")
    assert set(byte_characters().values()) == set(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    split = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)
    for text in ("café", "naïve", "日本語", "😀", "a\x7f\xadb", "\x01"):
        ((written, _place),) = split.pre_tokenize_str(text)
        assert spell_tokens([written], usual_marks("byte-level")) == (text,)


@pytest.mark.parametrize("rule", ["", "WordPiece", None, 3])
def test_refused_rules(rule):
    with pytest.raises(VocabularyError, match='one of "wordpiece", "metaspace", "byte-level", "word-end". Received: '):
        usual_marks(rule)


@pytest.mark.parametrize(
    ("content", "marks"),
    [
        ({"model": {"type": "WordPiece", "continuing_subword_prefix": "##"}}, Marks("wordpiece", "##")),
        ({"model": {"type": "WordPiece"}}, Marks("wordpiece", "##")),
        ({"model": {"type": "WordPiece", "continuing_subword_prefix": "@@"}}, Marks("wordpiece", "@@")),
        ({"model": {"type": "WordPiece", "continuing_subword_prefix": ""}}, None),
        ({"model": {"type": "BPE", "continuing_subword_prefix": "##"}}, Marks("wordpiece", "##")),
        ({"model": {"type": "BPE", "end_of_word_suffix": "</w>"}}, Marks("word-end", "</w>")),
        (
            {"model": {"type": "BPE", "continuing_subword_prefix": "", "end_of_word_suffix": "</w>"}, "decoder": BYTES},
            Marks("word-end", "</w>", in_bytes=True),
        ),
        ({"model": {"type": "BPE"}, "pre_tokenizer": BYTES}, BYTE_LEVEL),
        ({"model": {"type": "BPE"}, "decoder": BYTES}, BYTE_LEVEL),
        (
            {"model": {"type": "BPE"}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [WHITESPACE, BYTES]}},
            BYTE_LEVEL,
        ),
        ({"model": {"type": "BPE"}, "normalizer": {"type": "Sequence", "normalizers": [SPACE_TO_MARK]}}, METASPACE),
        (
            {
                "model": {"type": "BPE"},
                "normalizer": None,
                "decoder": {"type": "Sequence", "decoders": [MARK_TO_SPACE, {"type": "Fuse"}]},
            },
            METASPACE,
        ),
        ({"model": {"type": "Unigram"}, "pre_tokenizer": {"type": "Metaspace", "replacement": "▁"}}, METASPACE),
        ({"model": {}, "pre_tokenizer": {"type": "Metaspace", "replacement": "_"}}, Marks("metaspace", "_")),
        (
            {
                "model": {"type": "Unigram"},
                "pre_tokenizer": {"type": "Sequence", "pretokenizers": [WHITESPACE, {"type": "Metaspace"}]},
            },
            METASPACE,
        ),
        ({"model": {"type": "WordLevel"}, "pre_tokenizer": WHITESPACE}, None),
        ({"model": {"type": "BPE"}, "pre_tokenizer": WHITESPACE, "decoder": None}, None),
        (
            {
                "model": {"type": "BPE"},
                "normalizer": {"type": "Replace", "pattern": {"Regex": "x"}, "content": " "},
                "decoder": {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
            },
            None,
        ),
        ({"model": {}, "normalizer": {"type": "Replace", "pattern": {"String": "\n"}, "content": " "}}, None),
    ],
)  # fmt: skip
def test_marks_of_json(content, marks):
    assert find_marks(content) == marks


def library_parts():
    from tokenizers import decoders, models, normalizers, pre_tokenizers

    yield models.WordPiece({"a": 0}, unk_token="a"), {}, Marks("wordpiece", "##")
    yield models.BPE({"a": 0}, [], continuing_subword_prefix="##"), {}, Marks("wordpiece", "##")
    yield models.BPE({"a": 0}, [], end_of_word_suffix="</w>"), {}, Marks("word-end", "</w>")
    yield models.BPE({"a": 0}, []), {"pre_tokenizer": pre_tokenizers.ByteLevel()}, BYTE_LEVEL
    yield models.BPE({"a": 0}, []), {"normalizer": normalizers.ByteLevel()}, BYTE_LEVEL
    yield models.BPE({"a": 0}, []), {"decoder": decoders.ByteLevel()}, BYTE_LEVEL
    yield models.Unigram([("a", 0.0)]), {"pre_tokenizer": pre_tokenizers.Metaspace()}, METASPACE
    yield models.Unigram([("a", 0.0)]), {"decoder": decoders.Metaspace("_")}, Marks("metaspace", "_")
    llama = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    yield models.BPE({"a": 0}, []), {"normalizer": llama}, METASPACE
    gemma = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    yield models.BPE({"a": 0}, []), {"decoder": gemma}, METASPACE
    yield models.WordLevel({"a": 0}), {"pre_tokenizer": pre_tokenizers.Whitespace()}, None


def test_marks_of_tokenizers_that_the_library_writes():
    tokenizers = pytest.importorskip("tokenizers")
    for model, parts, marks in library_parts():
        tokenizer = tokenizers.Tokenizer(model)
        for name, part in parts.items():
            setattr(tokenizer, name, part)
        assert find_marks(json.loads(tokenizer.to_str())) == marks
