"""Coverage: the numbers against sums by hand, the order of the OOV list, the table, and the sources it reads."""

import gzip
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitembed.coverage import Coverage, coverage, match_tokens, measure_coverage
from splitembed.errors import SplitError, VocabularyError
from splitembed.vocabulary import read_vocabulary

VOCABULARY = read_vocabulary(["", "[UNK]", "the", "sky", "zzz", "qqq", "yyy"])
MATCHED = np.array([0, 0, 1, 1, 0, 0, 0], bool)


def test_types_and_running_tokens():
    found = measure_coverage(VOCABULARY, MATCHED, Counter(the=70, sky=20, zzz=1, qqq=8, yyy=1, stranger=900))
    assert found == Coverage(
        num_tokens=5,
        num_matched=2,
        running_tokens=100,
        running_matched=90,
        oov=(("qqq", 8), ("zzz", 1), ("yyy", 1)),
    )
    assert (found.type_share, found.running_share, found.num_oov_types) == (0.4, 0.9, 3)
    assert all(type(value) is int for value in (found.num_tokens, found.running_tokens, found.oov[0][1]))


def test_reserved_ids_count_nowhere():
    found = measure_coverage(VOCABULARY, np.ones(7, bool), [1000, 500, 1, 2, 3, 4, 5])
    assert (found.num_tokens, found.num_matched, found.running_tokens, found.running_matched) == (5, 5, 15, 15)
    nothing = measure_coverage(VOCABULARY, np.zeros(7, bool), [1000, 500, 1, 2, 3, 4, 5])
    assert (nothing.running_matched, [token for token, _ in nothing.oov]) == (0, ["yyy", "qqq", "zzz", "sky", "the"])


def test_without_counts():
    found = measure_coverage(VOCABULARY, MATCHED, top=2)
    assert (found.running_tokens, found.running_matched, found.running_share) == (None, None, None)
    assert (found.oov, found.num_oov_types) == ((("zzz", None), ("qqq", None)), 3)


def test_weights_may_be_fractions():
    found = measure_coverage(VOCABULARY, MATCHED, {"the": 0.5, "zzz": 0.25})
    assert (found.running_share, found.oov[0]) == (pytest.approx(2 / 3), ("zzz", 0.25))


@pytest.mark.parametrize("top", [0, 1, 3, 20])
def test_top_bounds_the_list_alone(top):
    found = measure_coverage(VOCABULARY, MATCHED, {"yyy": 2}, top=top)
    assert found.oov == (("yyy", 2), ("zzz", 0), ("qqq", 0))[:top]
    assert found.num_oov_types == 3


def test_shares_of_nothing_are_nan():
    found = measure_coverage(read_vocabulary(["", "[UNK]"]), np.zeros(2, bool), [3, 4])
    assert math.isnan(found.type_share)
    assert math.isnan(found.running_share)
    assert "nan %" in str(found)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=12), st.integers(0, 12))
def test_the_parts_add_up(entries, top):
    vocabulary = read_vocabulary([f"t{place}" for place in range(len(entries))])
    matched = np.array([known for known, _ in entries])
    found = measure_coverage(vocabulary, matched, [count for _, count in entries], top=top)
    missing = [(f"t{place}", count) for place, (known, count) in enumerate(entries) if not known]
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
def test_refused_marks(matched, message):
    with pytest.raises(SplitError, match=message):
        measure_coverage(VOCABULARY, matched)


def test_refused_top():
    with pytest.raises(SplitError, match="`top` must be 0 or more"):
        measure_coverage(VOCABULARY, MATCHED, top=-1)


def test_refused_counts():
    with pytest.raises(VocabularyError, match="one count for each of the 7 tokens"):
        measure_coverage(VOCABULARY, MATCHED, [1, 2])


def test_table():
    found = Coverage(20_000, 19_996, 1_234_567, 1_234_321, (("zzz", 200), ("", 40), ("a b", 5)))
    assert str(found).splitlines() == [
        "                  matched         of    share",
        "types              19,996     20,000  100.0 %",
        "running tokens  1,234,321  1,234,567  100.0 %",
        "out of vocabulary: 4 types, 3 of them shown",
        "zzz                   200",
        "''                     40",
        "a b                     5",
    ]


def test_table_without_counts_and_without_oov():
    assert str(Coverage(2, 1, None, None, (("zzz", None),))).splitlines() == [
        "       matched  of   share",
        "types        1   2  50.0 %",
        "out of vocabulary: 1 type",
        "zzz",
    ]
    assert len(str(Coverage(2, 2, None, None, ())).splitlines()) == 2


def test_table_shows_odd_tokens_in_plain_characters():
    odd = ["a\nb", " lead", "\udcff", "\u2028", "\u3000", "été", "x" * 100]
    text = str(Coverage(7, 0, None, None, tuple((token, None) for token in odd)))
    assert text.encode()  # a terminal can take it
    assert text.splitlines()[3:] == [
        "'a\\nb'",
        "' lead'",
        "'\\udcff'",
        "'\\u2028'",
        "'\\u3000'",
        "été",
        "x" * 37 + "...",
    ]


def test_C3_match_never_marks_reserved_ids():
    vocabulary = read_vocabulary(["", "[UNK]", "b", "a"])
    assert match_tokens(vocabulary, ["a", "b", "", "[UNK]"]).tolist() == [False, False, True, True]
    assert match_tokens(vocabulary, iter(["a"])).tolist() == [False, False, False, True]


def test_Y2_match_is_exact():
    assert match_tokens(read_vocabulary(["The", "the "]), ["the"]).tolist() == [False, False]


def test_duplicate_lines_match_alike(tmp_path):
    (tmp_path / "vocabulary.txt").write_text("a\nb\na\n")
    vocabulary = read_vocabulary(tmp_path / "vocabulary.txt", keep_lines=True)
    assert match_tokens(vocabulary, {"a"}).tolist() == [True, False, True]


# Against sources of vectors


ROWS = {"the": [0.1, 0.2], "of": [0.3, 0.4], "[UNK]": [0.5, 0.6], "unk": [0.7, 0.8], "<unk>": [0.9, 1.0]}
TEXT = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in ROWS.items()).encode()


@pytest.mark.parametrize("packed", [False, True])
def test_coverage_of_a_file(tmp_path, packed):
    path = tmp_path / "vectors.txt"
    path.write_bytes(gzip.compress(TEXT) if packed else TEXT)
    found = coverage(["", "[UNK]", "the", "of", "zzz"], path, counts={"the": 6, "of": 3, "zzz": 1})
    assert found == Coverage(3, 2, 10, 9, (("zzz", 1),))


def test_Y4_no_oov_token_is_covered_by_the_word_unk():
    assert coverage(["zzz"], ROWS) == Coverage(1, 0, None, None, (("zzz", None),))


@pytest.mark.parametrize("source", [ROWS, (list(ROWS), np.array(list(ROWS.values()), np.float32))])
def test_coverage_of_vectors_in_memory(source):
    assert coverage({"the": 1, "zzz": 2}, source, counts=[0, 3, 1]) == Coverage(2, 1, 4, 3, (("zzz", 1),))


def test_coverage_of_a_frozen_table(tmp_path):
    from splitembed.convert import save_frozen

    save_frozen(tmp_path / "frozen.h5", ROWS)
    # The table ends in a zero row without a word: "" at another place than 0 is a word, and no row's.
    assert coverage(["the", "", "zzz"], tmp_path / "frozen.h5").oov == (("", None), ("zzz", None))
