"""Accuracy by the choice of trainable rows, on 20 Newsgroups and Reuters R8 with GloVe.

Fourteen methods (`contestants.py`) train the same averaging classifier. They share the vocabulary (every token of the
training documents; with `extend_vocabulary` every word of GloVe too), the documents, the learning rate, and the rule
that selects the epoch: a tenth of the training documents is kept for validation, which also selects the rate of
`trainable_dropout`. Splits train with `LazyAdam`, whose step costs what the rows of the batch cost. At these sizes, up
to 31,000 trainable rows with thousands of them in a batch, Keras's Adam is about as fast and as accurate. Dense layers
train with Keras's Adam. Then the two tables of each split are opened in a new process, which must make the same
predictions to the bit.

    python -m benchmarks.accuracy.newsgroups              # three seeds, about half an hour on two cores
    python -m benchmarks.accuracy.newsgroups --seeds 1    # a quick look
"""

import multiprocessing
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
import keras
import numpy as np

import splitembed as se
from benchmarks.accuracy.classifier import Corpus, Documents, Settings
from benchmarks.accuracy.contestants import CONTESTANTS, Contestant, Run, predicts_the_same, run_contestant
from benchmarks.accuracy.results import Comparison, as_json, as_line, as_markdown, gains, legend, plot
from benchmarks.data.corpora import Texts, newsgroups, reuters_r8, write_glove_text
from benchmarks.data.packages import data_folder
from splitembed.errors import SplitEmbedError

CORPORA: dict[str, Callable[[], Texts]] = {"20 Newsgroups": newsgroups, "Reuters R8": reuters_r8}
NUM_SEEDS = 3
VALIDATION_SHARE = 0.1

Result = TypeVar("Result")


