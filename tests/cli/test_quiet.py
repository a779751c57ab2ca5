"""The log of TensorFlow, held back and shown after an error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from splitembed.cli.quiet import standard_error_held

ROOT = Path(__file__).parents[2]


def test_lines_are_held_back(capfd):
    with standard_error_held():
        os.write(2, b"a log line\n")
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "after\n"


def test_an_error_shows_them(capfd):
    with pytest.raises(subprocess.CalledProcessError), standard_error_held():
        subprocess.run("echo the reason >&2; exit 1", shell=True, check=True)
    assert capfd.readouterr().err == "the reason\n"


@pytest.mark.slow
def test_commands_print_nothing_of_tensorflow(tmp_path):
    (tmp_path / "vocabulary.txt").write_text("the\nzzz\n")
    (tmp_path / "vectors.txt").write_text("the 1 1.5\n")
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    arguments = ["build", "vocabulary.txt", "vectors.txt", "out", "--oov-initializer", "glorot_uniform"]
    done = subprocess.run(
        [sys.executable, "-m", "splitembed", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**environment, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr) == (0, "")
