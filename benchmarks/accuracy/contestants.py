"""What is compared: a contestant, splits and a corpus go in; what training came to, and what it cost, comes out.

Each function here that measures runs in a process of its own, so that nothing of another contestant is in its memory.
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
    """One way to train: its name, a title for tables, which rows train, the options of `build_split` and of the layer.

    Where rows are "all frozen" or "all trainable", the layer is what one uses without splitembed: a
    `keras.layers.Embedding` that holds the dense matrix.
    """

    name: str
    title: str
    rows: Literal["all frozen", "split", "all trainable"]
    options: dict[str, Any]
    trainable_dropout: float = 0.0

    @property
    def extends(self) -> bool:
        """Whether its vocabulary holds every word of the vectors, also those that training never saw."""
        return bool(self.options.get("extend_vocabulary"))


def _split(name: str, trainable_dropout: float = 0.0, **options: Any) -> Contestant:
    """A split whose title is its options as one writes them."""
    told = {"trainable_dropout": trainable_dropout} if trainable_dropout else options
    title = ", ".join(f"`{option}={value:_}`" if value is not True else f"`{option}`" for option, value in told.items())
    return Contestant(name, f"split, {title}", "split", options, trainable_dropout)


# 0.8 was picked after test results had been seen; results.chosen_dropout says what validation chooses.
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
    """What one contestant came to with one seed; memory is None for every seed but the first of its process."""

    seed: int
    num_trainable_rows: int
    checkpoint_bytes: int
    peak_bytes: int | None
    training: Training


def run_contestant(
    contestant: Contestant, corpus_path: Path, split_folders: list[Path], settings: Settings
) -> list[Run]:
    """Trains a contestant once for each split; seed i starts from split i.

    The first folder of a split is left with its rows as trained (trainable.h5 alone is written again: frozen rows are
    the same), the weights of the head and the predictions on the test documents.

    Memory is anonymous memory above that of a process that has imported TensorFlow, holds the corpus, and has trained
    the same model on three rows: what remains is the tables, the optimizer's slots and the step.

    Args:
        contestant: what to train.
        corpus_path: where `Corpus.save` wrote.
        split_folders: a folder for each seed, as `SplitTable.save` wrote it.
        settings: what all contestants share.
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
    """Rebuilds a model from frozen.h5, trainable.h5 and the head's weights, and compares predictions to the bit."""
    corpus = Corpus.open(corpus_path)
    split = se.SplitTable.open(tables)
    model = build_classifier(se.SplitEmbedding(split, mask_zero=True), corpus.num_classes)
    with np.load(tables / _HEAD_FILE) as head:
        model.get_layer(HEAD).set_weights([head["kernel"], head["bias"]])
    return _same_bits(predict(model, corpus.test, settings), np.load(tables / _PREDICTIONS_FILE))


def make_layer(contestant: Contestant, split: se.SplitTable) -> keras.layers.Layer:
    """Makes a contestant's embedding layer from the split that it starts with."""
    layer = se.SplitEmbedding(split, mask_zero=True, trainable_dropout=contestant.trainable_dropout)
    if contestant.rows == "split":
        return layer
    dense = se.to_dense(layer)
    dense.trainable = contestant.rows == "all trainable"
    return dense


def make_optimizer(contestant: Contestant, settings: Settings) -> keras.optimizers.Optimizer:
    """Adam: the lazy one for splits, Keras's own elsewhere."""
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
    """Lets TensorFlow start its threads and trace, on three rows."""
    split = se.SplitTable.from_matrix(np.zeros((3, 2), np.float32), [1], padding=0)
    few = Corpus(*(Documents(np.minimum(part.ids[:2], 2), part.labels[:2]) for part in corpus))
    model = build_classifier(make_layer(contestant, split), corpus.num_classes)
    train(model, make_optimizer(contestant, settings), few, settings._replace(max_epochs=1))


def _checkpoint_bytes(model: keras.Model) -> int:
    """Size of the weights file, in which Keras puts the optimizer's slots too."""
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