def in_fresh_process(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function in a new Python process, which inherits nothing."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


class Bench(NamedTuple):
    """How contestants run: the shared settings, the number of seeds, and how a function is called.

    Memory is only measured correctly if `call` starts a new process each time.
    """

    settings: Settings = Settings()
    num_seeds: int = NUM_SEEDS
    call: Callable[..., Any] = in_fresh_process
    say: Callable[[str], Any] = click.echo


class Encoded(NamedTuple):
    """A corpus as ids, the adapted layer that made them, and the count of each token in its training documents."""

    vectorize: keras.layers.TextVectorization
    counts: Counter[str]
    corpus: Corpus


def encode(texts: Texts, max_tokens: int, vocabulary: list[str] | None = None) -> Encoded:
    """Split off a tenth of the training documents for validation, and turn all documents into ids.

    Args:
        texts: the corpus.
        max_tokens: documents are cut or padded to this length.
        vocabulary: the tokens in id order, padding and `[UNK]` first. By default every token of the training documents.

    Returns:
        The corpus as ids, with its vocabulary and counts.
    """
    order = np.random.default_rng(0).permutation(len(texts.train_texts))
    kept, fit = np.split(order, [int(VALIDATION_SHARE * len(order))])
    fit_texts, kept_texts = ([texts.train_texts[index] for index in part] for part in (fit, kept))
    options = {"standardize": None, "output_sequence_length": max_tokens}
    if vocabulary is None:
        vectorize = keras.layers.TextVectorization(**options)
        vectorize.adapt(fit_texts)
    else:
        vectorize = keras.layers.TextVectorization(**options, vocabulary=vocabulary[2:])
    parts = (
        (fit_texts, texts.train_labels[fit]),
        (kept_texts, texts.train_labels[kept]),
        (texts.test_texts, texts.test_labels),
    )
    corpus = Corpus(*(Documents(np.asarray(vectorize(chosen), np.int32), labels) for chosen, labels in parts))
    return Encoded(vectorize, Counter(token for text in fit_texts for token in text.split()), corpus)


def compare(name: str, texts: Texts, source: Any, tables: Path, bench: Bench) -> Comparison:
    """Train every contestant on one corpus, and check that the saved tables of each split give the same predictions.

    Args:
        name: the name of the corpus in tables.
        texts: the corpus.
        source: the pretrained vectors, as for `read_vectors`.
        tables: the folder for the trained frozen.h5 and trainable.h5, head and predictions of each split. Splits with
            an extended vocabulary are not kept, because their frozen.h5 contains all pretrained vectors.
        bench: how contestants run.

    Returns:
        The results of all contestants.

    Raises:
        SplitEmbedError: a rebuilt model makes other predictions.
    """
    encoded = encode(texts, bench.settings.max_tokens)
    # The long file is read once, for every split below.
    vectors = se.read_vectors(source)
    extended = se.build_split(encoded.vectorize, vectors, counts=encoded.counts, extend_vocabulary=True)
    # The coverage counts tokens of the training documents, not the appended words.
    coverage = extended.coverage
    assert coverage is not None and extended.vocabulary is not None
    corpus_of = {False: encoded.corpus, True: encode(texts, bench.settings.max_tokens, [*extended.vocabulary]).corpus}
    sizes = " + ".join(f"{len(part.labels):,} {title}" for title, part in encoded.corpus._asdict().items())
    bench.say(f"{name}: {sizes} documents.\n{coverage}")
    runs = {
        each.name: _measure(each, encoded._replace(corpus=corpus_of[each.extends]), vectors, tables / each.name, bench)
        for each in CONTESTANTS
    }
    return Comparison(name, coverage, runs)


def _measure(contestant: Contestant, encoded: Encoded, vectors: Any, tables: Path, bench: Bench) -> list[Run]:
    """Build a split for each seed, train the contestant on them, and check the saved tables in another process."""
    with tempfile.TemporaryDirectory() as scratch:
        corpus_path = Path(scratch, "corpus.npz")
        encoded.corpus.save(corpus_path)
        folders = [Path(scratch, f"seed-{seed}") for seed in range(bench.num_seeds)]
        if contestant.rows == "split" and not contestant.extends:
            folders[0] = tables
        for seed, folder in enumerate(folders):
            options = {**contestant.options, "counts": encoded.counts, "seed": seed}
            se.build_split(encoded.vectorize, vectors, **options).save(folder)
        runs: list[Run] = bench.call(run_contestant, contestant, corpus_path, folders, bench.settings)
        bench.say(as_line(contestant, runs))
        if contestant.rows == "split":
            _check_tables(folders[0], corpus_path, bench)
    return runs


def _check_tables(tables: Path, corpus_path: Path, bench: Bench) -> None:
    if not bench.call(predicts_the_same, tables, corpus_path, bench.settings):
        raise SplitEmbedError(
            f"{tables}: opened in a new process, these tables give other predictions than the trained model."
        )
    bench.say("  frozen.h5 and trainable.h5, opened in a new process, give the same predictions to the bit.")


def write_results(comparisons: list[Comparison], settings: Settings, output: Path) -> None:
    """Write newsgroups.md, newsgroups.json and newsgroups.png into a folder."""
    versions = {name: version(name) for name in ("tensorflow", "keras", "numpy", "h5py")}
    output.mkdir(parents=True, exist_ok=True)
    blocks = [*map(as_markdown, comparisons), legend(settings), *map(gains, comparisons)]
    (output / "newsgroups.md").write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    (output / "newsgroups.json").write_text(as_json(comparisons, settings, versions))
    plot(comparisons, output / "newsgroups.png")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--seeds", "num_seeds", default=NUM_SEEDS, show_default=True, type=click.IntRange(1), help="How many seeds."
)
@click.option(
    "--output", type=click.Path(path_type=Path), help="Folder for results. Default: results in the data folder."
)
def main(num_seeds: int, output: Path | None) -> None:
    """Compare choices of trainable rows on 20 Newsgroups and Reuters R8, with all of GloVe 6B 50d."""
    output = output or data_folder() / "results"
    bench = Bench(num_seeds=num_seeds)
    glove = data_folder() / "glove.6B.50d.txt"
    if not glove.exists():
        write_glove_text(glove)
    comparisons = []
    for name, fetch_texts in CORPORA.items():
        tables = output / "tables" / name.lower().replace(" ", "-")
        comparisons.append(compare(name, fetch_texts(), glove, tables, bench))
        click.echo(f"\n{as_markdown(comparisons[-1])}\n")
    write_results(comparisons, bench.settings, output)
    click.echo("\n".join([*map(gains, comparisons), f"Written: {output}/newsgroups.md, .json and .png"]))


if __name__ == "__main__":
    main()
