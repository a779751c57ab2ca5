"""Fallbacks: names, joined names, mappings, callables, and refused values."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.errors import SplitError
from splitembed.matching.rules import Rule, read_rules, spell_all, spellings_of
from splitembed.matching.spellings import RULES


def spell(fallback, token):
    (rule,) = read_rules([fallback])
    return spellings_of(rule, token)


def double(token):
    return token * 2


class Speller:
    def __call__(self, token):
        return None


def test_every_rule_is_read_by_its_name():
    assert [rule.name for rule in read_rules(list(RULES))] == list(RULES)


def test_rules_are_joined_from_left_to_right():
    assert spell("lower+accents", "CAFÉ") == ["cafe"]
    assert spell("accents+lower", "CAFÉ") == ["cafe"]
    assert spell("upper+lower", "Usr") == ["usr"]
    assert spell("lower+upper", "Usr") == ["USR"]


def test_joined_rules_try_all_spellings_and_keep_unchanged_tokens():
    assert spell("lower+hyphens", "E-Mail") == ["e-mail", "email", "e_mail"]
    assert spell("hyphens+title", "e-mail") == ["E-mail", "E-Mail", "Email", "E_mail", "E_Mail"]
    assert spell("lower+accents", "Cafe") == ["cafe"]
    assert spell("lower+accents", "cafe") == []


def test_a_prefix_is_put_before_the_token():
    assert spell("prefix:/c/en/", "York") == ["/c/en/York"]
    assert spell("lower+prefix:/c/en/", "York") == ["/c/en/york"]
    assert spell("prefix:/c/en/+lower", "York") == ["/c/en/york"]
    assert spell("prefix:a:b", "c") == ["a:bc"]
    spellings = ["/c/en/New_York", "/c/en/New-York", "/c/en/NewYork"]
    assert spell("spaces+prefix:/c/en/", "New York") == spellings
    # Words without spaces get the prefix, too.
    assert spell("spaces+prefix:/c/en/", "york") == ["/c/en/york"]


@pytest.mark.parametrize("name", ["prefix", "prefix:", "prefix:a+b", "lower:a"])
def test_a_prefix_that_cannot_be_read_is_refused(name):
    with pytest.raises(
        SplitError, match=r"must hold known rules\. Received: .* Expected one of .*spaces.*prefix:TEXT, names"
    ):
        read_rules(name)


@pytest.mark.parametrize("fallback", ["lower", {"USR": "usr"}, str.lower])
def test_a_single_fallback_needs_no_list(fallback):
    assert read_rules(fallback)[0].spell("USR") == "usr"
    assert len(read_rules(fallback)) == 1


def test_rules_have_distinct_names():
    fallbacks = [double, {}, {}, lambda token: None, ("mine", {}), ("mine", double), Speller(), {"exact": "e"}.get]
    names = [rule.name for rule in read_rules(fallbacks)]
    assert names == ["double", "mapping", "mapping (2)", "<lambda>", "mine", "mine (2)", "Speller", "get"]
    # "exact" is the rule of tokens that equal a word.
    assert read_rules([("exact", {})])[0].name == "exact (2)"


@pytest.mark.parametrize(
    ("given", "spellings"),
    [
        ("usr", []),
        ("", []),
        (None, []),
        ([], []),
        ("user", ["user"]),
        (np.str_("user"), ["user"]),
        (["user", "usr", "", "users"], ["user", "users"]),
        (iter(("user", "users")), ["user", "users"]),
        (np.array(["user"]), ["user"]),
    ],
)
def test_a_rule_returns_one_spelling_several_or_none(given, spellings):
    assert spellings_of(Rule("mine", lambda token: given), "usr") == spellings


def test_a_mapping_is_not_changed():
    from collections import defaultdict

    mapping = defaultdict(list, {"colour": ["color", "hue"]})
    assert (spell(mapping, "colour"), spell(mapping, "usr")) == (["color", "hue"], [])
    assert len(mapping) == 1


@given(st.lists(st.text(max_size=6), max_size=8), st.sampled_from([*RULES, "lower+hyphens", "hyphens+title"]))
def test_many_tokens_are_spelled_like_each_alone(tokens, name):
    (rule,) = read_rules(name)
    positions, spellings = spell_all(rule, tokens)
    alone = [(index, each) for index, token in enumerate(tokens) for each in spellings_of(rule, token)]
    assert list(zip(positions, spellings, strict=True)) == alone


def fails(token):
    return {"the": "The"}[token]


def fails_late(token):
    yield "The"
    raise RuntimeError(f"no more of {token}")


@pytest.mark.parametrize(
    ("fallback", "message"),
    [
        (fails, "The fallback 'fails' failed on the token 'usr': KeyError: 'usr'"),
        (fails_late, "The fallback 'fails_late' failed on the token 'the': RuntimeError: no more of the"),
        (
            {"usr": 3},
            "The fallback 'mapping' returned 3 (of type int) for the token 'usr'. Expected a str,",
        ),
        ({"usr": b"user"}, "returned b'user' (of type bytes) for the token 'usr'"),
        ({"usr": ["user", None]}, "returned None (of type NoneType) for the token 'usr'"),
        ({"usr": {"user"}}, "returned {'user'} (of type set) for the token 'usr'"),
        (("mine", lambda token: 0.5), "The fallback 'mine' returned 0.5 (of type float) for the token 'the'"),
    ],
)
def test_a_failing_rule_is_named_with_the_token(fallback, message):
    (rule,) = read_rules([fallback])
    with pytest.raises(SplitError, match=re.escape(message)):
        spell_all(rule, ["the", "usr"])


@pytest.mark.parametrize(
    ("fallbacks", "message"),
    [
        (["lowercase"], "Received: 'lowercase'. Expected one of lower, title, upper, nfc, nfkc, digits-0, digits-#, "),
        (["lower+accent"], "Received: 'accent' in 'lower+accent'. Expected one of"),
        (["lower+"], "Received: '' in 'lower+'."),
        (["lower", "lower"], "`fallbacks` must name each rule once. Received: 'lower' twice."),
        ([3], "`fallbacks` must be an ordered list of names of rules, mappings, callables, or pairs"),
        ([("lower", "accents")], "Received: ('lower', 'accents') (of type tuple)."),
        (3, "Received: 3 (of type int)."),
        ([None], "Received: None (of type NoneType)."),
    ],
)
def test_invalid_fallbacks_are_refused(fallbacks, message):
    with pytest.raises(SplitError, match=re.escape(message)):
        read_rules(fallbacks)


def test_fallbacks_without_an_order_are_refused():
    for fallbacks in ({"lower", "upper"}, frozenset(["lower"]), b"lower"):
        with pytest.raises(SplitError, match="must be an ordered list of names of rules"):
            read_rules(fallbacks)
