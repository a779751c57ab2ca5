"""The Makefile has a target for every task of the project, lists each one, and CI calls nothing else."""

import configparser
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
REQUIRED_TARGETS = (
    "help install demo test test-all lint types format coverage notebooks bench newsgroups golden build clean check"
)
EXTRAS_FOR_USERS = {
    *("formats", "gensim", "safetensors", "spacy", "zstd", "ngrams", "suggestions", "plots"),
    *("onnx", "litert", "keras-hub"),
}
EXTRAS_FOR_DEVELOPERS = {"test", "test-keras-hub", "lint", "notebooks", "bench", "bench-peers", "dev", "backends"}

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def run_make(*arguments):
    """Run make without the settings of a make that runs these tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout


def targets():
    return set(re.findall(r"^([a-z-]+):(?!=)", MAKEFILE, re.MULTILINE))


def called_targets(text):
    lines = re.findall(r"\bmake((?: [a-z][a-z-]*)+)(?=\s*(?:$|`|#|&&))", text, re.MULTILINE)
    return {name for line in lines for name in line.split()}


@needs_make
def test_help_is_the_default_and_lists_every_target():
    listed = run_make("help")
    assert run_make() == listed
    assert {line.split()[1] for line in listed.splitlines()} == targets()
    assert set(REQUIRED_TARGETS.split()) <= targets()


def test_every_target_is_phony():
    (phony,) = re.findall(r"^\.PHONY: (.*)", MAKEFILE.replace("\\\n", ""), re.MULTILINE)
    assert set(phony.split()) == targets()


def test_called_targets_are_found():
    text = "make lint types\nRun `make demo` and `make test-all`; we make no promise.\n    make test  # quick\n"
    assert called_targets(text) == {"lint", "types", "demo", "test-all", "test"}


def test_ci_runs_the_newest_and_the_oldest_versions():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    text = script.read_text(encoding="utf-8")
    assert called_targets(text) == {"test", "lint", "types", "test-oldest", "test-backends"} <= targets()
    assert "set -euo pipefail" in text


def test_every_extra_is_known_and_every_stamp_installs_one():
    config = configparser.RawConfigParser()
    config.read(ROOT / "setup.cfg")
    extras = set(config["options.extras_require"])
    stamps = set(re.findall(r"\.venv(?:-[a-z]+)*/stamps/([a-z-]+)", MAKEFILE))
    assert stamps - {"core"} <= extras
    assert extras == EXTRAS_FOR_USERS | EXTRAS_FOR_DEVELOPERS


@needs_make
def test_targets_name_only_files_that_exist():
    commands = run_make("--dry-run", *sorted(targets()))
    paths = re.findall(r"(?<=\s)(?:tests|splitembed|benchmarks|notebooks)/[\w/.]+", commands)
    assert len(paths) > 10 and [path for path in paths if not (ROOT / path).exists()] == []


@needs_make
def test_backend_tests_run_on_jax_and_pytorch():
    for backend in ("jax", "torch"):
        (command,) = re.findall(rf"KERAS_BACKEND={backend} .*", run_make("--dry-run", "test-backends"))
        assert {"tests/gradients/test_mask.py", "tests/layers/test_every_backend.py"} <= set(command.split())


@needs_make
def test_nightly_tests_run_on_a_pre_release_of_keras_in_their_own_environment():
    commands = [line for line in run_make("--dry-run", "test-nightly").splitlines() if "bin/python" in line]
    *_, install, test = (line.split() for line in commands)
    assert {"--pre", "--upgrade", "keras-nightly"} <= set(install)
    assert {"tests/layers", "tests/models"} <= set(test)
    assert install[0] == test[0] == ".venv-nightly/bin/python"


@needs_make
def test_all_tests_include_those_on_kerashub():
    assert "--numprocesses=2 tests/models/kerashub" in run_make("--dry-run", "test-keras-hub")
    assert "test-keras-hub" in run_make("--dry-run", "test-all")


@needs_make
def test_git_ignores_and_clean_removes_every_environment():
    environments = set(re.findall(r"\.venv(?:-[a-z]+)*(?=/)", MAKEFILE))
    assert len(environments) == 4
    assert environments <= set(run_make("--dry-run", "clean").split())
    assert {f"{name}/" for name in environments} <= set((ROOT / ".gitignore").read_text(encoding="utf-8").split())


def test_pyproject_holds_only_the_build_system():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r"^\[.*", text, re.MULTILINE) == ["[build-system]"]
