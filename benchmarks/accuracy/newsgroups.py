"""Which rows train, and what it is worth: GloVe and two labelled corpora go in; tables, a plot and a proof come out.

Fourteen ways to train one averaging classifier (`contestants.py`), side by side on 20 Newsgroups and on Reuters R8.
They share the vocabulary (every token of the training part; with `extend_vocabulary` every word of GloVe too), the
documents, the learning rate, and the rule that picks the epoch: a tenth of the training documents is kept back for
validation, which also chooses among the probabilities of `trainable_dropout`. Splits train with `LazyAdam`, whose step
costs what the rows of the batch cost; at these sizes, up to 31,000 trainable rows of which a batch has thousands,
Keras's Adam is about as fast and as good. Dense layers train with Keras's Adam, as one does without splitembed. Then
each split's two tables are opened in a new process, which must predict the same to the bit.

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
    """Calls a function in a Python process of its own, which inherits nothing."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


class Bench(NamedTuple):
    """How contestants are run: what they share, how many seeds each, and how a function is called.

    Memory is measured right only where `call` makes a fresh process each time.
    """

    settings: Settings = Settings()
    num_seeds: int = NUM_SEEDS
    call: Callable[..., Any] = in_fresh_process
    say: Callable[[str], Any] = click.echo


class Encoded(NamedTuple):
    """A corpus as ids, the adapted layer that made them, and how often each token occurs in what it was adapted to."""

    vectorize: keras.layers.TextVectorization
    counts: Counter[str]
    corpus: Corpus


def encode(texts: Texts, max_tokens: int, vocabulary: list[str] | None = None) -> Encoded:
    """Keeps a tenth of the training part back, makes a vocabulary of every token of the rest, and ids of all.

    Args:
        texts: the corpus.
        max_tokens: where documents end.
        vocabulary: the tokens in id order, padding and `[UNK]` first, where they are known already.
    """
    order = np.random.default_rng(0).permutation(len(texts.train_texts))
    kept, fit = np.split(order, [int(VALIDATION_SHARE * len(order))])
    fit_texts, kept_texts = ([texts.train_texts[place] for place in part] for part in (fit, kept))
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
    """Trains every contestant on one corpus, and proves that each split's tables predict the same when opened again.

    Args:
        name: the corpus's name in tables.
        texts: the corpus.
        source: the pretrained vectors, as `read_vectors` takes them: here the path of GloVe's text.
        tables: the folder that gets each split's trained frozen.h5 and trainable.h5, head and predictions; but for
            extended vocabularies, whose frozen.h5 would be all of the pretrained vectors each time.
        bench: how contestants are run.

    Raises:
        SplitEmbedError: a rebuilt model predicts otherwise.
    """
    encoded = encode(texts, bench.settings.max_tokens)
    vectors = se.read_vectors(source)  # the long file once, for every split below
    extended = se.build_split(encoded.vectorize, vectors, counts=encoded.counts, extend_vocabulary=True)
    coverage = extended.coverage  # of the training part's tokens: words that were appended are not counted
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
    """Builds a split for each seed, has the contestant trained on them, and a split's tables proven elsewhere."""
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
            _prove(folders[0], corpus_path, bench)
    return runs


def _prove(tables: Path, corpus_path: Path, bench: Bench) -> None:
    if not bench.call(predicts_the_same, tables, corpus_path, bench.settings):
        raise SplitEmbedError(f"{tables}: opened in a new process, these tables predict otherwise than before.")
    bench.say("  frozen.h5 and trainable.h5, opened in a new process, predict the same to the bit.")


def write_results(comparisons: list[Comparison], settings: Settings, output: Path) -> None:
    """Writes newsgroups.md, newsgroups.json and newsgroups.png into a folder."""
    versions = {name: version(name) for name in ("tensorflow", "keras", "numpy", "h5py")}
    output.mkdir(parents=True, exist_ok=True)
    blocks = [*map(as_markdown, comparisons), legend(settings), *map(gains, comparisons)]
    (output / "newsgroups.md").write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    (output / "newsgroups.json").write_text(as_json(comparisons, settings, versions))
    plot(comparisons, output / "newsgroups.png")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seeds", "num_seeds", default=NUM_SEEDS, show_default=True, type=click.IntRange(1), help="How many.")
@click.option(
    "--output", type=click.Path(path_type=Path), help="Where to leave results. Default: results in the data folder."
)
def main(num_seeds: int, output: Path | None) -> None:
    """Compare which rows train on 20 Newsgroups and Reuters R8, with the full GloVe 6B 50d table."""
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
