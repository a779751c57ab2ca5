"""What can go wrong while files are written and models run: each function raises AssertionError where data is lost."""

import os
import random
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from tests.crash.worker import make_split, number_of

ROOT = Path(__file__).parents[2]


def start(task: str, folder: Path, argument: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.crash.worker", task, str(folder), str(argument)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def kill_writers(folder: Path, times: int, seed: int = 0) -> list[int]:
    """Kill a process that saves splits at random moments, and return how often the folder then held each split."""
    random.seed(seed)
    make_split(0).save(folder)
    found = [0, 0]
    for number in range(times):
        with start("write", folder, number % 2) as writer:
            assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
            # A save takes some 10 ms: the moment is anywhere in it.
            time.sleep(random.uniform(0, 0.1))
            writer.kill()
        found[number_of(folder)] += 1
    # What the dead writers left goes with the next save.
    make_split(0).save(folder)
    assert sorted(os.listdir(folder)) == ["frozen.h5", "trainable.h5"], os.listdir(folder)
    return found


def write_and_read(folder: Path, seconds: float, writers: int = 2, readers: int = 8) -> list[int]:
    """Let processes write and read one folder side by side, and return how often each split was read."""
    make_split(0).save(folder)
    writing = [start("write", folder, number % 2) for number in range(writers)]
    for process in writing:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    outputs = [process.communicate() for process in [start("read", folder, seconds) for _ in range(readers)]]
    for process in writing:
        assert process.poll() is None, process.stderr and process.stderr.read()
        process.kill()
        process.communicate()
    assert all(not errors for _, errors in outputs), [errors[-2000:] for _, errors in outputs if errors]
    counts = np.array([[int(word) for word in output.split()] for output, _ in outputs]).sum(axis=0)
    return [int(count) for count in counts]


def fill_disk(folder: Path) -> str:
    """Save a split on a full disk: a small tmpfs, or without the right to mount one a limit on the size of files."""
    disk = folder / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=900k", "tmpfs", str(disk)]
    is_mounted = subprocess.run(command, capture_output=True).returncode == 0
    code = (
        "import sys, resource, signal\nfrom pathlib import Path\nfrom tests.crash.worker import make_split, number_of\n"
        "folder = Path(sys.argv[1])\nmake_split(0).save(folder)\n"
        "if sys.argv[2] == 'limit':\n"
        "    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))\n"
        "before = sorted(path.name for path in folder.iterdir())\n"
        "try:\n    make_split(1).save(folder)\nexcept OSError as error:\n    print('OSError', error.errno)\n"
        "assert number_of(folder) == 0\n"
        "assert sorted(path.name for path in folder.iterdir()) == before\n"
    )
    try:
        arguments = [sys.executable, "-c", code, str(disk), "full" if is_mounted else "limit"]
        done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True)
    finally:
        if is_mounted:
            subprocess.run(["umount", str(disk)], check=True)
    assert done.returncode == 0 and done.stdout.startswith("OSError"), done.stderr
    return "a full tmpfs" if is_mounted else "a limit on the size of files"


def fork_after_open(folder: Path, children: int = 4) -> None:
    """Read a mapped split in forked children and in the parent."""
    make_split(1).save(folder)
    code = (
        "import os, sys\nfrom pathlib import Path\nimport numpy as np\n"
        "from splitembed.split.table import SplitTable\nfrom tests.crash.worker import make_split\n"
        "split, expected = SplitTable.open(sys.argv[1]), make_split(1)\n"
        "def same():\n"
        "    return (split.combine() == expected.combine()).all() and list(split.vocabulary)[9] == 'token 9'\n"
        "pids = []\n"
        "for _ in range(int(sys.argv[2])):\n"
        "    pid = os.fork()\n    if not pid:\n        os._exit(0 if same() else 1)\n    pids.append(pid)\n"
        "assert same() and not any(os.waitpid(pid, 0)[1] for pid in pids)\n"
    )
    command = [sys.executable, "-c", code, str(folder), str(children)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def call_in_threads(calls: int, threads: int = 8) -> None:
    """Call one layer in many threads at once, and compare every row."""
    from splitembed import SplitEmbedding

    split = make_split(0)
    layer, expected, faults = SplitEmbedding(split), split.combine(), []
    layer.build()

    def call(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(calls):
            ids = rng.integers(0, split.num_tokens, rng.integers(1, 50))
            if not np.array_equal(np.asarray(layer(ids)), expected[ids]):
                faults.append(ids)

    workers = [threading.Thread(target=call, args=(seed,)) for seed in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert faults == []


def train_long(steps: int) -> tuple[int, int]:
    """Train with batches of many shapes, and return by how many bytes the memory grew, and how often it was traced."""
    import keras
    import tensorflow as tf

    from splitembed import LazyAdam, SplitEmbedding

    split, traces = make_split(0), []
    layer = SplitEmbedding(split)
    model = keras.Sequential([keras.Input((None,), dtype="int32"), layer, keras.layers.GlobalAveragePooling1D()])
    optimizer = LazyAdam(0.01)
    optimizer.build(model.trainable_variables)
    frozen = split.frozen.tobytes()

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def step(ids):
        traces.append(1)
        with tf.GradientTape() as tape:
            loss = optimizer.scale_loss(tf.reduce_mean(tf.square(model(ids) - 1)))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

    rng = np.random.default_rng(0)
    warm_up = min(1_000, steps // 2)
    for number in range(steps):
        if number == warm_up:
            before, num_traces = resident_bytes(), len(traces)
        step(rng.integers(0, split.num_tokens, rng.integers(1, 20, 2), dtype=np.int32))
    assert layer.to_split().frozen.tobytes() == frozen
    return resident_bytes() - before, len(traces) - num_traces


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def kill_and_resume(folder: Path) -> None:
    """Kill `fit` after two of four epochs and go on from the saved model: the result is that of an undisturbed run."""
    results = []
    for name, kills in (("undisturbed", [0]), ("killed", [2, 3, 0])):
        own = folder / name
        own.mkdir()
        for kill_after in kills:
            process = start("fit", own, kill_after)
            _, errors = process.communicate()
            assert process.returncode == (-9 if kill_after else 0), errors[-2000:]
        results.append(np.load(own / "result.npy"))
    np.testing.assert_array_equal(*results)
