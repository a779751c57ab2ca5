"""Rows predicted from spelling, on real words, and refused arguments."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from splitembed.data import sample_vectors_path
from splitembed.errors import SplitError
from splitembed.initializers.by_name import initialize_rows
from splitembed.initializers.ngrams import NgramRidge
from splitembed.vectors import WordVectors, read_vectors

ROOT = Path(__file__).parents[2]
pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def sample():
    """Return the embedded sample without every tenth word, and the words and rows left out."""
    vectors = read_vectors(sample_vectors_path())
    held_out = np.arange(len(vectors)) % 10 == 9
    words = np.array(vectors.words)
    known = WordVectors(words[~held_out].tolist(), vectors.vectors[~held_out])
    return known, words[held_out].tolist(), vectors.vectors[held_out]


def mean_cosine(left, right):
    return float(np.mean((left * right).sum(axis=1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)))


def test_predictions_are_nearer_to_the_true_rows_than_the_mean_row(sample):
    known, tokens, rows = sample
    predicted = initialize_rows("ngrams", tokens, known.dim, known=known)
    assert predicted.dtype == np.float32 and np.isfinite(predicted).all()
    mean = known.vectors.mean(axis=0)
    # Measured: 0.63 against 0.56, and 0.87 of the mean row's squared error.
    assert mean_cosine(predicted, rows) > mean_cosine(np.tile(mean, (len(rows), 1)), rows) + 0.04
    assert ((predicted - rows) ** 2).mean() < 0.92 * ((mean - rows) ** 2).mean()


def test_the_seed_does_not_matter(sample):
    known, tokens, _ = sample
    first, again = (initialize_rows("ngrams", tokens[:50], known.dim, known=known, seed=seed) for seed in (1, 2))
    np.testing.assert_array_equal(first, again)


@pytest.mark.slow
def test_weak_regularization_predicts_known_words_closely(sample):
    known, _, _ = sample
    predicted = NgramRidge(alpha=1e-3).make_rows(known.words[:200], known)
    assert mean_cosine(predicted, known.vectors[:200]) > 0.95


def test_tokens_without_ngrams_share_one_row(sample):
    known, tokens, _ = sample
    rows = NgramRidge().make_rows(["", tokens[0], ""], known)
    assert np.isfinite(rows).all() and (rows[0] == rows[2]).all() and (rows[0] != rows[1]).any()


def test_words_can_hold_any_bytes():
    known = WordVectors([f"\udcff{number}" for number in range(20)], np.arange(20, dtype=np.float32).reshape(20, 1))
    rows = NgramRidge().make_rows(["\ud800", "\udcff3"], known)
    assert rows.shape == (2, 1) and np.isfinite(rows).all()


def test_empty_words_and_rows_that_are_not_finite_are_ignored():
    words = [f"{letter}{number}" for letter in "ab" for number in range(10)]
    rows = np.repeat([[1.0], [2.0]], 10, axis=0).astype(np.float32)
    expected = NgramRidge().make_rows(["a77", "b77"], WordVectors(words, rows))
    more = WordVectors(["", *words, "c"], np.concatenate([[[9e9]], rows, [[np.nan]]]).astype(np.float32))
    np.testing.assert_allclose(NgramRidge().make_rows(["a77", "b77"], more), expected, rtol=1e-6)


def test_at_most_max_words_known_words_are_used():
    class Watched(WordVectors):
        def take(self, words):
            self.taken = np.asarray(words)
            return super().take(words)

    known = Watched([f"w{number}" for number in range(1000)], np.ones((1000, 2), np.float32))
    NgramRidge(max_words=300).make_rows(["w"], known)
    assert len(known.taken) == 250 and set(np.diff(known.taken)) == {4}


@pytest.mark.parametrize("num_words", [0, 9])
def test_fewer_than_10_known_words_are_refused(num_words):
    known = WordVectors([f"w{number}" for number in range(num_words)], np.ones((num_words, 2), np.float32))
    with pytest.raises(
        SplitError, match=rf'"ngrams" needs 10 or more known words with finite rows. Received: {num_words}'
    ):
        initialize_rows("ngrams", ["a"], 2, known=known)


@pytest.mark.parametrize(
    "options", [{"min_n": 0}, {"min_n": 3, "max_n": 2}, {"num_features": 0}, {"alpha": 0}, {"max_words": 9}]
)
def test_arguments_out_of_range_are_refused(options):
    with pytest.raises(SplitError, match=r"NgramRidge must have 1 <= min_n <= max_n"):
        NgramRidge(**options)


def test_a_missing_library_is_named():
    code = """
import sys
sys.modules["sklearn"] = None
import numpy as np
from splitembed.initializers.by_name import initialize_rows
from splitembed.vectors import WordVectors
try:
    initialize_rows("ngrams", ["a"], 1, known=WordVectors(["b"], np.ones((1, 1), np.float32)))
except ImportError as error:
    print(error)"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.startswith('The initializer "ngrams" needs the library sklearn, which is not'), done.stderr
    assert 'pip install "splitembed[ngrams]"' in done.stdout
