"""The averaging classifier, and its training.

It is the mean of a document's rows and one softmax layer, so that its accuracy depends mostly on the rows.
"""

import os
import statistics
import time
from typing import Any, NamedTuple

import keras
import numpy as np
from numpy.typing import NDArray

HEAD = "head"


class Settings(NamedTuple):
    """Settings that all contestants share.

    Documents are cut after `max_tokens`. Nine in ten documents of 20 Newsgroups have less than about 480 tokens.
    """

    max_tokens: int = 400
    batch_size: int = 128
    learning_rate: float = 0.02
    max_epochs: int = 60
    patience: int = 3


class Documents(NamedTuple):
    """Token ids `(num_documents, max_tokens)` int32, padded with 0, and classes `(num_documents,)`."""

    ids: NDArray[np.int32]
    labels: NDArray[np.int32]


class Corpus(NamedTuple):
    """A corpus as token ids: training documents, validation documents that choose the epoch, and test documents."""

    fit: Documents
    validation: Documents
    test: Documents

    @property
    def num_classes(self) -> int:
        """Return the number of classes."""
        return int(self.fit.labels.max()) + 1

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the corpus as an .npz file."""
        np.savez(path, *(array for part in self for array in part))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Corpus":
        """Read a corpus that `save` wrote."""
        with np.load(path) as file:
            arrays = [file[name] for name in file.files]
        return cls(*(Documents(*arrays[first : first + 2]) for first in (0, 2, 4)))


class Training(NamedTuple):
    """The result of one training. Accuracies are shares of documents, with the weights of the best validation epoch."""

    test_accuracy: float
    validation_accuracy: float
    best_epoch: int
    num_epochs: int
    step_seconds: float
    total_seconds: float


def build_classifier(embedding: keras.layers.Layer, num_classes: int) -> keras.Model:
    """Build a functional model: the embedding layer, a masked mean and a softmax layer."""
    tokens = keras.Input((None,), dtype="int32", name="tokens")
    mean = keras.layers.GlobalAveragePooling1D()(embedding(tokens))
    classes = keras.layers.Dense(num_classes, activation="softmax", name=HEAD)(mean)
    return keras.Model(tokens, classes)


def train(model: keras.Model, optimizer: keras.optimizers.Optimizer, corpus: Corpus, settings: Settings) -> Training:
    """Train until validation accuracy has not improved for `patience` epochs, and restore the best epoch."""
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    stopping = keras.callbacks.EarlyStopping(
        "val_accuracy", mode="max", patience=settings.patience, restore_best_weights=True
    )
    steps, start = _StepTimes(), time.perf_counter()
    history = model.fit(
        *corpus.fit,
        validation_data=corpus.validation,
        epochs=settings.max_epochs,
        batch_size=settings.batch_size,
        callbacks=[steps, stopping],
        verbose=0,
    ).history["val_accuracy"]
    seconds = time.perf_counter() - start
    _, test_accuracy = model.evaluate(*corpus.test, batch_size=settings.batch_size, verbose=0)
    best = int(np.argmax(history))
    return Training(test_accuracy, history[best], best + 1, len(history), statistics.median(steps.seconds), seconds)


def predict(model: keras.Model, documents: Documents, settings: Settings) -> NDArray[np.float32]:
    """Return the probability of each class for each document, `(num_documents, num_classes)` float32."""
    return model.predict(documents.ids, batch_size=settings.batch_size, verbose=0)


class _StepTimes(keras.callbacks.Callback):
    """A callback that measures each training step, in seconds."""

    def on_train_begin(self, logs: Any = None) -> None:
        self.seconds: list[float] = []

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._start = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.seconds.append(time.perf_counter() - self._start)
