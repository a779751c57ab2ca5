"""Processes that the crash tests start: one writes splits into a folder for ever, one reads them for some seconds.

Run as `python -m tests.crash.worker write|read|fit FOLDER ARGUMENT`.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np

from splitembed.split.table import SplitTable

NUM_TOKENS, DIM = 4_000, 32
VOCABULARY = [f"token {number}" for number in range(NUM_TOKENS)]


def make_split(number: int) -> SplitTable:
    """Return split 0 or 1; they have different frozen rows, trainable rows and remaps."""
    matrix = np.full((NUM_TOKENS, DIM), number + 1, np.float32) * np.arange(NUM_TOKENS, dtype=np.float32)[:, None]
    return SplitTable.from_matrix(matrix, range(number, NUM_TOKENS, 7), vocabulary=VOCABULARY)


def number_of(folder: Path) -> int:
    """Return which split a folder holds, after comparing every byte of it.

    Raises:
        AssertionError: it is neither.
    """
    split = SplitTable.open(folder, verify=True)
    number = int(split.lookup([1])[0, 0]) - 1
    expected = make_split(number)
    np.testing.assert_array_equal(split.combine(), expected.combine())
    np.testing.assert_array_equal(split.remap, expected.remap)
    assert list(split.vocabulary or []) == VOCABULARY
    return number


def write(folder: Path, first: int) -> None:
    """Save both splits in turn until the process is killed."""
    splits = [make_split(number) for number in (first, 1 - first)]
    print("ready", flush=True)
    while True:
        for split in splits:
            split.save(folder)


def read(folder: Path, seconds: float) -> None:
    """Read the folder for some seconds, and print how often each split was found."""
    end, found = time.monotonic() + seconds, [0, 0]
    while time.monotonic() < end:
        found[number_of(folder)] += 1
    print(*found, flush=True)


def fit(folder: Path, kill_after: int) -> None:
    """Train four epochs, saved after each, from the last saved one on; end like a killed process after some epoch."""
    import keras

    import splitembed as se
    from splitembed import LazyAdam, SplitEmbedding

    path, log = folder / "model.keras", folder / "epochs"
    rng = np.random.default_rng(0)
    ids, targets = rng.integers(0, 50, (64, 5)), rng.normal(size=(64, 1))
    if path.exists():
        model = keras.models.load_model(path)
    else:
        keras.utils.set_random_seed(0)
        split = SplitTable.from_matrix(rng.normal(size=(50, 4)), range(0, 50, 3))
        layers = [SplitEmbedding(split), keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1)]
        model = keras.Sequential([keras.Input((5,), dtype="int32"), *layers])
        model.compile(LazyAdam(0.05), "mse")

    def save(epoch: int, logs: object) -> None:
        se.save_model(model, path)
        log.write_text(str(epoch + 1))
        if epoch + 1 == kill_after:
            os.kill(os.getpid(), 9)

    done = int(log.read_text()) if log.exists() else 0
    callbacks = [keras.callbacks.LambdaCallback(on_epoch_end=save)]
    model.fit(ids, targets, epochs=4, initial_epoch=done, batch_size=16, shuffle=False, verbose=0, callbacks=callbacks)
    np.save(folder / "result.npy", model.predict(ids, verbose=0))


if __name__ == "__main__":
    tasks = {"write": (write, int), "read": (read, float), "fit": (fit, int)}
    task, kind = tasks[sys.argv[1]]
    task(Path(sys.argv[2]), kind(sys.argv[3]))
