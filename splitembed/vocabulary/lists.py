"""Tokens in id order, and ids without strings: a list or a number of ids goes in; tokens come out."""

from collections.abc import Sequence
from typing import Any

from splitembed.errors import VocabularyError
from splitembed.vocabulary.found import Found, as_text, check_distinct, check_writable, with_defaults

_MOST_IDS = 2**31 - 1  # what a split's int32 `remap` can tell apart


def from_list(source: Sequence[Any]) -> Found:
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


def from_number(source: Any) -> Found:
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
    return Found(tuple(map(str, range(num_tokens))), has_strings=False)
