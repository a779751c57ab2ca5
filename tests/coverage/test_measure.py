"""Coverage compared with sums by hand and by NumPy, by rule and by frequency rank."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.coverage import RankPoint, RuleCoverage
from splitembed.coverage.measure import measure_coverage
from splitembed.errors import SplitError, VocabularyError
from splitembed.matching.match import find_candidates
from splitembed.vocabulary import read_vocabulary

VOCABULARY = read_vocabulary(["", "[UNK]", "the", "sky", "zzz", "qqq", "yyy"])
MATCHED = np.array([0, 0, 1, 1, 0, 0, 0], bool)


def test_types_and_running_tokens_are_counted():
    found = measure_coverage(VOCABULARY, MATCHED, Counter(the=70, sky=20, zzz=1, qqq=8, yyy=1, stranger=900))
    assert (found.num_tokens, found.num_matched, found.running_tokens, found.running_matched) == (5, 2, 100, 90)
    assert found.oov == (("qqq", 8), ("zzz", 1), ("yyy", 1))
    assert found.rules == (RuleCoverage("exact", 2, 90),)
    assert (found.type_share, found.running_share, found.num_oov_types, found.oov_running_tokens) == (0.4, 0.9, 3, 10)
    assert all(type(value) is int for value in (found.num_tokens, found.running_tokens, found.oov[0][1]))


def test_reserved_ids_are_not_counted():
    found = measure_coverage(VOCABULARY, np.ones(7, bool), [1000, 500, 1, 2, 3, 4, 5])
    assert (found.num_tokens, found.num_matched, found.running_tokens, found.running_matched) == (5, 5, 15, 15)
    nothing = measure_coverage(VOCABULARY, np.zeros(7, bool), [1000, 500, 1, 2, 3, 4, 5])
    assert (nothing.running_matched, [token for token, _ in nothing.oov]) == (0, ["yyy", "qqq", "zzz", "sky", "the"])


def test_without_counts_only_types_are_counted():
    found = measure_coverage(VOCABULARY, MATCHED, top=2)
    assert (found.running_tokens, found.running_matched, found.running_share, found.oov_running_tokens) == (None,) * 4
    assert (found.curve, found.rules) == (None, (RuleCoverage("exact", 2, None),))
    assert (found.oov, found.num_oov_types) == ((("zzz", None), ("qqq", None)), 3)


def test_weights_may_be_fractions():
    found = measure_coverage(VOCABULARY, MATCHED, {"the": 0.5, "zzz": 0.25})
    assert (found.running_share, found.oov[0]) == (pytest.approx(2 / 3), ("zzz", 0.25))


@pytest.mark.parametrize("top", [0, 1, 20])
def test_top_limits_only_the_list(top):
    found = measure_coverage(VOCABULARY, MATCHED, {"yyy": 2}, top=top)
    assert found.oov == (("yyy", 2), ("zzz", 0), ("qqq", 0))[:top]
    assert found.num_oov_types == 3


def test_shares_of_nothing_are_nan():
    found = measure_coverage(read_vocabulary(["", "[UNK]"]), np.zeros(2, bool), [3, 4])
    assert math.isnan(found.type_share)
    assert math.isnan(found.running_share)
    assert "nan" not in str(found)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=12), st.integers(0, 12))
def test_matched_and_oov_tokens_add_up(entries, top):
    vocabulary = read_vocabulary([f"t{index}" for index in range(len(entries))])
    matched = np.array([known for known, _ in entries])
    found = measure_coverage(vocabulary, matched, [count for _, count in entries], top=top)
    missing = [(f"t{index}", count) for index, (known, count) in enumerate(entries) if not known]
    assert found.num_matched + len(missing) == found.num_tokens == len(entries)
    assert found.running_tokens - found.running_matched == sum(count for _, count in missing)
    assert list(found.oov) == sorted(missing, key=lambda entry: -entry[1])[:top]


@pytest.mark.parametrize(
    ("matched", "message"),
    [
        (MATCHED[:6], r"`matched` must be bool of shape \(7,\). Received: bool, \(6,\)"),
        (MATCHED.astype(int), r"Received: int64, \(7,\)"),
        (np.flatnonzero(MATCHED), "Received: int64"),
    ],
)
def test_a_mask_of_another_shape_or_dtype_is_refused(matched, message):
    with pytest.raises(SplitError, match=message):
        measure_coverage(VOCABULARY, matched)


def test_counts_of_another_length_are_refused():
    with pytest.raises(VocabularyError, match="7 tokens"):
        measure_coverage(VOCABULARY, MATCHED, [1, 2])


# By rule


def test_Y2_each_rule_is_counted_by_types_and_running_tokens():
    vocabulary = read_vocabulary(["[UNK]", "The", "the", "CAFÉ", "zzz", "Of"])
    match = find_candidates(vocabulary, ["lower", "lower+accents", "upper"]).match(["the", "cafe", "of"])
    found = measure_coverage(vocabulary, match, [1000, 5, 50, 3, 7, 20])
    assert found.rules == (
        RuleCoverage("exact", 1, 50),
        RuleCoverage("lower", 2, 25),
        RuleCoverage("lower+accents", 1, 3),
        RuleCoverage("upper", 0, 0),
    )
    assert (found.num_matched, found.running_matched, found.oov) == (4, 78, (("zzz", 7),))


def test_a_match_of_another_vocabulary_is_refused():
    match = find_candidates(read_vocabulary(["a", "b"])).match(["a"])
    with pytest.raises(SplitError, match="`matched` must be a Match for 7 tokens. Received: one for 2"):
        measure_coverage(VOCABULARY, match)


RULE_NAMES = ("lower", "upper", "title", "accents")


@given(
    st.lists(st.text(st.sampled_from("aAbé"), min_size=1, max_size=3), unique=True, min_size=1, max_size=10),
    st.lists(st.text(st.sampled_from("aAbé"), min_size=1, max_size=3), max_size=10),
    st.lists(st.sampled_from(RULE_NAMES), unique=True),
    st.data(),
)
def test_the_rules_add_up_to_the_matched_tokens(tokens, words, fallbacks, data):
    counts = data.draw(st.lists(st.integers(0, 9), min_size=len(tokens), max_size=len(tokens)))
    vocabulary = read_vocabulary(tokens)
    found = measure_coverage(vocabulary, find_candidates(vocabulary, fallbacks).match(words), counts)
    assert [rule.name for rule in found.rules] == ["exact", *fallbacks]
    assert sum(rule.num_types for rule in found.rules) == found.num_matched
    assert sum(rule.running_tokens for rule in found.rules) == found.running_matched
    assert found.num_matched + found.num_oov_types == len(tokens)
    assert found.running_matched + found.oov_running_tokens == sum(counts)


# By frequency rank


def plain_curve(matched, counts):
    """Return the point of every rank by NumPy's cumulative sums."""
    order = np.argsort(-np.asarray(counts), kind="stable")
    matched, counts = np.asarray(matched)[order], np.asarray(counts)[order]
    return np.stack([np.arange(1, len(counts) + 1), matched.cumsum(), counts.cumsum(), (counts * matched).cumsum()], 1)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=1, max_size=40))
