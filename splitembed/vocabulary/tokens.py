"""The tokens of a source in id order, `SourceTokens`, and the checks that all kinds of sources share."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from splitembed.errors import VocabularyError
from splitembed.words import encode_word

# The name of the OOV slot in Keras's lookup layers.
UNKNOWN_TOKEN = "[UNK]"
# The most ids that the int32 `remap` of a split can hold.
_MAX_IDS = 2**31 - 1


class SourceTokens(NamedTuple):
    """The tokens of a source, its "auto" padding and unknown ids, and its reserved ids.

    Args:
        tokens: the tokens in id order.
        padding: the padding id that "auto" means.
        unknown: the unknown id that "auto" means.
        slots: ids that are always reserved, as `gaps` are.
        spellings: the spellings of tokens in vector files, by the source's marks.
        marks: the rule of these marks.
        literals: ids of tokens without marks under any rule.
        has_strings: False for ids without strings.
        padding_conflict: the error message for "auto" padding where the source contradicts itself, or None.
        gaps: ids without a token, whose tokens are placeholders.
    """

    tokens: tuple[str, ...]
    padding: int | None = None
    unknown: int | None = None
    slots: frozenset[int] = frozenset()
    spellings: tuple[str | None, ...] | None = None
    marks: str | None = None
    literals: frozenset[int] = frozenset()
    has_strings: bool = True
    padding_conflict: str | None = None
    gaps: frozenset[int] = frozenset()


def with_defaults(
    tokens: tuple[str, ...],
    padding: int | None = None,
    unknown: int | None = None,
    slots: frozenset[int] = frozenset(),
    gaps: frozenset[int] = frozenset(),
) -> SourceTokens:
    """Fill in the defaults of "auto": a "" with id 0 is padding, "[UNK]" is unknown.

    >>> with_defaults(("", "[UNK]", "sky"))[:3]
    (('', '[UNK]', 'sky'), 0, 1)

    Raises:
        VocabularyError: the vocabulary is empty.
    """
    if not tokens:
        raise VocabularyError("The vocabulary is empty. Pass at least one token.")
    if padding is None and tokens[0] == "":
        padding = 0
    if unknown is None and UNKNOWN_TOKEN in tokens:
        unknown = tokens.index(UNKNOWN_TOKEN)
    return SourceTokens(tokens, padding, unknown, slots, gaps=gaps)


def as_text(tokens: Sequence[Any]) -> tuple[str, ...]:
    """Return the tokens as plain `str`; integers are spelled as decimal digits, as `IntegerLookup` reads them.

    >>> as_text(["sky", 1001])
    ('sky', '1001')

    Raises:
        VocabularyError: a token is neither a str nor an integer.
    """
    kinds = set(map(type, tokens))
    if kinds <= {str}:
        return tuple(tokens)
    wrong = [kind for kind in kinds if not issubclass(kind, (str, int, np.integer)) or kind is bool]
    if not wrong:
        # np.str_ and enumerations of str become plain str.
        return tuple(str.__str__(token) if isinstance(token, str) else str(int(token)) for token in tokens)
    position = next(position for position, token in enumerate(tokens) if type(token) in wrong)
    hint = " Decode it." if isinstance(tokens[position], bytes) else ""
    raise VocabularyError(
        f"Tokens must be str or int. Received: {tokens[position]!r} of type {type(tokens[position]).__name__} at "
        f"position {position}.{hint}"
    )


def check_writable(tokens: Sequence[str]) -> None:
    """Raise an error for text that cannot be saved, here rather than after training.

    >>> check_writable(["sky", "café"])

    Raises:
        VocabularyError: a token holds lone surrogates.
    """
    try:
        "".join(tokens).encode()
    except UnicodeEncodeError:
        for token in tokens:
            encode_word(token)


def check_distinct(tokens: Sequence[str], unit: str, *, first: int, source: str = "") -> None:
    """Raise an error for a duplicate token.

    >>> check_distinct(["a", "b", "a"], "line", first=1, source="vocabulary.txt, ")
    Traceback (most recent call last):
    splitembed.errors.VocabularyError: vocabulary.txt, line 3: found the token 'a' of line 1 again; expected distinct
    tokens. Remove one of them, because a token has one id.

    Args:
        tokens: the tokens in id order.
        unit: what positions count, "line" or "id".
        first: the number of the first position.
        source: the start of the message.

    Raises:
        VocabularyError: two tokens are equal.
    """
    if len(set(tokens)) == len(tokens):
        return
    seen: dict[str, int] = {}
    position = next(position for position, token in enumerate(tokens) if seen.setdefault(token, position) != position)
    token = tokens[position]
    raise VocabularyError(
        f"{source}{unit} {position + first}: found the token {token!r} of {unit} {seen[token] + first} again; "
        "expected distinct tokens. Remove one of them, because a token has one id."
    )


def from_list(source: Sequence[Any]) -> SourceTokens:
    """Read a list of tokens in id order.

    >>> from_list(["", "[UNK]", "sky"])[:3]
    (('', '[UNK]', 'sky'), 0, 1)

    Raises:
        VocabularyError: there are no tokens, items that are neither str nor int, or duplicates.
    """
    tokens = as_text(source)
    check_writable(tokens)
    check_distinct(tokens, "id", first=0)
    return with_defaults(tokens)


def from_number(source: Any) -> SourceTokens:
    """Make ids without strings, whose tokens are their decimal digits, from their number or a range.

    >>> from_number(3).tokens, from_number(range(2)).has_strings
    (('0', '1', '2'), False)

    Args:
        source: an integer, or a range that starts at 0 with step 1.

    Raises:
        VocabularyError: there are no ids, too many ids, or gaps in a range.
    """
    if isinstance(source, range) and (source.start, source.step) != (0, 1):
        raise VocabularyError(
            f"Ids without strings must be a range that starts at 0, with step 1. Received: {source!r}."
        )
    num_tokens = source.stop if isinstance(source, range) else int(source)
    if not 1 <= num_tokens <= _MAX_IDS:
        raise VocabularyError(f"The number of ids must be from 1 to {_MAX_IDS}. Received: {source!r}.")
    return SourceTokens(tuple(map(str, range(num_tokens))), has_strings=False)
