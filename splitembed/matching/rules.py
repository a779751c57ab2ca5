"""What to look for where a token has no vector: the user's `fallbacks` enter; named rules and spellings leave."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from splitembed.errors import SplitError
from splitembed.matching.spellings import RULES

EXACT = "exact"  # the rule of a token that is found as it is

Spell = Callable[[str], Any]  # a token -> a spelling, several in the order of trying, or None


class Rule(NamedTuple):
    """A way to spell a token differently, and its name in reports."""

    name: str
    spell: Spell


def read_rules(fallbacks: Any) -> tuple[Rule, ...]:
    r"""Reads fallbacks: named rules, rules joined by "+", mappings and functions of the user's.

    >>> [rule.name for rule in read_rules(["lower", "lower+accents", {"colour": "color"}, str.swapcase])]
    ['lower', 'lower+accents', 'mapping', 'swapcase']
    >>> for name, token in [("title", "o'neil"), ("digits-#", "5-10"), ("hyphens", "e\u2010mail"), ("accents", "Łódź")]:
    ...     print(name, spellings_of(read_rules(name)[0], token))
    title ["O'neil", "O'Neil"]
    digits-# ['5-##', '#-##']
    hyphens ['e-mail', 'email', 'e_mail']
    accents ['Łodz']

    The rules by name; one with several spellings tries them in this order:

    - "lower", "upper": as `str.lower` and `str.upper` do.
    - "title": the first letter of the token large and the others small; then the first letter of each word.
    - "nfc", "nfkc": Unicode's normal forms (UAX #15); "nfkc" also makes wide letters plain and parts ligatures.
    - "digits-0": each ASCII digit is 0.
    - "digits-#": each digit of a run of two or more is #, as in the Google News vectors of word2vec (after
      C. Henkel, "How to: Preprocessing when using embeddings", Kaggle, 2018); then each digit.
    - "hyphens": hyphens, dashes and minus signs (U+2010 to U+2015, U+2212, U+FE58, U+FE63, U+FF0D) are "-", and soft
      hyphens go; then without the "-" between letters, or letter and digit; then with "_" there, as word2vec joins the
      words of a phrase.
    - "apostrophes": typographic apostrophes, single quotes and accents that stand for them are "'"; then U+2019.
    - "accents": the marks U+0300 to U+036F go from letters that Unicode takes apart into letter and mark. So "ø", "ł"
      and "ß" stay, and so do the signs of other scripts that make another letter, such as "が".
    - names joined by "+": one after the other, from left to right, such as "lower+accents".

    Args:
        fallbacks: rules, in the order of trying: names; mappings token -> spelling; callables token -> spelling; or
            pairs (name, mapping or callable). In place of a spelling there may be several, or None for none.

    Returns:
        The rules with distinct names: a mapping is "mapping", a callable goes by its `__name__`; names that come again
        are numbered.

    Raises:
        SplitError: an unknown name, a name given twice, or what is no rule.
    """
    if isinstance(fallbacks, (str, Mapping)) or callable(fallbacks):
        fallbacks = (fallbacks,)
    if not isinstance(fallbacks, Iterable) or isinstance(fallbacks, (bytes, set, frozenset)):  # a set has no order
        raise _no_rule(fallbacks)
    rules: list[Rule] = []
    for fallback in fallbacks:
        rule = _read_rule(fallback)
        taken = {EXACT, *(each.name for each in rules)}
        if isinstance(fallback, str) and rule.name in taken:
            raise SplitError(f"`fallbacks` names {fallback!r} twice: leave one out.")
        rules.append(rule._replace(name=_free_name(rule.name, taken)))
    return tuple(rules)


def _read_rule(fallback: Any) -> Rule:
    if isinstance(fallback, str):
        steps = [_named(name, fallback) for name in fallback.split("+")]
        return Rule(fallback, steps[0] if len(steps) == 1 else _joined(steps))
    if isinstance(fallback, tuple) and len(fallback) == 2 and isinstance(fallback[0], str):
        name, rule = fallback
        if isinstance(rule, Mapping) or callable(rule):
            return _read_rule(rule)._replace(name=name)
    if isinstance(fallback, Mapping):
        return Rule("mapping", fallback.get)
    if callable(fallback):
        return Rule(getattr(fallback, "__name__", type(fallback).__name__), fallback)
    raise _no_rule(fallback)


def _named(name: str, whole: str) -> Spell:
    if name not in RULES:
        among = "" if name == whole else f" in {whole!r}"
        raise SplitError(
            f"{name!r}{among} is no rule; expected one of {', '.join(RULES)}, names joined by '+', a mapping or a "
            "callable."
        )
    return RULES[name]


def _no_rule(fallback: Any) -> SplitError:
    return SplitError(
        "`fallbacks` must hold, in the order of trying, names of rules, mappings, callables, or pairs of a name and "
        f"one of these. Received: {fallback!r} (of type {type(fallback).__name__})."
    )


def _free_name(name: str, taken: set[str]) -> str:
    numbered = (name if number == 1 else f"{name} ({number})" for number in range(1, len(taken) + 2))
    return next(each for each in numbered if each not in taken)


def _joined(steps: list[Spell]) -> Spell:
    """One rule after the other."""

    def spell(token: str) -> Any:
        spelled: Any = token
        for step in steps:
            if type(spelled) is str:
                spelled = step(spelled)
            else:
                spelled = [after for before in spelled for after in _listed(step(before))]
        return spelled

    return spell


def spellings_of(rule: Rule, token: str) -> list[str]:
    """Spells a token by a rule: what is another spelling, and not empty, in the order of trying.

    >>> spellings_of(Rule("mine", {"colour": ["color", ""]}.get), "colour")
    ['color']

    Raises:
        SplitError: the rule fails, or gives what is no string; by rule and token.
    """
    return spell_all(rule, [token])[1]


def spell_all(rule: Rule, tokens: Sequence[str]) -> tuple[list[int], list[str]]:
    """Spells many tokens by a rule, and leaves out what is no other spelling.

    >>> spell_all(read_rules("lower")[0], ["The", "of", "USR"])
    ([0, 2], ['the', 'usr'])

    Returns:
        The places of the tokens that the rule spells differently, ascending, and the spellings: `spellings[i]` is for
        `tokens[places[i]]`; those of one token come in the order of trying.

    Raises:
        SplitError: the rule fails, or gives what is no string; by rule and token.
    """
    spelled = _spell(rule, tokens)
    places: list[int] = []
    spellings: list[str] = []
    for place in [place for place, (new, token) in enumerate(zip(spelled, tokens, strict=True)) if new is not token]:
        others = _others(rule, tokens[place], spelled[place])
        places += [place] * len(others)
        spellings += others
    return places, spellings


def _spell(rule: Rule, tokens: Sequence[str]) -> list[Any]:
    """What the rule gives; of a plain string that is the token, the token itself."""
    spelled: list[Any] = []
    try:
        for token in tokens:
            new = rule.spell(token)
            spelled.append(token if type(new) is str and new == token else new)
    except Exception as error:  # whatever the user's function raises
        raise _failure(rule, tokens[len(spelled)], error) from error
    return spelled


def _others(rule: Rule, token: str, spelled: Any) -> list[str]:
    try:
        listed = _listed(spelled)
    except Exception as error:  # a generator's
        raise _failure(rule, token, error) from error
    for each in listed:
        if not isinstance(each, str):
            raise SplitError(
                f"The fallback {rule.name!r} gave {each!r} (of type {type(each).__name__}) for the token {token!r}; "
                "expected a str, several of them in a list, or None."
            )
    return [each for each in listed if each and each != token]


def _failure(rule: Rule, token: str, error: Exception) -> SplitError:
    return SplitError(f"The fallback {rule.name!r} failed on the token {token!r}: {type(error).__name__}: {error}")


def _listed(spelled: Any) -> Sequence[Any]:
    if isinstance(spelled, str):
        return (spelled,)
    if spelled is None:
        return ()
    is_list = isinstance(spelled, Iterable) and not isinstance(spelled, (bytes, Mapping, set, frozenset))
    return list(spelled) if is_list else (spelled,)  # a set has no order: it is refused as what is no string