def test_the_curve_is_a_sample_of_the_cumulative_sums(entries):
    matched, counts = [known for known, _ in entries], [count for _, count in entries]
    vocabulary = read_vocabulary(["", "[UNK]", *(f"t{index}" for index in range(len(entries)))])
    found = measure_coverage(vocabulary, np.array([True, True, *matched]), [99, 98, *counts])
    curve = np.array(found.curve)
    np.testing.assert_array_equal(curve, plain_curve(matched, counts)[curve[:, 0] - 1])
    assert curve[0, 0] == 1
    assert curve[-1].tolist() == [found.num_tokens, found.num_matched, found.running_tokens, found.running_matched]


def test_the_curve_of_many_tokens_has_at_most_200_points():
    generator = np.random.default_rng(0)
    matched, counts = generator.random(50_000) < 0.7, generator.zipf(1.5, 50_000)
    vocabulary = read_vocabulary([f"t{index}" for index in range(50_000)])
    curve = np.array(measure_coverage(vocabulary, matched, counts).curve)
    assert 100 < len(curve) <= 200
    assert (np.diff(curve[:, 0]) > 0).all()
    np.testing.assert_array_equal(curve, plain_curve(matched, counts)[curve[:, 0] - 1])


def test_the_curve_holds_plain_numbers():
    (point, *_) = measure_coverage(VOCABULARY, MATCHED, {"the": 0.5, "zzz": 0.25}).curve
    assert point == RankPoint(1, 1, 0.5, 0.5)
    assert [type(each) for each in point] == [int, int, float, float]
    assert measure_coverage(read_vocabulary(["", "[UNK]"]), np.zeros(2, bool), [3, 4]).curve == ()


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300))
def test_tokens_of_weight_0_do_not_change_the_sum_of_fractions(weights):
    counts = np.zeros(2 * len(weights))
    counts[::2] = weights
    matched = np.arange(len(counts)) % 2 == 0
    found = measure_coverage(read_vocabulary([f"t{index}" for index in range(len(counts))]), matched, counts)
    assert found.oov_running_tokens == 0 and found.running_matched == math.fsum(weights)


@pytest.mark.parametrize("top", [-1, 1.5, None])
def test_top_must_be_a_number_of_tokens(top):
    with pytest.raises(SplitError, match="`top` must be an integer, 0 or more"):
        measure_coverage(VOCABULARY, MATCHED, top=top)
