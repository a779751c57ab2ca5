"""The Makefile is the one door: every target is listed, and CI calls these and nothing else."""

import configparser
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TARGETS = (
    "help install demo test test-all lint types format coverage notebooks bench newsgroups golden build clean check"
)

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="no make here")


def run_make(*arguments):
    """Run make as a person would, whatever make these tests themselves run under."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout


def targets():
    return set(re.findall(r"^([a-z-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def called_targets(text):
    lines = re.findall(r"\bmake((?: [a-z][a-z-]*)+)(?=\s*(?:$|`|#|&&))", text, re.MULTILINE)
    return {name for line in lines for name in line.split()}


@needs_make
def test_help_comes_first_and_lists_every_target():
    listed = run_make("help")
    assert run_make() == listed
    assert {line.split()[1] for line in listed.splitlines()} == targets()
    assert set(TARGETS.split()) <= targets()


def test_every_target_is_phony():
    text = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", "")
    (phony,) = re.findall(r"^\.PHONY: (.*)", text, re.MULTILINE)
    assert set(phony.split()) == targets()


def test_called_targets_are_found():
    text = "make lint types\nRun `make demo` and `make test-all`; we make no promise.\n    make test  # quick\n"
    assert called_targets(text) == {"lint", "types", "demo", "test-all", "test"}


def test_ci_runs_both_ends_and_can_be_run():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert called_targets(text) == {"test", "lint", "types", "test-oldest", "test-backends"} <= targets()
    assert "set -euo pipefail" in text


def test_extras_are_stamps_that_setup_cfg_knows():
    config = configparser.RawConfigParser()
    config.read(ROOT / "setup.cfg")
    stamps = set(re.findall(r"\.venv(?:-oldest)?/stamps/([a-z]+)", (ROOT / "Makefile").read_text(encoding="utf-8")))
    assert stamps - {"core"} <= set(config["options.extras_require"])
    for_users = {
        "formats",
        "gensim",
        "safetensors",
        "spacy",
        "zstd",
        "ngrams",
        "suggestions",
        "plots",
        "onnx",
        "litert",
        "keras-hub",
    }
    for_developers = {"test", "test-keras-hub", "lint", "notebooks", "bench", "bench-peers", "dev", "backends"}
    assert for_users | for_developers == set(config["options.extras_require"])


@needs_make
def test_all_tests_include_those_that_have_an_environment_of_their_own():
    assert "--numprocesses=2 tests/models/kerashub" in run_make("-n", "test-keras-hub")
    assert "test-keras-hub" in run_make("-n", "test-all")


def test_pyproject_holds_the_build_system_alone():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r"^\[.*", text, re.MULTILINE) == ["[build-system]"]
