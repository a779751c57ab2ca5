"""Counts by token or in id order are aligned with the vocabulary; invalid counts are refused."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from splitembed.errors import VocabularyError
from splitembed.vocabulary import align_counts, read_vocabulary


def write(folder, content):
    path = folder / "vocabulary.txt"
    path.write_bytes(content)
    return path


VOCABULARY = read_vocabulary(["", "[UNK]", "the", "sky"])


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"sky": 2, "stranger": 9}, [0, 0, 0, 2]),
        (Counter(["the", "sky", "the"]), [0, 0, 2, 1]),
        ({"sky": np.int32(2), "the": np.uint8(3)}, [0, 0, 3, 2]),
        ({}, [0, 0, 0, 0]),
        ([0, 1, 2, 3], [0, 1, 2, 3]),
        (np.array([0, 1, 2, 3], np.uint64), [0, 1, 2, 3]),
        (SimpleNamespace(to_dict=lambda: {"sky": 2}), [0, 0, 0, 2]),
    ],
)
def test_integer_counts_are_returned_in_id_order(counts, expected):
    result = align_counts(counts, VOCABULARY)
    assert result.dtype == np.int64
    assert result.tolist() == expected


@pytest.mark.parametrize("counts", [{"the": 0.5}, [0.0, 0.0, 0.5, 0.0], np.array([0, 0, 0.5, 0], np.float16)])
def test_weights_are_float64(counts):
    result = align_counts(counts, VOCABULARY)
    assert result.dtype == np.float64
    assert result.tolist() == [0, 0, 0.5, 0]


def test_every_duplicate_line_has_the_count(tmp_path):
    vocabulary = read_vocabulary(write(tmp_path, b"a\nb\na\n"), keep_lines=True)
    assert align_counts({"a": 3}, vocabulary).tolist() == [3, 0, 3]


def test_counting_adds_nothing_to_a_default_dict():
    counts = Counter(the=1)
    align_counts(counts, VOCABULARY)
    assert counts == {"the": 1}
    assert len(counts) == 1


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1, 2, 3], "one count for each of the 4 tokens. Received: shape .3,."),
        (np.ones((4, 1)), "Received: shape .4, 1."),
        (7, "Received: shape .."),
        ({"sky": -1}, "The count of token 'sky' .id 3. must be 0 or more. Received: -1"),
        ([0, 0, np.nan, 0], "The count of token 'the' .id 2. must be 0 or more. Received: nan"),
        ({"the": np.inf}, "The count of token 'the' .id 2. must be 0 or more. Received: inf"),
        ({3: 2}, "`counts` must have tokens .str. as keys. Received: keys of type int. Pass counts by id as an array"),
        ({b"sky": 2}, "keys of type bytes"),
        ({"sky": "2"}, "`counts` must be numbers"),
        ([True, False, True, True], "`counts` must be numbers that int64 or float64 hold. Received: dtype bool"),
        (np.full(4, 2**63, np.uint64), "`counts` must be numbers that int64 or float64 hold. Received: dtype uint64"),
        ({"sky": None}, "`counts` must be numbers"),
    ],
)
def test_refused_counts(counts, message):
    with pytest.raises(VocabularyError, match=message):
        align_counts(counts, VOCABULARY)


@pytest.mark.parametrize("counts", [[0, 0, 2**62, 2**62], [0, 0, 1e308, 1e308], np.array([0, 0, 2**62, 2**62], "u8")])
def test_counts_whose_sum_overflows_are_refused(counts):
    with pytest.raises(VocabularyError, match="The sum of `counts` must be below"):
        align_counts(counts, VOCABULARY)


@pytest.mark.parametrize("counts", ["corpus.txt", {"The": 3, "Of": 1}])
def test_counts_of_other_tokens_are_refused(counts):
    with pytest.raises(VocabularyError, match="Count the tokens of a text with|other tokens, such as 'The'"):
        align_counts(counts, read_vocabulary(["the", "of"]))
    assert align_counts({}, read_vocabulary(["the"])).tolist() == [0]
