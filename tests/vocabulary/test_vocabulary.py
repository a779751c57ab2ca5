"""The Vocabulary: ids of tokens, ordinary ids, and its representation."""

import numpy as np
import pytest

from splitembed.errors import UnknownTokenError
from splitembed.vocabulary import Vocabulary


def test_a_duplicate_token_is_the_ordinary_id():
    vocabulary = Vocabulary(("[UNK]", "[UNK]", "a", "[UNK]", "a"), None, frozenset([0, 1]), 0)
    assert vocabulary.index == {"[UNK]": 3, "a": 2}
    assert Vocabulary(("[UNK]", "[UNK]"), None, frozenset([0, 1]), 0).index == {"[UNK]": 0}


def test_is_ordinary_is_read_only():
    ordinary = Vocabulary(("", "a", "b"), 0, frozenset([0]), None).is_ordinary
    assert ordinary.tolist() == [False, True, True]
    with pytest.raises(ValueError, match="read-only"):
        ordinary[0] = True


def test_ids_of_tokens_ids_and_masks():
    vocabulary = Vocabulary(("a", "b", "c"), None, frozenset(), None)
    assert vocabulary.ids(["c", 0]).tolist() == [2, 0]
    assert vocabulary.ids(np.array([False, True, True])).tolist() == [1, 2]
    with pytest.raises(UnknownTokenError, match="Token 'd' is not among the 3 tokens"):
        vocabulary.ids("d")


def test_spellings_are_not_tokens():
    vocabulary = Vocabulary(("▁a", "b"), None, frozenset(), None, ("a", None), "metaspace")
    assert vocabulary.ids("▁a").tolist() == [0]
    with pytest.raises(UnknownTokenError, match="Token 'a' is not among"):
        vocabulary.ids("a")


def test_repr_shows_sizes_and_marks_only():
    assert repr(Vocabulary(("", "a"), 0, frozenset([0]), None)) == (
        "Vocabulary(num_tokens=2, padding=0, unknown=None, num_reserved=1)"
    )
    assert repr(Vocabulary(("a",), None, frozenset(), None, ("a",), "wordpiece")).endswith("marks='wordpiece')")
