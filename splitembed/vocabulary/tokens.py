"""Tokens in id order: what each kind of source gives, `SourceTokens`, and the checks that all kinds share."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from splitembed.errors import VocabularyError
from splitembed.words import encode_word

_MOST_IDS = 2**31 - 1  # what a split's int32 `remap` can tell apart
UNKNOWN_TOKEN = "[UNK]"  # what Keras's lookup layers call their out-of-vocabulary slot


class SourceTokens(NamedTuple):
    """What a source says: its tokens, what "auto" means in it, and the ids that are reserved in any case.

    Args:
        tokens: the tokens in id order.
        padding, unknown: what "auto" stands for.
        slots: ids that are reserved whatever the user chooses.
        spellings: what tokens are called in files of vectors, by the source's own marks.
        marks: the rule of these marks.
        literals: ids of tokens without marks, whatever the rule.
        has_strings: False where ids have no strings.
        doubt: why "auto" cannot tell the padding; None where it can.
    """

    tokens: tuple[str, ...]
    padding: int | None = None
    unknown: int | None = None
    slots: frozenset[int] = frozenset()
    spellings: tuple[str | None, ...] | None = None
    marks: str | None = None
    literals: frozenset[int] = frozenset()
    has_strings: bool = True
    doubt: str | None = None


def with_defaults(
    tokens: tuple[str, ...],
    padding: int | None = None,
    unknown: int | None = None,
    slots: frozenset[int] = frozenset(),
) -> SourceTokens:
    """Fills in what "auto" means where the source itself says nothing: "" in front is padding, "[UNK]" is unknown.

    >>> with_defaults(("", "[UNK]", "sky"))[:3]
    (('', '[UNK]', 'sky'), 0, 1)

    Raises:
        VocabularyError: there are no tokens.
    """
    if not tokens:
        raise VocabularyError("The vocabulary is empty: at least one token is needed.")
    if padding is None and tokens[0] == "":
        padding = 0
    if unknown is None and UNKNOWN_TOKEN in tokens:
        unknown = tokens.index(UNKNOWN_TOKEN)
    return SourceTokens(tokens, padding, unknown, slots)


def as_text(tokens: Sequence[Any]) -> tuple[str, ...]:
    """Returns the tokens as plain `str`.

    >>> as_text(["sky", 7])
    Traceback (most recent call last):
    splitembed.errors.VocabularyError: Tokens must be str. Received: 7 of type int at place 1; for ids without strings
    pass their number, such as read_vocabulary(1000).

    Raises:
        VocabularyError: a token is no text.
    """
    kinds = set(map(type, tokens))
    if kinds <= {str}:
        return tuple(tokens)
    if all(issubclass(kind, str) for kind in kinds):
        return tuple(map(str.__str__, tokens))  # np.str_, and enumerations of str: the text alone
    place = next(place for place, token in enumerate(tokens) if not isinstance(token, str))
    token, hint = tokens[place], "for ids without strings pass their number, such as read_vocabulary(1000)"
    if isinstance(token, bytes):
        hint = "decode it"
    raise VocabularyError(
        f"Tokens must be str. Received: {token!r} of type {type(token).__name__} at place {place}; {hint}."
    )


def check_writable(tokens: Sequence[str]) -> None:
    """Refuses text that our files could not give back, now and not after the training.

    >>> check_writable(["sky", "café"])

    Raises:
        VocabularyError: a token holds lone surrogates.
    """
    try:
        "".join(tokens).encode()
    except UnicodeEncodeError:
        for token in tokens:
            encode_word(token)


def check_distinct(tokens: Sequence[str], where: str, *, first: int) -> None:
    """Refuses a token that stands twice.

    >>> check_distinct(["a", "b", "a"], "line {}", first=1)
    Traceback (most recent call last):
    splitembed.errors.VocabularyError: line 3: the token 'a' again, first at 1. Remove one of them: a token has one id.

    Args:
        tokens: the tokens in id order.
        where: what to call a place; `{}` stands for its number.
        first: the number of the first place.

    Raises:
        VocabularyError: two tokens are equal.
    """
    if len(set(tokens)) == len(tokens):
        return
    seen: dict[str, int] = {}
    place = next(place for place, token in enumerate(tokens) if seen.setdefault(token, place) != place)
    raise VocabularyError(
        f"{where.format(place + first)}: the token {tokens[place]!r} again, first at {seen[tokens[place]] + first}. "
        "Remove one of them: a token has one id."
    )


def from_list(source: Sequence[Any]) -> SourceTokens:
    """Reads tokens that are in id order already.

    >>> from_list(["", "[UNK]", "sky"])[:3]
    (('', '[UNK]', 'sky'), 0, 1)

    Raises:
        VocabularyError: no tokens, what is no text, or a token twice.
    """
    tokens = as_text(source)
    check_writable(tokens)
    check_distinct(tokens, "id {}", first=0)
    return with_defaults(tokens)


def from_number(source: Any) -> SourceTokens:
    """Makes ids without strings, called by their decimal digits, of their number or of a range.

    >>> from_number(3).tokens, from_number(range(2)).has_strings
    (('0', '1', '2'), False)

    Args:
        source: an integer, or a range that starts at 0 and takes steps of 1.

    Raises:
        VocabularyError: no ids, too many, or a range that leaves some out.
    """
    if isinstance(source, range) and (source.start, source.step) != (0, 1):
        raise VocabularyError(
            f"Ids without strings must be a range that starts at 0, with step 1. Received: {source!r}."
        )
    num_tokens = source.stop if isinstance(source, range) else int(source)
    if not 1 <= num_tokens <= _MOST_IDS:
        raise VocabularyError(f"The number of ids must be from 1 to {_MOST_IDS}. Received: {source!r}.")
    return SourceTokens(tuple(map(str, range(num_tokens))), has_strings=False)
