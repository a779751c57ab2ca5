"""The comparison of methods that choose rows, on a small corpus whose deciding words are known."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.accuracy import rows
from benchmarks.accuracy.classifier import Settings, Training
from benchmarks.accuracy.newsgroups import encode
from benchmarks.accuracy.rows import ALL, FROZEN, METHODS, Comparison, Run, as_markdown, compare
from benchmarks.data.corpora import Texts

# `make test-all` runs it: it takes long, and tests the benchmarks and not the package.
pytestmark = pytest.mark.slow

SETTINGS = Settings(max_tokens=4, batch_size=8, learning_rate=0.3, max_epochs=8, patience=8)
WORDS = ("the", "of", "good", "bad")
# All vectors are the same, so that only trained rows of the last two words tell the classes apart.
VECTORS = {word: [1.0, 0.5, -0.5] for word in WORDS}
LABELS = np.tile(np.int32([0, 1]), 40)
CORPUS = Texts(["the of the good", "the of the bad"] * 40, LABELS, ["good the", "bad the"] * 40, LABELS, ["a", "b"])


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(rows, "SETTINGS", dict.fromkeys(rows.SETTINGS, SETTINGS))


def test_gradients_choose_the_words_that_decide():
    lines = []
    comparison = compare("Made up", encode(CORPUS, 4), VECTORS, 1, (2,), say=lines.append)
    expected = [(FROZEN, 0), *((method, 2) for method in METHODS), (ALL, 4)]
    assert [(run.method, run.budget) for run in comparison.runs] == expected
    assert comparison.mean(FROZEN, 0) == comparison.mean("frequency", 2) == 50
    for method in list(METHODS)[1:]:
        assert comparison.mean(method, 2) == 100
        assert comparison.of(method, 2)[0].token_share == pytest.approx(1 / 4)
    assert comparison.of("frequency", 2)[0].token_share == pytest.approx(3 / 4)
    assert len(lines) == len(comparison.runs) and lines[0].startswith("Made up, seed 0, none 0: validation 5")


def test_a_table_has_accuracies_gains_with_their_errors_and_shares():
    def run(method, budget, seed, test):
        return Run(method, budget, seed, 0.25, Training(test, test + 0.1, 1, 1, 0.1, 1.0))

    runs = [run(FROZEN, 0, seed, 0.5) for seed in range(2)] + [run(ALL, 7_000, seed, 0.75) for seed in range(2)]
    for number, method in enumerate(METHODS):
        runs += [run(method, 500, seed, 0.6 + 0.02 * number * seed) for seed in range(2)]
    table = as_markdown(Comparison("Made up", runs))
    assert "test accuracy in percent, 2 seeds. Known words that train: none: 50.0 %, all 7,000: 75.0 %." in table
    # differences of 0 and 2 points: a mean of 1, and a standard error of 1
    assert "| 500 | 60.0, 25 % of the tokens | 61.0 (+1.0 ± 1.0), 25 % of the tokens |" in table
    assert "Validation accuracy in the order of the budgets: frequency 70.0;" in table


def test_the_command_writes_both_files(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "CORPORA", {name: lambda: CORPUS for name in rows.CORPORA})
    monkeypatch.setattr(rows, "glove_50d", lambda: (list(VECTORS), np.array([*VECTORS.values()], np.float32)))
    options = ["--seeds", "1", "--corpus", "Reuters R52", "--budget", "1", "--head", "gru", "--output", str(tmp_path)]
    done = CliRunner().invoke(rows.main, options, catch_exceptions=False)
    assert done.exit_code == 0
    assert "**Reuters R52**" in (tmp_path / "rows-gru.md").read_text()
    content = json.loads((tmp_path / "rows-gru.json").read_text())
    assert [each["budget"] for each in content["corpora"]["Reuters R52"]] == [0, *[1] * len(METHODS), 4]
