"""Two processes that train together over the loopback interface, with the training loop of notebooks/."""

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
from tests.helpers.models import split_of_twelve

# `make test-all` runs it: several processes import TensorFlow.
pytestmark = pytest.mark.slow

EXAMPLE = ROOT / "notebooks" / "several_workers.py"
# to start, train and end; a worker that waits longer for another one has failed
SECONDS = 120
# float32: workers sum in another order
TOLERANCE = 1e-5
# one worker gets no example of the last batch
NUM_TOKENS, LENGTH, GLOBAL_BATCH, NUM_EXAMPLES = 12, 6, 8, 33
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
    """Import the documented file as a module."""
    spec = importlib.util.spec_from_file_location(EXAMPLE.stem, EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_dataset() -> tf.data.Dataset:
    """Ids that repeat within and across workers; the second batch has no trainable id."""
    generator = np.random.default_rng(1)
    ids = generator.integers(0, NUM_TOKENS, (NUM_EXAMPLES, LENGTH))
    ids[GLOBAL_BATCH : 2 * GLOBAL_BATCH] = 0
    targets = generator.normal(size=(NUM_EXAMPLES, 1)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((ids, targets)).batch(GLOBAL_BATCH)


def trained(strategy: tf.distribute.Strategy, optimizer_name: str) -> np.ndarray:
    """Return the weights and the optimizer's slots after three epochs of the documented loop, as one vector."""
    keras.utils.set_random_seed(0)
    documented = example()
    with strategy.scope():
        model, optimizer = documented.make_model(split_of_twelve()), OPTIMIZERS[optimizer_name]()
    before = model.layers[1].to_split()
    documented.train(strategy, model, optimizer, make_dataset(), epochs=3)
    after = model.layers[1].to_split()
    assert after.frozen.tobytes() == before.frozen.tobytes()
    assert (np.abs(after.trainable - before.trainable).max(axis=1) > 100 * TOLERANCE).all()
    variables = [*model.trainable_variables, *optimizer.variables]
    return np.concatenate([np.ravel(variable.numpy()).astype(np.float64) for variable in variables])


def free_ports(number: int) -> list[int]:
    """Return free ports of the loopback interface; all are held until all are chosen."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def run_workers(command: list[str], folder: Path, number: int = 2) -> list[str]:
    """Run one process for each worker in its own folder, and return their outputs; kill those that are left."""
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
    """The result of each of two workers, by the name of the optimizer."""
    folder = tmp_path_factory.mktemp("workers")
    run_workers(["-c", WORKER, "found.npz"], folder)
    return [dict(np.load(folder / str(index) / "found.npz")) for index in range(2)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_two_workers_agree_with_each_other_and_with_one_process(name, workers):
    first, second = (worker[name] for worker in workers)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, trained(tf.distribute.get_strategy(), name), rtol=TOLERANCE, atol=TOLERANCE)


def test_the_example_runs_unchanged(tmp_path):
    """Two workers end with the error of one, and only the first worker saves."""
    pair, single = tmp_path / "pair", tmp_path / "single"
    pair.mkdir()
    single.mkdir()
    printed = [lines.splitlines()[-1] for lines in run_workers([str(EXAMPLE)], pair)]
    assert printed[0] == printed[1] and printed[0].startswith("2 workers, mean squared error ")
    (by_one,) = run_workers([str(EXAMPLE)], single, number=1)
    assert by_one.splitlines()[-1] == printed[0].replace("2 workers", "1 workers")
    saved = SplitTable.open(pair / "0" / "reviews")
    np.testing.assert_allclose(
        saved.trainable, SplitTable.open(single / "0" / "reviews").trainable, rtol=0, atol=TOLERANCE
    )
    assert not (pair / "1" / "reviews").exists()
