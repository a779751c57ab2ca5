"""Accuracy by the method that chooses the known words to train, on labelled texts with GloVe.

For each seed, a classifier is trained in which all known words are frozen. One pass of gradients through it gives the
scores of `se.choose_rows`, and each method chooses its words by them. Then a new classifier trains these words beside
the OOV tokens. A tenth of the training documents, which no model trains on, chooses the epoch of each training.

    python -m benchmarks.accuracy.rows                        # 20 Newsgroups and R8, three seeds, about an hour
    python -m benchmarks.accuracy.rows --corpus "Reuters R52" --seeds 1 --head gru
"""

import json
import statistics
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import click
import keras
import numpy as np

import splitembed as se
from benchmarks.accuracy.classifier import HEAD, Settings, Training, build_classifier, train
from benchmarks.accuracy.newsgroups import Encoded, encode
from benchmarks.data.corpora import Texts, film_snippets, glove_50d, newsgroups, reuters_r8, reuters_r52
from benchmarks.data.packages import data_folder
from splitembed.models.choose_rows import SCORES, Score, best_rows
from splitembed.models.row_gradients import RowGradients, measure_gradients

CORPORA: dict[str, Callable[[], Texts]] = {
    "20 Newsgroups": newsgroups,
    "Reuters R8": reuters_r8,
    "Reuters R52": reuters_r52,
    "film snippets": film_snippets,
}
DEFAULT_CORPORA = ("20 Newsgroups", "Reuters R8")
BUDGETS = (500, 2_000, 5_000, 10_000)
# G is the sum of a token's gradients.
METHODS: dict[str, Score] = {
    "frequency": lambda gradients: gradients.counts,
    **SCORES,
    "G^2 / sqrt(count)": lambda gradients: gradients.summed / np.sqrt(np.maximum(gradients.counts, 1)),
}
REFERENCE = "frequency"
FROZEN, ALL = "none", "all"
# A recurrent step costs as much as hundreds of averages, so that documents are cut earlier.
SETTINGS = {"averaging": Settings(), "gru": Settings(max_tokens=100, learning_rate=0.01, max_epochs=30)}


class Run(NamedTuple):
    """One training: which known words trained, how many, their share of the running tokens, and the result."""

    method: str
    budget: int
    seed: int
    token_share: float
    training: Training


class Comparison(NamedTuple):
    """The runs on one corpus."""

    corpus: str
    runs: list[Run]

    def mean(self, method: str, budget: int, part: str = "test_accuracy") -> float:
        """Return a mean over the seeds in percent."""
        return statistics.mean(100 * getattr(run.training, part) for run in self.of(method, budget))

    def of(self, method: str, budget: int) -> list[Run]:
        """Return the runs of all seeds, in the order of the seeds."""
        return [run for run in self.runs if (run.method, run.budget) == (method, budget)]

    @property
    def budgets(self) -> list[int]:
        """Return the budgets of the methods."""
        return sorted({run.budget for run in self.runs if run.method in METHODS})


def compare(
    name: str,
    encoded: Encoded,
    source: Any,
    seeds: int,
    budgets: tuple[int, ...] = BUDGETS,
    head: str = "averaging",
    say: Callable[[str], Any] = click.echo,
) -> Comparison:
    """Train with the words that each method chooses, once for each seed and budget.

    Args:
        name: the name of the corpus in tables.
        encoded: the corpus.
        source: the pretrained vectors, as for `read_vectors`.
        seeds: number of seeds.
        budgets: numbers of known words that train.
        head: "averaging" or "gru".
        say: receives a line for each training.
    """
    runs = []
    for seed in range(seeds):
        for run in _runs_of_seed(encoded, source, seed, budgets, head):
            runs.append(run)
            training = run.training
            say(
                f"{name}, seed {seed}, {run.method} {run.budget}: validation "
                f"{100 * training.validation_accuracy:.1f} %, {training.num_epochs} epochs, "
                f"{training.total_seconds:.0f} s"
            )
    return Comparison(name, runs)


def _runs_of_seed(encoded: Encoded, source: Any, seed: int, budgets: tuple[int, ...], head: str) -> Iterator[Run]:
    base = se.build_split(encoded.vectorize, source, seed=seed)
    model, training = _train(base, encoded, seed, head)
    yield Run(FROZEN, 0, seed, 0.0, training)
    known = np.flatnonzero((base.remap >= 0) & (np.arange(base.num_tokens) != base.padding))
    gradients = _gradients(model, base, known, encoded, seed)
    counts = gradients.counts[known]
    for budget in budgets:
        for method, score in METHODS.items():
            ids = best_rows(gradients, score, budget)
            _, training = _train(base.thaw(ids), encoded, seed, head)
            yield Run(method, budget, seed, float(gradients.counts[ids].sum() / counts.sum()), training)
    _, training = _train(base.thaw(known), encoded, seed, head)
    yield Run(ALL, len(known), seed, 1.0, training)


def _gradients(model: keras.Model, base: se.SplitTable, known: Any, encoded: Encoded, seed: int) -> RowGradients:
    (layer,) = (layer for layer in model.layers if isinstance(layer, se.SplitEmbedding))
    is_known = np.isin(np.arange(base.num_tokens), known)
    return measure_gradients(model, layer, tuple(encoded.corpus.fit), is_known, seed)


