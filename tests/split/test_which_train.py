"""The choice of known tokens that train, and of rare tokens that share the row of [UNK]."""

import numpy as np
import pytest

from splitembed import read_vocabulary
from splitembed.errors import SplitError, TokenIdError, UnknownTokenError
from splitembed.split.which_train import chosen_tokens, rare_tokens

TOKENS = read_vocabulary(["", "[UNK]", "the", "of", "usr", "lol"])
KNOWN = np.array([False, False, True, True, False, False])
COUNTS = np.array([0, 0, 5, 9, 3, 1])


def ids(mask):
    return np.flatnonzero(mask).tolist()


@pytest.mark.parametrize(("number", "expected"), [(0, []), (1, [3]), (2, [2, 3]), (9, [2, 3])])
def test_the_most_frequent_known_tokens_are_chosen(number, expected):
    assert ids(chosen_tokens(TOKENS, KNOWN, COUNTS, (), number)) == expected


def test_equal_counts_are_chosen_in_id_order():
    assert ids(chosen_tokens(TOKENS, KNOWN, np.ones(6), (), 1)) == [2]


def test_named_tokens_are_chosen_in_addition_even_unknown_ones():
    assert ids(chosen_tokens(TOKENS, KNOWN, COUNTS, ["usr", 2], 1)) == [2, 3, 4]


@pytest.mark.parametrize(
    ("named", "number", "counts", "error", "message"),
    [
        ([0], 0, COUNTS, SplitError, "names the padding id 0"),
        ((), -1, COUNTS, SplitError, "integer, 0 or more. Received: -1"),
        ((), 1.5, COUNTS, SplitError, "integer, 0 or more. Received: 1.5"),
        ((), 1, None, SplitError, "`train_most_frequent` needs `counts`"),
        ([6], 0, None, TokenIdError, "6"),
        (["zzz"], 0, None, UnknownTokenError, "zzz"),
    ],
)
def test_invalid_choices_are_refused(named, number, counts, error, message):
    with pytest.raises(error, match=message):
        chosen_tokens(TOKENS, KNOWN, counts, named, number)


@pytest.mark.parametrize(
    ("min_count", "expected"), [(0, []), (1, []), (2, [5]), (3, [5]), (3.5, [4, 5]), (100, [4, 5])]
)
def test_rare_tokens_are_unknown_ordinary_ones_below_the_count(min_count, expected):
    assert ids(rare_tokens(TOKENS, KNOWN, COUNTS, min_count)) == expected


def test_rare_tokens_need_counts_a_number_and_an_unknown_token():
    with pytest.raises(SplitError, match="`min_count` needs `counts`"):
        rare_tokens(TOKENS, KNOWN, None, 2)
    with pytest.raises(SplitError, match="`min_count` must be a number. Received: 'x'"):
        rare_tokens(TOKENS, KNOWN, COUNTS, "x")
    without = read_vocabulary(["the", "usr"], padding=None)
    with pytest.raises(SplitError, match=r"makes 1 rare tokens share the row of \[UNK\]"):
        rare_tokens(without, np.array([True, False]), np.array([9, 1]), 2)
