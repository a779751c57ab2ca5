"""Matching: exact words before fallbacks, fallbacks in order, independent tokens, one pass over a file."""

import dataclasses
import os
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import SplitError
from splitembed.matching.match import find_candidates
from splitembed.matching.rules import read_rules, spellings_of
from splitembed.vectors import iter_vectors, read_vectors
from splitembed.vocabulary import read_vocabulary


def match(tokens, words, fallbacks=()):
    """Return a dict token -> (matched word, rule)."""
    found = find_candidates(read_vocabulary(tokens), fallbacks).match(words)
    return {
        token: (words[row], found.rules[rule])
        for token, row, rule in zip(tokens, found.rows.tolist(), found.rule.tolist(), strict=True)
        if row >= 0
    }


def test_C3_match_i_belongs_to_token_i_and_reserved_ids_have_none():
    vocabulary = read_vocabulary(["", "[UNK]", "b", "a"])
    words = ["a", "", "[UNK]", "b", "unk"]
    for fallbacks in ((), ["lower"], [lambda token: "unk"]):
        found = find_candidates(vocabulary, fallbacks).match(words)
        assert found.rows.tolist() == [-1, -1, 3, 0]
        assert found.rule.tolist() == [-1, -1, 0, 0]
        assert find_candidates(vocabulary, fallbacks).words.isdisjoint({"", "[UNK]"})


def test_Y2_exact_words_come_first_and_case_only_by_a_fallback():
    assert match(["The"], ["the"]) == {}
    assert match(["The"], ["the"], ["lower"]) == {"The": ("the", "lower")}
    assert match(["The"], ["the", "The"], ["lower"]) == {"The": ("The", "exact")}
    both = match(["The", "the"], ["the"], ["lower"])
    assert both == {"The": ("the", "lower"), "the": ("the", "exact")}


def test_Y4_the_unknown_word_matches_only_by_a_fallback():
    unknown = ("unknown", lambda token: "<unk>")
    assert match(["zzz"], ["unk", "<unk>"]) == {}
    assert match(["zzz"], ["unk", "<unk>"], ["lower", "accents"]) == {}
    assert match(["zzz"], ["unk", "<unk>"], [unknown]) == {"zzz": ("<unk>", "unknown")}
    assert match(["zzz"], ["unk"], [unknown]) == {}


def test_fallbacks_are_tried_in_the_order_given():
    words = ["CAFÉ", "cafe", "café"]
    assert match(["Café"], words, ["lower", "upper"]) == {"Café": ("café", "lower")}
    assert match(["Café"], words, ["upper", "lower"]) == {"Café": ("CAFÉ", "upper")}
    assert match(["Café"], words, ["lower+accents", "lower"]) == {"Café": ("cafe", "lower+accents")}


def test_spellings_of_one_rule_are_tried_in_order():
    colours = {"colour": ["color", "hue"], "color": ["hue"]}
    assert match(["colour"], ["hue", "color"], [colours]) == {"colour": ("color", "mapping")}
    assert match(["colour"], ["hue"], [colours]) == {"colour": ("hue", "mapping")}


def test_the_first_of_duplicate_words_matches():
    found = find_candidates(read_vocabulary(["The", "b"]), ["lower"]).match(["a", "the", "b", "the", "b"])
    assert found.rows.tolist() == [1, 2]


def test_duplicate_tokens_match_the_same_word(tmp_path):
    (tmp_path / "vocabulary.txt").write_text("A\n\nb\nA\n")
    vocabulary = read_vocabulary(tmp_path / "vocabulary.txt", keep_lines=True)
    assert find_candidates(vocabulary, ["lower"]).match(["a"]).rows.tolist() == [0, -1, -1, 0]


def test_a_match_has_fixed_dtypes_and_masks():
    found = find_candidates(read_vocabulary(["The", "of", "zzz"]), ["lower", {"zzz": "zz"}]).match(["the", "of"])
    assert (found.rows.dtype, found.rule.dtype) == (np.int64, np.int16)
    assert (found.rules, found.num_fallbacks) == (("exact", "lower", "mapping"), 2)
    assert found.is_matched.tolist() == [True, True, False]
    assert found.is_fallback.tolist() == [True, False, False]


def test_the_empty_word_matches_only_the_empty_token():
    assert match(["a", "\u0301", ""], ["", "a"], ["accents", lambda token: ""]) == {
        "a": ("a", "exact"),
        "": ("", "exact"),
    }


def test_reserved_ids_have_no_candidates():
    candidates = find_candidates(read_vocabulary(["", "[UNK]"]), ["lower"])
    assert candidates.words == frozenset()
    assert not candidates.match(["a"]).is_matched.any()


def test_without_words_nothing_matches():
    assert find_candidates(read_vocabulary(["a"]), ["upper"]).match([]).rows.tolist() == [-1]


def test_a_failing_fallback_is_found_before_reading():
    with pytest.raises(SplitError, match="'mine' failed on the token 'b'"):
        find_candidates(read_vocabulary(["a", "b"]), [("mine", {"a": "A"}.__getitem__)])


# Tokens of tokenizers