def _train(split: se.SplitTable, encoded: Encoded, seed: int, head: str) -> tuple[keras.Model, Training]:
    keras.utils.set_random_seed(seed)
    layer, settings = se.SplitEmbedding(split, mask_zero=True), SETTINGS[head]
    build = build_classifier if head == "averaging" else build_recurrent
    model = build(layer, encoded.corpus.num_classes)
    return model, train(model, se.LazyAdam(settings.learning_rate), encoded.corpus, settings)


def build_recurrent(embedding: keras.layers.Layer, num_classes: int) -> keras.Model:
    """Build a functional model: the embedding layer, a small GRU and a softmax layer."""
    tokens = keras.Input((None,), dtype="int32", name="tokens")
    states = keras.layers.GRU(32)(embedding(tokens))
    return keras.Model(tokens, keras.layers.Dense(num_classes, activation="softmax", name=HEAD)(states))


def as_markdown(comparison: Comparison) -> str:
    """Return the table of a corpus: one line for each budget, and a column for each method.

    A cell has the test accuracy, and its difference from frequency, with the standard error over the paired seeds.
    """
    (frozen, *_), (everything, *_) = (
        [run for run in comparison.runs if run.method == method] for method in (FROZEN, ALL)
    )
    ends = ", ".join(
        f"{title}: {comparison.mean(run.method, run.budget):.1f} %"
        for title, run in (("none", frozen), (f"all {everything.budget:,}", everything))
    )
    seeds = len({run.seed for run in comparison.runs})
    lines = [("known words that train", *METHODS), ("--:",) * (1 + len(METHODS))]
    for budget in comparison.budgets:
        lines.append((f"{budget:,}", *(_cell(comparison, method, budget) for method in METHODS)))
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    heading = f"**{comparison.corpus}**, test accuracy in percent, {seeds} seeds. Known words that train: {ends}."
    return f"{heading}\n\n{table}\n\n{_validation(comparison)}"


def _cell(comparison: Comparison, method: str, budget: int) -> str:
    cell = f"{comparison.mean(method, budget):.1f}"
    runs, references = (comparison.of(each, budget) for each in (method, REFERENCE))
    share = statistics.mean(run.token_share for run in runs)
    if method != REFERENCE:
        pairs = zip(runs, references, strict=True)
        gains = [100 * (run.training.test_accuracy - other.training.test_accuracy) for run, other in pairs]
        error = f" ± {statistics.stdev(gains) / len(gains) ** 0.5:.1f}" if len(gains) > 1 else ""
        cell += f" ({statistics.mean(gains):+.1f}{error})"
    return f"{cell}, {100 * share:.0f} % of the tokens"


def _validation(comparison: Comparison) -> str:
    """Return the mean validation accuracy of each method, by which a default can be chosen."""
    means = {
        method: [comparison.mean(method, budget, "validation_accuracy") for budget in comparison.budgets]
        for method in METHODS
    }
    shown = "; ".join(f"{method} {', '.join(f'{each:.1f}' for each in found)}" for method, found in means.items())
    return f"Validation accuracy in the order of the budgets: {shown}."


def write_results(comparisons: list[Comparison], head: str, output: Path) -> None:
    """Write rows.md and rows.json into a folder; with another head than the averaging one its name is appended."""
    stem = "rows" if head == "averaging" else f"rows-{head}"
    versions = {name: version(name) for name in ("tensorflow", "keras", "numpy")}
    corpora = {
        each.corpus: [{**run._asdict(), "training": run.training._asdict()} for run in each.runs]
        for each in comparisons
    }
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{stem}.md").write_text("\n\n".join(map(as_markdown, comparisons)) + "\n", encoding="utf-8")
    content = {"head": head, "settings": SETTINGS[head]._asdict(), "versions": versions, "corpora": corpora}
    (output / f"{stem}.json").write_text(json.dumps(content, indent=2) + "\n")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(1), help="How many seeds.")
@click.option(
    "--corpus", "names", multiple=True, type=click.Choice(list(CORPORA)), help="Default: 20 Newsgroups and R8."
)
@click.option(
    "--budget", "budgets", multiple=True, type=click.IntRange(1), help="Numbers of known words. Default: 500 to 10,000."
)
@click.option("--head", default="averaging", show_default=True, type=click.Choice(list(SETTINGS)))
@click.option(
    "--output", type=click.Path(path_type=Path), help="Folder for results. Default: results in the data folder."
)
def main(seeds: int, names: tuple[str, ...], budgets: tuple[int, ...], head: str, output: Path | None) -> None:
    """Compare methods that choose the known words to train, with all of GloVe 6B 50d."""
    output, start, vectors = output or data_folder() / "results", time.perf_counter(), glove_50d()
    comparisons = []
    for name in names or DEFAULT_CORPORA:
        encoded = encode(CORPORA[name](), SETTINGS[head].max_tokens)
        comparisons.append(compare(name, encoded, vectors, seeds, budgets or BUDGETS, head))
        # A long run leaves the finished corpora if it is stopped.
        write_results(comparisons, head, output)
        click.echo(f"\n{as_markdown(comparisons[-1])}\n")
    click.echo(f"Written: {output}/rows*.md and .json, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
