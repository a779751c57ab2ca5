"""The contestants: which rows train, with which options, and how one contestant is trained and measured.

The functions that measure run in a new process each, so that no memory of another contestant is counted.
"""

import tempfile
from pathlib import Path
from typing import Any, Literal, NamedTuple

import keras
import numpy as np
from numpy.typing import NDArray

import splitembed as se
from benchmarks.accuracy.classifier import HEAD, Corpus, Documents, Settings, Training, build_classifier, predict, train
from benchmarks.accuracy.memory import PeakMemory

_HEAD_FILE, _PREDICTIONS_FILE = "head.npz", "predictions.npy"


class Contestant(NamedTuple):
    """One method: its name, a title for tables, which rows train, and the options of `build_split` and of the layer.

    With "all frozen" or "all trainable" rows, the layer is a `keras.layers.Embedding` of the dense matrix, which is the
    alternative to splitembed.
    """

    name: str
    title: str
    rows: Literal["all frozen", "split", "all trainable"]
    options: dict[str, Any]
    trainable_dropout: float = 0.0

    @property
    def extends(self) -> bool:
        """Return whether the vocabulary contains every word of the vectors, not only those of the training texts."""
        return bool(self.options.get("extend_vocabulary"))


def _split(name: str, trainable_dropout: float = 0.0, **options: Any) -> Contestant:
    """Return a contestant with a split, with its options as title."""
    shown = {"trainable_dropout": trainable_dropout} if trainable_dropout else options
    title = ", ".join(
        f"`{option}={value:_}`" if value is not True else f"`{option}`" for option, value in shown.items()
    )
    return Contestant(name, f"split, {title}", "split", options, trainable_dropout)


# 0.8 was selected after the test results were known. results.chosen_dropout selects on validation data.
DROPOUT_RATES = (0.3, 0.5, 0.8)
CONTESTANTS = (
    Contestant("frozen-zero", "all frozen, OOV rows zero", "all frozen", {"oov_initializer": "zeros"}),
    Contestant("frozen-random", "all frozen, OOV rows random", "all frozen", {"oov_initializer": "uniform"}),
    Contestant("split", "split: OOV rows train", "split", {}),
    *(_split(f"split-dropout-{rate}", trainable_dropout=rate) for rate in DROPOUT_RATES),
    _split("split-min-2-extended", min_count=2, extend_vocabulary=True),
    _split("split-min-5", min_count=5),
    _split("split-min-5-extended", min_count=5, extend_vocabulary=True),
    _split("split-2000", train_most_frequent=2_000),
    _split("split-10000", train_most_frequent=10_000),
    _split("split-10000-min-3", train_most_frequent=10_000, min_count=3),
    _split("split-10000-min-3-extended", train_most_frequent=10_000, min_count=3, extend_vocabulary=True),
    Contestant("all-trainable", "all trainable", "all trainable", {}),
)


class Run(NamedTuple):
    """The result of one contestant with one seed. Memory is measured for the first seed only, otherwise None."""

    seed: int
    num_trainable_rows: int
    checkpoint_bytes: int
    peak_bytes: int | None
    training: Training


def run_contestant(
    contestant: Contestant, corpus_path: Path, split_folders: list[Path], settings: Settings
) -> list[Run]:
    """Train a contestant once for each split, with the position of the split as seed.

    If the contestant has a split, the trained rows, the weights of the head and the predictions on the test documents
    are written into the first folder. Its frozen.h5 does not change.

    The measured memory is the anonymous memory above that of a process that has imported TensorFlow, loaded the corpus,
    and trained the same model on three rows. This leaves the tables, the optimizer's slots and the training step.

    Args:
        contestant: the method to train.
        corpus_path: a file that `Corpus.save` wrote.
        split_folders: a folder for each seed, written by `SplitTable.save`.
        settings: the shared settings.

    Returns:
        One result for each split.
    """
    corpus = Corpus.open(corpus_path)
    _warm_up(contestant, corpus, settings)
    with PeakMemory() as peak:
        model, first = _run(contestant, corpus, split_folders[0], 0, settings)
    if contestant.rows == "split":
        _save_trained(model, corpus, split_folders[0], settings)
    others = [
        _run(contestant, corpus, folder, seed, settings)[1] for seed, folder in enumerate(split_folders[1:], start=1)
    ]
    return [first._replace(peak_bytes=peak.growth), *others]


def predicts_the_same(tables: Path, corpus_path: Path, settings: Settings) -> bool:
    """Rebuild a model from saved tables and head, and return whether its predictions are the saved ones to the bit."""
    corpus = Corpus.open(corpus_path)
    split = se.SplitTable.open(tables)
    model = build_classifier(se.SplitEmbedding(split, mask_zero=True), corpus.num_classes)
    with np.load(tables / _HEAD_FILE) as head:
        model.get_layer(HEAD).set_weights([head["kernel"], head["bias"]])
    return _same_bits(predict(model, corpus.test, settings), np.load(tables / _PREDICTIONS_FILE))


def make_layer(contestant: Contestant, split: se.SplitTable) -> keras.layers.Layer:
    """Return the embedding layer of a contestant, which starts from the rows of a split."""
    layer = se.SplitEmbedding(split, mask_zero=True, trainable_dropout=contestant.trainable_dropout)
    if contestant.rows == "split":
        return layer
    dense = se.to_dense(layer)
    dense.trainable = contestant.rows == "all trainable"
    return dense


def make_optimizer(contestant: Contestant, settings: Settings) -> keras.optimizers.Optimizer:
    """Return `LazyAdam` for splits, and `keras.optimizers.Adam` for dense layers."""
    kind = se.LazyAdam if contestant.rows == "split" else keras.optimizers.Adam
    return kind(settings.learning_rate)


def _run(
    contestant: Contestant, corpus: Corpus, split_folder: Path, seed: int, settings: Settings
) -> tuple[keras.Model, Run]:
    keras.utils.set_random_seed(seed)
    split = se.SplitTable.open(split_folder)
    num_rows = {"all frozen": 0, "split": split.num_trainable, "all trainable": split.num_tokens}[contestant.rows]
    model = build_classifier(make_layer(contestant, split), corpus.num_classes)
    training = train(model, make_optimizer(contestant, settings), corpus, settings)
    return model, Run(seed, num_rows, _checkpoint_bytes(model), None, training)


def _warm_up(contestant: Contestant, corpus: Corpus, settings: Settings) -> None:
    """Train on three rows, so that TensorFlow starts its threads and traces before memory is measured."""
    split = se.SplitTable.from_matrix(np.zeros((3, 2), np.float32), [1], padding=0)
    few = Corpus(*(Documents(np.minimum(part.ids[:2], 2), part.labels[:2]) for part in corpus))
    model = build_classifier(make_layer(contestant, split), corpus.num_classes)
    train(model, make_optimizer(contestant, settings), few, settings._replace(max_epochs=1))


def _checkpoint_bytes(model: keras.Model) -> int:
    """Return the size of the weights file, which also contains the optimizer's slots."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.weights.h5")
        model.save_weights(path)
        return path.stat().st_size


def _save_trained(model: keras.Model, corpus: Corpus, tables: Path, settings: Settings) -> None:
    (layer,) = (layer for layer in model.layers if isinstance(layer, se.SplitEmbedding))
    layer.to_split().save(tables)
    kernel, bias = model.get_layer(HEAD).get_weights()
    np.savez(tables / _HEAD_FILE, kernel=kernel, bias=bias)
    np.save(tables / _PREDICTIONS_FILE, predict(model, corpus.test, settings))


def _same_bits(one: NDArray[np.float32], other: NDArray[np.float32]) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()
