"""Peak memory of reading a file for a vocabulary, in another process: it follows the vocabulary, not the file."""

import json
import subprocess
import sys

import numpy as np
import pytest

from tests.helpers.packings import PACKERS

DIM = 50
VALUES = np.round(np.random.default_rng(0).normal(0, 0.4, (100, DIM)), 5)
ENDS = ["".join(f" {value:.5f}" for value in row) + "\n" for row in VALUES]

READING = """
import json, resource, sys, time
from splitembed.vectors import read_vectors

def resident():
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in open("/proc/self/status") if "kB" in line}

path, step, num_wanted = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
wanted = [f"word{step * number}" for number in range(num_wanted)]
before, start = resident(), time.perf_counter()
vectors = read_vectors(path, wanted, progress=False)
seconds = time.perf_counter() - start
assert vectors.words == wanted
positions = [0, num_wanted // 2, num_wanted - 1]
print(json.dumps({
    "peak": resident()["VmHWM"] - before["VmRSS"],
    "seconds": seconds,
    "rows": vectors.vectors[positions].tolist(),
}))
"""


def write_glove(path, num_rows):
    """Write GloVe text of distinct words and 100 distinct rows, half a gigabyte a second."""
    with path.open("w") as file:
        for start in range(0, num_rows, 10_000):
            file.write("".join(f"word{number}{ENDS[number % 100]}" for number in range(start, start + 10_000)))
    return path


def read_apart(path, step, num_wanted):
    """Read every `step`-th row in another process, and return the peak growth of memory in bytes, and the seconds."""
    command = [sys.executable, "-c", READING, str(path), str(step), str(num_wanted)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    positions = [0, num_wanted // 2, num_wanted - 1]
    expected = [[float(np.float32(value)) for value in VALUES[step * position % 100]] for position in positions]
    assert found["rows"] == expected
    return found["peak"], found["seconds"]


pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells the peak")


@pytest.mark.parametrize("packing", ["plain", "gzip", "Zstandard"])
def test_60_MB_for_1000_words(tmp_path, packing):
    path = write_glove(tmp_path / "vectors.txt", 150_000)
    content = path.read_bytes()
    assert len(content) > 60_000_000
    path.write_bytes(PACKERS[packing](content) if packing != "gzip" else PACKERS[packing](content, 1))
    peak, _ = read_apart(path, 149, 1000)
    # Half the file. Measured: 13 MB, for chunks of 1 MB in the threads.
    assert peak < 30_000_000


@pytest.mark.slow
def test_2_GB_for_50000_words_never_need_more_than_300_MB(tmp_path):
    path = write_glove(tmp_path / "vectors.txt", 4_700_000)
    assert path.stat().st_size > 2_000_000_000
    try:
        peak, seconds = read_apart(path, 93, 50_000)
    finally:
        path.unlink()
    print(f"{peak / 1e6:.0f} MB in {seconds:.1f} s")
    assert peak < 300_000_000
