"""The averaging classifier: an embedding layer and texts as token ids go in; a trained model and its cost come out.

The mean of a document's rows, then one softmax layer: nothing else, so that what the rows are worth shows.
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
    """What is the same for everything that is compared.

    `max_tokens` is where documents end: nine in ten of 20 Newsgroups are shorter than about 480 tokens.
    """

    max_tokens: int = 400
    batch_size: int = 128
    learning_rate: float = 0.02
    max_epochs: int = 60
    patience: int = 3


class Documents(NamedTuple):
    """Token ids `(num_documents, max_tokens)` int32, 0 where a document has ended, and classes `(num_documents,)`."""

    ids: NDArray[np.int32]
    labels: NDArray[np.int32]


class Corpus(NamedTuple):
    """A corpus as token ids: what is trained on, what chooses the epoch, and what is reported."""

    fit: Documents
    validation: Documents
    test: Documents

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.fit.labels.max()) + 1

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the corpus as an .npz file."""
        np.savez(path, *(array for part in self for array in part))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Corpus":
        """Reads what `save` wrote."""
        with np.load(path) as file:
            arrays = [file[name] for name in file.files]
        return cls(*(Documents(*arrays[first : first + 2]) for first in (0, 2, 4)))


class Training(NamedTuple):
    """What one training came to; accuracies are shares of documents, taken after the epoch that validation chose."""

    test_accuracy: float
    validation_accuracy: float
    best_epoch: int
    num_epochs: int
    step_seconds: float
    total_seconds: float


def build_classifier(embedding: keras.layers.Layer, num_classes: int) -> keras.Model:
    """Puts a masked mean and a softmax layer on an embedding layer, in Keras's functional API."""
    tokens = keras.Input((None,), dtype="int32", name="tokens")
    mean = keras.layers.GlobalAveragePooling1D()(embedding(tokens))
    classes = keras.layers.Dense(num_classes, activation="softmax", name=HEAD)(mean)
    return keras.Model(tokens, classes)


def train(model: keras.Model, optimizer: keras.optimizers.Optimizer, corpus: Corpus, settings: Settings) -> Training:
    """Trains until validation accuracy has not risen for `patience` epochs, and goes back to the best epoch."""
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
    """Returns the probability of each class for each document, `(num_documents, num_classes)` float32."""
    return model.predict(documents.ids, batch_size=settings.batch_size, verbose=0)


class _StepTimes(keras.callbacks.Callback):
    """Times each training step, in seconds."""

    def on_train_begin(self, logs: Any = None) -> None:
        self.seconds: list[float] = []

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._start = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.seconds.append(time.perf_counter() - self._start)