def tokenizer(spellings, marks="byte-level"):
    vocabulary = read_vocabulary(["[UNK]", "the", "Ġof", "Ġ", "ing", "ĠTHE"])
    return dataclasses.replace(vocabulary, spellings=spellings, marks=marks)


SPELLINGS = (None, "the", "of", "", None, "THE")


def test_spellings_are_matched_in_place_of_the_tokens():
    words = ["Ġof", "of", "the", "ing", "Ġ", ""]
    found = find_candidates(tokenizer(SPELLINGS)).match(words)
    assert found.rows.tolist() == [-1, 2, 1, -1, -1, -1]
    assert [found.rules[rule] for rule in found.rule if rule >= 0] == ["exact", "byte-level"]
    assert (found.rules, found.is_fallback.any()) == (("exact", "byte-level"), False)


def test_fallbacks_change_the_spelling_and_continuations_never_match():
    everything = [("everything", lambda name: {"THE": "the", "ing": "ing", "": "ing"}.get(name, "ing"))]
    found = find_candidates(tokenizer(SPELLINGS), everything).match(["the", "ing"])
    assert found.rows.tolist() == [-1, 0, 1, -1, -1, 0]
    assert [found.rules[rule] for rule in found.rule if rule >= 0] == ["exact", "everything", "everything"]
    assert found.is_fallback.tolist() == [False, False, True, False, False, True]


def test_wordpiece_tokens_match_as_words_and_continuations_never_match():
    vocabulary = read_vocabulary(["[UNK]", "Play", "##ing", "ing"], marks="wordpiece")
    found = find_candidates(vocabulary, ["lower"]).match(["ing", "##ing", "play"])
    assert found.rows.tolist() == [-1, 2, -1, 0]
    assert [found.rules[rule] for rule in found.rule if rule >= 0] == ["lower", "exact"]


def test_spellings_of_an_unnamed_rule():
    found = find_candidates(tokenizer(SPELLINGS, None)).match(["of"])
    assert found.rules[found.rule[2]] == "spelling"


# Independence of tokens


TOKENS = st.text(st.sampled_from("aAbé1-"), min_size=1, max_size=3)
RULE_NAMES = ["lower", "upper", "title", "accents", "digits-0", "hyphens", "lower+accents"]
FALLBACKS = st.lists(st.sampled_from(RULE_NAMES), unique=True, max_size=4)


@given(st.lists(TOKENS, unique=True, min_size=1, max_size=8), st.lists(TOKENS, max_size=8), FALLBACKS, st.randoms())
def test_a_match_does_not_depend_on_other_tokens(tokens, words, fallbacks, random):
    together = match(tokens, words, fallbacks)
    for token in tokens:
        assert match([token], words, fallbacks).get(token) == together.get(token)
    shuffled = random.sample(tokens, len(tokens))
    assert match(shuffled, words, fallbacks) == together
    some = random.sample(tokens, random.randint(1, len(tokens)))
    assert match(some, words, fallbacks) == {token: together[token] for token in some if token in together}


@given(st.lists(TOKENS, unique=True, min_size=1, max_size=8), st.lists(TOKENS, max_size=8), FALLBACKS)
def test_matches_equal_those_of_a_plain_search(tokens, words, fallbacks):
    rules = read_rules(fallbacks)
    expected = {}
    for token in tokens:
        tried = [(token, "exact"), *((each, rule.name) for rule in rules for each in spellings_of(rule, token))]
        hits = [(spelling, name) for spelling, name in tried if spelling in words]
        if hits:
            expected[token] = hits[0]
    assert match(tokens, words, fallbacks) == expected


# One pass over a file


TEXT = "the 1 2\ncafe 3 4\nusr 5 6\nunheard 7 8\n" + "".join(f"w{number} 0 1\n" for number in range(5000))


def test_all_candidates_are_found_in_one_pass(tmp_path):
    pipe = tmp_path / "vectors.txt"
    # A pipe can be read only once.
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(TEXT,))
    writer.start()
    candidates = find_candidates(read_vocabulary(["The", "CAFÉ", "Usr", "zzz"]), ["lower", "lower+accents"])
    vectors = read_vectors(pipe, candidates.words)
    writer.join()
    assert list(vectors.words) == ["the", "cafe", "usr"]
    found = candidates.match(vectors.words)
    assert found.rows.tolist() == [0, 1, 2, -1]
    assert [found.rules[rule] for rule in found.rule[:3]] == ["lower", "lower+accents", "lower"]
    np.testing.assert_array_equal(vectors.take(found.rows[:3]), [[1, 2], [3, 4], [5, 6]])


def test_reading_only_the_candidates_gives_the_match_of_the_whole_file(tmp_path):
    (tmp_path / "vectors.txt").write_text(TEXT)
    tokens = read_vocabulary(["The", "CAFÉ", "W12", "zzz", "w4999"])
    candidates = find_candidates(tokens, ["lower", "lower+accents"])
    some = [word for block in iter_vectors(tmp_path / "vectors.txt", candidates.words) for word in block.words]
    every = [word for block in iter_vectors(tmp_path / "vectors.txt") for word in block.words]
    few, many = candidates.match(some), candidates.match(every)
    np.testing.assert_array_equal(few.rule, many.rule)
    assert [some[row] for row in few.rows if row >= 0] == [every[row] for row in many.rows if row >= 0]
