"""The contents of the embedded sample, and its packaging."""

import configparser
import fnmatch
import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from splitembed import read_vectors
from splitembed.data.sample import sample_reviews, sample_reviews_path, sample_vectors_path

ROOT = Path(__file__).parents[2]
FOLDER = sample_vectors_path().parent


@pytest.fixture(scope="module")
def vectors():
    return read_vectors(sample_vectors_path(), strict=True)


def test_vectors_are_3000_distinct_words_of_50_finite_numbers(vectors):
    assert len(set(vectors.words)) == 3_000
    assert vectors.vectors.shape == (3_000, 50)
    assert np.isfinite(vectors.vectors).all()
    # The first row of glove.6B.50d.txt, as Stanford published it.
    assert vectors.words[0] == "the"
    np.testing.assert_array_equal(vectors.vectors[0, :4], np.float32([0.418, 0.24968, -0.41242, 0.1217]))


def test_reviews_are_balanced_and_clearly_positive_or_negative():
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


def test_some_words_of_the_reviews_are_out_of_vocabulary(vectors):
    used = {word for text in sample_reviews()[0] for word in text.split() if word.isalnum()}
    assert {"ad2600", "replacable"} <= used - set(vectors.words)
    assert len(used - set(vectors.words)) < 0.1 * len(used)


def test_contents_have_the_recorded_hashes():
    # Of the contents, because another zlib may compress them differently.
    contents = {
        "vectors": gzip.decompress(sample_vectors_path().read_bytes()),
        "reviews": sample_reviews_path().read_bytes(),
    }
    assert {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()} == {
        "vectors": "64464f1b4458a22673872c3d43e61555ba575254d026d2ace081481627cd8080",
        "reviews": "f3bc717b6068d8b3d2c9d1fb601163edec34cd671fd0cffad4a37100ed2f70fd",
    }


def test_every_file_is_packaged_and_small():
    config = configparser.RawConfigParser()
    config.read(ROOT / "setup.cfg")
    patterns = config["options.package_data"]["splitembed.data"].split()
    files = [path for path in FOLDER.iterdir() if path.is_file() and path.suffix != ".py"]
    assert len(files) == 4
    assert [path.name for path in files if not any(fnmatch.fnmatch(path.name, pattern) for pattern in patterns)] == []
    assert sum(path.stat().st_size for path in files) < 1_000_000


def test_the_licences_are_packaged_with_the_data():
    assert "PDDL-1.0" in (FOLDER / "LICENSE-glove.txt").read_text(encoding="utf-8")
    assert "The MIT License" in (FOLDER / "LICENSE-vader.txt").read_text(encoding="utf-8")
