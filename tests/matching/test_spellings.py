"""The named rules, by example and compared with `unicodedata`."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.matching.spellings import RULES


def listed(spelled):
    return [spelled] if isinstance(spelled, str) else list(spelled)


def other_spellings(name, token):
    """Return the distinct spellings other than the token, in order."""
    return list(dict.fromkeys(each for each in listed(RULES[name](token)) if each != token))


@pytest.mark.parametrize(
    ("name", "token", "spellings"),
    [
        # The final sigma of `str.lower`.
        ("lower", "ΟΔΟΣ", ["οδος"]),
        ("upper", "straße", ["STRASSE"]),
        ("title", "london", ["London"]),
        ("title", "don't", ["Don't", "Don'T"]),
        ("title", "o'neil", ["O'neil", "O'Neil"]),
        ("title", "new_york", ["New_york", "New_York"]),
        ("title", "ǆ", ["ǅ"]),
        ("nfkc", "ﬁsh", ["fish"]),
        ("digits-0", "b2b-1999", ["b0b-0000"]),
        ("digits-#", "1999", ["####"]),
        ("digits-#", "1.5", ["#.#"]),
        ("digits-#", "g8 of 20", ["g8 of ##", "g# of ##"]),
        ("hyphens", "e\u2010mail", ["e-mail", "email", "e_mail"]),
        ("hyphens", "e-mail", ["email", "e_mail"]),
        ("hyphens", "covid\u201119", ["covid-19", "covid19", "covid_19"]),
        ("hyphens", "3\u20132", ["3-2"]),
        ("hyphens", "\u22125", ["-5"]),
        ("hyphens", "co\u00adoperate", ["cooperate"]),
        ("hyphens", "\u2014", ["-"]),
        ("spaces", "new york", ["new_york", "new-york", "newyork"]),
        ("spaces", "a b  c", ["a_b_c", "a-b-c", "abc"]),
        ("spaces", " new york ", [" new_york ", " new-york ", " newyork "]),
        ("apostrophes", "don\u2019t", ["don't"]),
        ("apostrophes", "don't", ["don\u2019t"]),
        ("apostrophes", "don`t", ["don't", "don\u2019t"]),
        ("apostrophes", "O\u02bcBrien", ["O'Brien", "O\u2019Brien"]),
        ("accents", "café", ["cafe"]),
        ("accents", "cafe\u0301", ["cafe"]),
        ("accents", "Łódź", ["Łodz"]),
        ("accents", "ёлка", ["елка"]),
    ],
)
def test_a_rule_changes_the_spelling(name, token, spellings):
    assert other_spellings(name, token) == spellings


@pytest.mark.parametrize(
    ("name", "token"),
    [
        # An Arabic digit.
        ("digits-0", "\u0663"),
        ("digits-#", "abc"),
        ("hyphens", "-5"),
        ("hyphens", "5-10"),
        ("hyphens", "snake_case"),
        ("spaces", " york"),
        ("spaces", "new\u00a0york"),
        ("apostrophes", 'say "no"'),
        ("accents", "straße"),
        ("accents", "が"),
        ("title", "Paris"),
    ],
)
def test_a_rule_keeps_the_token(name, token):
    assert other_spellings(name, token) == []


@given(st.text(max_size=12))
def test_rules_agree_with_the_standard_library(token):
    assert RULES["lower"](token) == token.lower()
    assert RULES["upper"](token) == token.upper()
    assert RULES["nfc"](token) == unicodedata.normalize("NFC", token)
    assert RULES["nfkc"](token) == unicodedata.normalize("NFKC", token)
    assert listed(RULES["title"](token))[0] == token.capitalize()
    assert listed(RULES["title"](token))[-1] == token.title()


@given(st.text(st.characters(max_codepoint=0x24F), max_size=8))
def test_accents_are_the_combining_marks_of_the_decomposed_text(token):
    kept = [each for each in unicodedata.normalize("NFD", token) if not "\u0300" <= each <= "\u036f"]
    assert RULES["accents"](token) == unicodedata.normalize("NFC", "".join(kept))


@given(st.text(st.sampled_from("0123456789.,ab\u0663"), max_size=10))
def test_digit_rules_change_only_digits(token):
    for name, sign in (("digits-0", "0"), ("digits-#", "#")):
        last = listed(RULES[name](token))[-1]
        assert last == "".join(sign if each in "0123456789" else each for each in token)


@given(st.sampled_from(sorted(RULES)), st.text(max_size=10))
def test_a_rule_returns_strings_for_any_token(name, token):
    assert all(type(each) is str for each in listed(RULES[name](token)))
    assert listed(RULES[name](token))
