"""Rules that spell a token differently, read from the user's `fallbacks`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from splitembed.errors import SplitError
from splitembed.matching.spellings import RULES, with_prefix

# The rule of a token that equals a word.
EXACT = "exact"
# The name of the rule with a parameter.
PREFIX = "prefix"

# Returns a spelling, several in the order in which they are tried, or None.
Spell = Callable[[str], Any]

# Iterables that are not lists of rules or spellings.
_UNORDERED = (bytes, set, frozenset)


class Rule(NamedTuple):
    """A function that spells a token differently, and its name in reports."""

    name: str
    spell: Spell


def read_rules(fallbacks: Any) -> tuple[Rule, ...]:
    r"""Read fallbacks: named rules, rules joined by "+", mappings and callables.

    >>> [rule.name for rule in read_rules(["lower", "lower+accents", {"colour": "color"}, str.swapcase])]
    ['lower', 'lower+accents', 'mapping', 'swapcase']
    >>> for name, token in [("title", "o'neil"), ("digits-#", "5-10"), ("hyphens", "e\u2010mail"), ("accents", "Łódź"),
    ...                     ("spaces", "new york"), ("lower+prefix:/c/en/", "York")]:
    ...     print(name, spellings_of(read_rules(name)[0], token))
    title ["O'neil", "O'Neil"]
    digits-# ['5-##', '#-##']
    hyphens ['e-mail', 'email', 'e_mail']
    accents ['Łodz']
    spaces ['new_york', 'new-york', 'newyork']
    lower+prefix:/c/en/ ['/c/en/york']

    The named rules; a rule with several spellings tries them in this order:

    - "lower", "upper": `str.lower` and `str.upper`.
    - "title": capitalize the first letter of the token and lower the others; then capitalize each word.
    - "nfc", "nfkc": Unicode normalization forms (UAX #15); "nfkc" also replaces full-width letters and ligatures.
    - "digits-0": replace each ASCII digit by 0.
    - "digits-#": replace each digit in runs of two or more by #, as in the Google News vectors of word2vec (after
      C. Henkel, "How to: Preprocessing when using embeddings", Kaggle, 2018); then replace each digit.
    - "hyphens": replace hyphens, dashes and minus signs (U+2010 to U+2015, U+2212, U+FE58, U+FE63, U+FF0D) by "-", and
      remove soft hyphens; then also remove the "-" between letters, or letter and digit; then replace it by "_", with
      which word2vec joins the words of a phrase.
    - "spaces": replace the spaces between words by "_", as word2vec and ConceptNet Numberbatch join the words of a
      phrase; then by "-"; then remove them.
    - "prefix:TEXT": put TEXT, which cannot hold "+", before the token, such as "prefix:/c/en/" for Numberbatch. As it
      changes every token, it is usually joined to others: "lower+spaces+prefix:/c/en/".
    - "apostrophes": replace typographic apostrophes, single quotes and accents used as apostrophes by "'"; then by
      U+2019.
    - "accents": remove the combining marks U+0300 to U+036F of letters that Unicode decomposes into letter and mark.
      This keeps "ø", "ł" and "ß", and marks of other scripts that make another letter, such as in "が".
    - names joined by "+": apply the rules from left to right, such as "lower+accents".

    Args:
        fallbacks: rules in the order in which they are tried: names; mappings token -> spelling; callables
            token -> spelling; or pairs (name, mapping or callable). A mapping or callable may also return several
            spellings, or None.

    Returns:
        The rules with distinct names: a mapping is named "mapping", a callable by its `__name__`; duplicate names are
        numbered.

    Raises:
        SplitError: a rule is invalid, its name is unknown, or it is named twice.
    """
    if isinstance(fallbacks, (str, Mapping)) or callable(fallbacks):
        fallbacks = (fallbacks,)
    if not isinstance(fallbacks, Iterable) or isinstance(fallbacks, _UNORDERED):
        raise _invalid_rule(fallbacks)
    rules: list[Rule] = []
    for fallback in fallbacks:
        rule = _read_rule(fallback)
        taken = {EXACT, *(each.name for each in rules)}
        if isinstance(fallback, str) and rule.name in taken:
            raise SplitError(f"`fallbacks` must name each rule once. Received: {fallback!r} twice.")
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
    raise _invalid_rule(fallback)


def _named(name: str, whole: str) -> Spell:
    kind, _, prefix = name.partition(":")
    if kind == PREFIX and prefix:
        return with_prefix(prefix)
    if name not in RULES:
        among = "" if name == whole else f" in {whole!r}"
        raise SplitError(
            f"`fallbacks` must hold known rules. Received: {name!r}{among}. Expected one of {', '.join(RULES)}, "
            f"{PREFIX}:TEXT, names joined by '+', a mapping or a callable."
        )
    return RULES[name]


def _invalid_rule(fallback: Any) -> SplitError:
    return SplitError(
        "`fallbacks` must be an ordered list of names of rules, mappings, callables, or pairs of a name and a mapping "
        f"or callable. Received: {fallback!r} (of type {type(fallback).__name__})."
    )


def _free_name(name: str, taken: set[str]) -> str:
    numbered = (name if number == 1 else f"{name} ({number})" for number in range(1, len(taken) + 2))
    return next(each for each in numbered if each not in taken)


def _joined(steps: list[Spell]) -> Spell:
    """Return a function that applies the rules one after the other."""

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
    """Return the other spellings of a token by a rule, in the order in which they are tried.

    >>> spellings_of(Rule("mine", {"colour": ["color", ""]}.get), "colour")
    ['color']

    Raises:
        SplitError: the rule fails on a token, or returns something other than strings.
    """
    return spell_all(rule, [token])[1]


def spell_all(rule: Rule, tokens: Sequence[str]) -> tuple[list[int], list[str]]:
    """Return the spellings of many tokens by a rule, without empty ones and the tokens themselves.

    >>> spell_all(read_rules("lower")[0], ["The", "of", "USR"])
    ([0, 2], ['the', 'usr'])

    Returns:
        The positions of the tokens that the rule spells differently, ascending, and the spellings: `spellings[i]`
        belongs to `tokens[positions[i]]`; spellings of one token are in the order in which they are tried.

    Raises:
        SplitError: the rule fails on a token, or returns something other than strings.
    """
    spelled = _spell(rule, tokens)
    positions: list[int] = []
    spellings: list[str] = []
    for position in [at for at, (new, token) in enumerate(zip(spelled, tokens, strict=True)) if new is not token]:
        others = _other_spellings(rule, tokens[position], spelled[position])
        positions += [position] * len(others)
        spellings += others
    return positions, spellings


def _spell(rule: Rule, tokens: Sequence[str]) -> list[Any]:
    """Return the results of the rule; for an unchanged token the same object."""
    spelled: list[Any] = []
    try:
        for token in tokens:
            new = rule.spell(token)
            spelled.append(token if type(new) is str and new == token else new)
    # A user's function can raise anything.
    except Exception as error:
        raise _failure(rule, tokens[len(spelled)], error) from error
    return spelled


def _other_spellings(rule: Rule, token: str, spelled: Any) -> list[str]:
    try:
        listed = _listed(spelled)
    # A user's generator raises only here.
    except Exception as error:
        raise _failure(rule, token, error) from error
    for each in listed:
        if not isinstance(each, str):
            raise SplitError(
                f"The fallback {rule.name!r} returned {each!r} (of type {type(each).__name__}) for the token "
                f"{token!r}. Expected a str, a list of str, or None."
            )
    return [each for each in listed if each and each != token]


def _failure(rule: Rule, token: str, error: Exception) -> SplitError:
    return SplitError(f"The fallback {rule.name!r} failed on the token {token!r}: {type(error).__name__}: {error}")


def _listed(spelled: Any) -> Sequence[Any]:
    if isinstance(spelled, str):
        return (spelled,)
    if spelled is None:
        return ()
    is_list = isinstance(spelled, Iterable) and not isinstance(spelled, (*_UNORDERED, Mapping))
    # Anything else, a set too, is refused later because it is not a string.
    return list(spelled) if is_list else (spelled,)
