"""Two real processes that train together over the loopback interface, by the loop that notebooks/ documents."""

import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from splitembed import LazyAdam, SplitTable
from tests.helpers.fresh import ROOT

EXAMPLE = ROOT / "notebooks" / "several_workers.py"
SECONDS = 120  # to start, train and end; a worker that waits for another one for longer has failed
TOLERANCE = 1e-5  # float32: workers sum in another order
NUM_TOKENS, DIM, LENGTH, GLOBAL_BATCH, NUM_EXAMPLES = 12, 4, 6, 8, 33  # the last batch leaves a worker without examples
TRAINABLE_IDS = [1, 4, 5, 9]
OPTIMIZERS = {
    "Adam": lambda: keras.optimizers.Adam(0.05),
    "LazyAdam": lambda: LazyAdam(0.05),
    "LazyAdam weight decay": lambda: LazyAdam(0.05, weight_decay=0.1),
}
WORKER = """
import sys
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
import numpy as np
from tests.layers.test_workers import OPTIMIZERS, trained
np.savez(sys.argv[1], **{name: trained(strategy, name) for name in OPTIMIZERS})
"""


def example():
    """The documented file, as a module."""
    spec = importlib.util.spec_from_file_location(EXAMPLE.stem, EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_split() -> SplitTable:
    matrix = np.random.default_rng(0).normal(size=(NUM_TOKENS, DIM)).astype(np.float32)
    return SplitTable.from_matrix(matrix, TRAINABLE_IDS)


def make_dataset() -> tf.data.Dataset:
    """Ids that repeat within and across workers; no trainable one in the second batch, on any worker."""
    generator = np.random.default_rng(1)
    ids = generator.integers(0, NUM_TOKENS, (NUM_EXAMPLES, LENGTH))
    ids[GLOBAL_BATCH : 2 * GLOBAL_BATCH] = 0
    targets = generator.normal(size=(NUM_EXAMPLES, 1)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((ids, targets)).batch(GLOBAL_BATCH)


def trained(strategy: tf.distribute.Strategy, optimizer_name: str) -> np.ndarray:
    """All that three epochs of the documented loop moved, flat: the rows, the other weights, the optimizer's slots."""
    keras.utils.set_random_seed(0)
    documented = example()
    with strategy.scope():
        model, optimizer = documented.make_model(make_split()), OPTIMIZERS[optimizer_name]()
    before = model.layers[1].to_split()
    documented.train(strategy, model, optimizer, make_dataset(), epochs=3)
    after = model.layers[1].to_split()
    assert after.frozen.tobytes() == before.frozen.tobytes()
    assert (np.abs(after.trainable - before.trainable).max(axis=1) > 100 * TOLERANCE).all()
    variables = [*model.trainable_variables, *optimizer.variables]
    return np.concatenate([np.ravel(variable.numpy()).astype(np.float64) for variable in variables])


def free_ports(number: int) -> list[int]:
    """Ports of the loopback interface that nobody listens on; all are held until all are chosen."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def run_workers(command: list[str], folder: Path, number: int = 2) -> list[str]:
    """Runs one process for each worker, each in a folder of its own; gives what each printed. None outlives it."""
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(number)]}
    processes = []
    for index in range(number):
        (folder / str(index)).mkdir()
        environment = {
            **os.environ,
            "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}}),
            "PYTHONPATH": str(ROOT),
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        processes.append(
            subprocess.Popen(
                [sys.executable, *command],
                env=environment,
                cwd=folder / str(index),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    try:
        printed = [process.communicate(timeout=SECONDS)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [process.returncode for process in processes] == [0] * number, "\n\n".join(printed)
    return printed


@pytest.fixture(scope="module")
def workers(tmp_path_factory) -> list[dict[str, np.ndarray]]:
    """What each of two workers ended with, by the optimizer's name."""
    folder = tmp_path_factory.mktemp("workers")
    run_workers(["-c", WORKER, "found.npz"], folder)
    return [dict(np.load(folder / str(index) / "found.npz")) for index in range(2)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_two_workers_agree_with_each_other_and_with_one_process(name, workers):
    first, second = (worker[name] for worker in workers)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, trained(tf.distribute.get_strategy(), name), rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.slow
def test_the_example_runs_as_it_stands(tmp_path):
    """The same error on two workers and on one, and the first worker alone saves."""
    pair, alone = tmp_path / "pair", tmp_path / "alone"
    pair.mkdir()
    alone.mkdir()
    printed = [lines.splitlines()[-1] for lines in run_workers([str(EXAMPLE)], pair)]
    assert printed[0] == printed[1] and printed[0].startswith("2 workers, mean squared error ")
    (by_one,) = run_workers([str(EXAMPLE)], alone, number=1)
    assert by_one.splitlines()[-1] == printed[0].replace("2 workers", "1 workers")
    saved = SplitTable.open(pair / "0" / "reviews")
    np.testing.assert_allclose(
        saved.trainable, SplitTable.open(alone / "0" / "reviews").trainable, rtol=0, atol=TOLERANCE
    )
    assert not (pair / "1" / "reviews").exists()
