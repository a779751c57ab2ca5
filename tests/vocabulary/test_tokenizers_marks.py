"""The rule of marks is found from the JSON of a tokenizer, whichever component says it."""

import json

import pytest

from splitembed.vocabulary.marks import Marks
from splitembed.vocabulary.tokenizers_marks import find_marks

SPACE_TO_MARK = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
MARK_TO_SPACE = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
METASPACE, BYTE_LEVEL, BYTES = Marks("metaspace", "▁"), Marks("byte-level", "Ġ", True), {"type": "ByteLevel"}
WHITESPACE = {"type": "Whitespace"}


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


def test_marks_of_what_the_library_writes():
    tokenizers = pytest.importorskip("tokenizers")
    for model, parts, marks in library_parts():
        tokenizer = tokenizers.Tokenizer(model)
        for name, part in parts.items():
            setattr(tokenizer, name, part)
        assert find_marks(json.loads(tokenizer.to_str())) == marks
