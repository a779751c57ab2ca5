"""Rows that start as the mean of other rows, in new and in grown splits."""

import numpy as np
import pytest

from splitembed import SplitTable, build_split
from splitembed.errors import SplitError, TokenIdError, UnknownTokenError
from splitembed.split.like import start_like

VECTORS = {"coffee": [1.0, 2.0], "word": [3.0, 6.0], "the": [0.5, 0.5]}
VOCABULARY = ["", "[UNK]", "coffee", "word", "the", "covfefe"]


def test_an_oov_token_starts_as_the_mean_of_others():
    split = build_split(VOCABULARY, VECTORS, like={"covfefe": ["coffee", "word"]}, oov_initializer="zeros")
    assert split.lookup([5, 1, 2]).tolist() == [[2, 4], [0, 0], [1, 2]]
    assert split.trainable_ids.tolist() == [1, 5]


def test_a_grown_token_starts_as_the_mean_of_others_each_as_often_as_given():
    split = build_split(VOCABULARY, VECTORS, seed=0)
    grown = split.grow(["espresso", "mocha"], like={"espresso": ["coffee", "coffee", "word"], "mocha": 2}, seed=0)
    np.testing.assert_allclose(grown.lookup([6, 7]), [[5 / 3, 10 / 3], [1, 2]], rtol=1e-6)
    np.testing.assert_array_equal(grown.lookup(range(6)), split.combine())


@pytest.mark.parametrize(
    ("like", "error", "message"),
    [
        ({"the": ["coffee"]}, SplitError, "trainable row of their own. Received: 'the', whose row is frozen"),
        ({"covfefe": []}, SplitError, "at least one token for 'covfefe'"),
        ({"covfefe": ["tea"]}, UnknownTokenError, "tea"),
        ({"tea": ["coffee"]}, UnknownTokenError, "tea"),
        ({"covfefe": [9]}, TokenIdError, "9"),
        (["covfefe"], SplitError, "must be a dict from a token to other tokens. Received: list"),
    ],
)
def test_what_cannot_be_a_start_is_refused(like, error, message):
    with pytest.raises(error, match=message):
        build_split(VOCABULARY, VECTORS, like=like)


def test_a_shared_row_is_refused():
    split = SplitTable.from_arrays(np.eye(2), [0, 1, ~0, ~0], np.zeros((1, 2)))
    with pytest.raises(SplitError, match="Received: 2, whose row is shared with other tokens"):
        start_like(split, {2: [0]})
