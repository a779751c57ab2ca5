"""Crafted and fuzzed files: each reader refuses them by name, with bounds on CPU time and memory."""

import gzip
import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from splitembed.vectors import read_vectors
from tests.hostile import cases, compare, fuzz, measure

ROOT = Path(__file__).parents[2]
NUM_CASES = 80
CPU_SECONDS, PEAK_BYTES = 5, 64 << 20
# Two lines of 1 MB, the longest that are accepted, are a million numbers of one digit.
LARGER_PEAK_BYTES = {"long-row.gz": 128 << 20}
IS_HDF5 = {case.name for case in [*cases.hdf5(), *cases.tables_as_hdf5()]}


def measured(names, tmp_path):
    """Read the cases in one process of their own, and return what it reports of each."""
    environment = {**os.environ, "HOSTILE_FOLDER": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", measure.__name__, *names]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def complaints(found):
    """Return what is wrong with the outcome of a case."""
    if "wrong" in found:
        yield f"not refused: {found['wrong']}"
    elif found["name"] not in found["error"]:
        yield f"not named: {found['error']}"
    if found["seconds"] > CPU_SECONDS:
        yield f"{found['seconds']} CPU seconds"
    if found["bytes"] > LARGER_PEAK_BYTES.get(found["name"], PEAK_BYTES):
        yield f"{found['bytes']} bytes"
    if found["opened"]:
        yield f"opened {found['opened']}"


def check(names, tmp_path):
    outcomes = measured(names, tmp_path)
    assert len(outcomes) == len(names)
    assert {each["name"]: list(complaints(each)) for each in outcomes if any(complaints(each))} == {}


def test_cases_have_distinct_names():
    names = [case.name for case in cases.all_cases()]
    assert len(set(names)) == len(names) >= NUM_CASES


# Some 200 files: 20 to 40 s.
@pytest.mark.slow
def test_every_case_is_refused_by_name_within_bounds(tmp_path):
    check([case.name for case in cases.all_cases() if case.name not in IS_HDF5], tmp_path)


# Each file starts a child process, half a second.
@pytest.mark.slow
def test_every_hdf5_case_is_refused_by_name_within_bounds(tmp_path):
    check(sorted(IS_HDF5), tmp_path)


def test_links_and_storage_in_other_files_are_not_followed(tmp_path):
    check(["external-link-matrix.h5", "external-matrix-matrix.h5", "virtual-matrix.h5"], tmp_path)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"wrong": "read as 5"}, "not refused"),
        ({"error": "VectorFormatError: damaged"}, "not named"),
        ({"seconds": 6}, "6 CPU seconds"),
        ({"bytes": 10**9}, "1000000000 bytes"),
        ({"opened": ["/etc/passwd"]}, "opened"),
    ],
)
def test_the_check_can_fail(found, expected):
    whole = {"name": "a.npy", "error": "VectorFormatError: a.npy: damaged", "seconds": 0, "bytes": 0, "opened": []}
    assert [expected in each for each in complaints({**whole, **found})] == [True]


def test_files_that_are_read_are_noticed(tmp_path):
    (tmp_path / "v.txt").write_bytes(cases.TEXT)
    assert "2 words x 2" in measure.outcome(cases.Case("v.txt", cases.TEXT), tmp_path / "v.txt")["wrong"]


# How many files are read in that time depends on the machine.
@pytest.mark.slow
def test_mutated_files_raise_documented_errors(tmp_path):
    assert fuzz.run(tmp_path, seconds=2, seed=0) == {}


@pytest.mark.skipif(sys.platform != "linux", reason="the file ends the process on Linux")
def test_another_library_goes_on_behind_a_file_that_ends_its_process():
    chosen = [case for case in cases.hdf5() if case.name in ("crash.h5", "magic.h5")]
    assert compare.outcomes("h5py", chosen) == {"crash.h5": "ended", "magic.h5": "refused"}


def test_ngrams_that_share_a_row_cost_linear_time(tmp_path):
    word = b"a" * 50_000
    content = b"\xba\x16\x4f\x2f" + struct.pack("<13id", 12, 1, 5, 5, 1, 5, 1, 2, 2, 1, 3, 6, 100, 1e-4)
    content += struct.pack("<3i2q", 1, 1, 0, 9, -1) + word + b"\0" + struct.pack("<qb", 9, 0)
    content += struct.pack("<?2q2f", 0, 2, 1, 0.5, 2.0) + struct.pack("<?2qf", 0, 1, 1, 0.0)
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    (tmp_path / "model.bin.gz").write_bytes(gzip.compress(content))
    before = time.process_time()
    for name in ("model.bin", "model.bin.gz"):
        assert read_vectors(tmp_path / name).matrix.tolist() == [[pytest.approx(2, abs=1e-3)]]
    assert time.process_time() - before < 3
