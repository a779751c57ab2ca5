"""The command line: what it writes is what the library writes, and what it says is readable."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from splitembed import SplitTable, build_split
from splitembed.cli import main

ROOT = Path(__file__).parent.parent


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "vocabulary.txt").write_text("\n[UNK]\nthe\nzzz\ncat\n")
    (tmp_path / "vectors.txt").write_text("the 1 1.5\nof 2 2.5\ncat 3 3.5\n")
    (tmp_path / "corpus.txt").write_text("the cat zzz zzz\nthe the\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result.output


def test_build_writes_what_build_split_saves(folder):
    output = run("build", "vocabulary.txt", "vectors.txt", "out", "--oov-initializer", "zeros", "--train", "cat")
    assert "SplitTable(num_tokens=5, dim=2, num_frozen=2, num_trainable=3)" in output
    assert "frozen.h5, trainable.h5" in output
    expected = build_split("vocabulary.txt", "vectors.txt", trainable_tokens=["cat"], oov_initializer="zeros")
    np.testing.assert_array_equal(SplitTable.open("out").combine(), expected.combine())


def test_build_with_counts(folder):
    run("build", "vocabulary.txt", "vectors.txt", "out", "--counts", "corpus.txt", "--train-most-frequent", "1")
    assert SplitTable.open("out").trainable_ids.tolist() == [1, 2, 3]
    run("build", "vocabulary.txt", "vectors.txt", "out", "--counts", "corpus.txt", "--min-count", "3")
    split = SplitTable.open("out")
    assert split.remap[3] == split.remap[1]


def test_convert_then_build_on_the_shared_table(folder):
    assert "4 rows x 2, sha256:" in run("convert", "vectors.txt", "glove.h5")
    output = run("build", "vocabulary.txt", "glove.h5", "small")
    assert "Saved in small: trainable.h5." in output
    assert SplitTable.open("small").lookup([2]).tolist() == [[1.0, 1.5]]


@pytest.mark.parametrize("verify", [[], ["--verify"]])
def test_inspect_says_what_a_file_holds(folder, verify):
    run("build", "vocabulary.txt", "vectors.txt", "out")
    assert "num_tokens=5" in run("inspect", "out", *verify)
    assert "frozen" in run("inspect", "out/frozen.h5", *verify)
    assert "trainable" in run("inspect", "out/trainable.h5", *verify)


def test_coverage_lists_the_heaviest_oov_tokens(folder):
    output = run("coverage", "vocabulary.txt", "vectors.txt", "--counts", "corpus.txt")
    assert "66.7 %" in output and "zzz" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "vocabulary.txt", "corpus.txt", "out"], "corpus.txt"),
        (["build", "vocabulary.txt", "vectors.txt", "out", "--min-count", "2"], "`min_count` needs `counts`"),
        (["inspect", "vectors.txt"], "vectors.txt"),
        (["convert", "vocabulary.txt", "glove.h5"], "vocabulary.txt"),
    ],
)
def test_errors_are_a_line_not_a_traceback(folder, arguments, message):
    output = run(*arguments, code=1)
    assert output.startswith("Error: ") and message in output and "Traceback" not in output


def test_demo_leaves_its_tables_where_asked(folder):
    output = run("demo", "--directory", "tables")
    assert "equal to the bit" in output and "Frozen rows are the same to the bit" in output
    assert sorted(path.name for path in (folder / "tables").iterdir()) == ["frozen.h5", "trainable.h5"]


@pytest.mark.parametrize(("arguments", "code", "text"), [(["--help"], 0, "  inspect "), (["nosuch"], 2, "'nosuch'")])
def test_python_m_is_the_same_command(arguments, code, text):
    command = [sys.executable, "-m", "splitembed", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == code
    assert "Usage: python -m splitembed [OPTIONS]" in done.stdout + done.stderr
    assert text in done.stdout + done.stderr


def test_help_names_every_command():
    output = run("--help")
    for command in ("build", "convert", "inspect", "coverage", "export", "demo"):
        assert f"  {command} " in output
