"""Anonymous memory and its peak, in a new process, because other tests release memory in this one."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.accuracy.memory import anonymous_bytes

PEAK_OF_64_MILLION_BYTES = """
import numpy as np
from benchmarks.accuracy.memory import PeakMemory
with PeakMemory() as peak:
    np.ones(8_000_000, np.float64)[:] += 1
print(peak.growth)
"""


@pytest.mark.skipif(anonymous_bytes() is None, reason="the system does not report anonymous memory")
def test_peak_is_measured_after_the_memory_is_released():
    command = [sys.executable, "-c", PEAK_OF_64_MILLION_BYTES]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert 60e6 < int(run.stdout) < 90e6
